package policy

import (
	"errors"
	"slices"
	"strings"
)

// guaranteeKeys is the key of accepted losses.
var guaranteeKeys = []key{
	{name: "without", kind: &losses, project: clears, example: "[landlock-scopes]",
		doc: "Guarantees whose loss is accepted where the host cannot keep them. Each one is listed at the start and in the summary of a run."},
}

var losses = kind{
	takes: "a list of guarantees",
	many:  true,
	text: func(k key, text string) (Entry, string, error) {
		hint, err := lossText(text)
		return Entry{Key: k.name, Value: text}, hint, err
	},
	schema: func(key) map[string]any { return list(map[string]any{"enum": Losses}) },
}

// Guarantee is one thing the boundary promises, by the name that doctor shows
// and --without takes.
type Guarantee string

// The guarantees that a host may be unable to keep.
const (
	Namespaces   Guarantee = "namespaces"       // user, mount, pid, net, ipc, uts and cgroup namespaces
	PrivateProc  Guarantee = "private-proc"     // a /proc of its own that shows only what is inside
	Landlock     Guarantee = "landlock"         // second wall over the view, kernel 5.13
	Scopes       Guarantee = "landlock-scopes"  // abstract sockets and signals scoped by Landlock, kernel 6.12
	Seccomp      Guarantee = "seccomp"          // system-call filter
	TaskID       Guarantee = "task-id"          // as root: a user id of its own through an idmapped mount
	CopyLayers   Guarantee = "copy-on-write"    // overlay layers for Access Copy
	Recording    Guarantee = "record"           // system calls are seen by the supervisor, kernel 5.19
	Interception Guarantee = "interception"     // every TCP connection arrives at the supervisor, whether or not a program knows of proxies
	HardLinks    Guarantee = "hard-links"       // no file of the workspace is also a file outside it
	MemoryLimit  Guarantee = "limits.memory"    // for all processes together
	ProcessLimit Guarantee = "limits.processes" // for all processes together
)

// Guarantees are all that a host may be unable to keep, in the order above.
var Guarantees = []Guarantee{
	Namespaces, PrivateProc, Landlock, Scopes, Seccomp, TaskID, CopyLayers,
	Recording, Interception, HardLinks, MemoryLimit, ProcessLimit,
}

// Losses are the guarantees whose loss can be accepted: all but the namespaces,
// without which nothing of the boundary holds.
var Losses = Guarantees[1:]

// Switch reports whether --without gives a guarantee up also where the host keeps it.
// All others are kept as far as the host does.
func (g Guarantee) Switch() bool {
	return slices.Contains([]Guarantee{Recording, Interception, CopyLayers, HardLinks}, g)
}

// lossText checks the name of a guarantee whose loss is accepted.
func lossText(text string) (hint string, err error) {
	if text == string(Namespaces) {
		return "run it on a host that can make them: 'holdfast doctor' says whether this one can, and how to mend it",
			errors.New("namespaces cannot be given up: without them nothing of the boundary holds")
	}
	known := make([]string, len(Losses))
	for i, g := range Losses {
		known[i] = string(g)
	}
	return "known: " + strings.Join(known, ", "), oneOf("guarantee", text, known)
}

// guarantees takes the accepted losses over into the plan.
func (p *Plan) guarantees(e Effective) {
	for _, one := range e.entriesFor("without") {
		if g := Guarantee(one.Value); !slices.Contains(p.Accepted, g) {
			p.Accepted = append(p.Accepted, g)
		}
	}
}
