package cli

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

const (
	programLines = 400 // programs that log show has lines for, unless --long
	alike        = 5   // children of the same executable that it shows one by one
	objects      = 4   // objects of one kind that it names
)

func (tl *teller) programs() {
	for _, p := range tl.t.Programs {
		if p.Parent == 0 || !tl.knows(p.Parent) {
			tl.program(p, "", "", "")
		}
	}
	if tl.hidden > 0 {
		tl.say("… and %s; see log tree", words.Plural(tl.hidden, "more program", "more programs"))
	}
	if n := tl.t.Left.Programs; n > 0 {
		tl.say("… and %s that there was no room to remember", words.Plural(n, "program", "programs"))
	}
}

func (tl *teller) knows(exec uint64) bool { return tl.names[exec] != "" }

// maxDepth bounds the branches that are drawn: a chain of executions can be as
// long as the log.
const maxDepth = 200

// program shows one program and those it started: branch stands before its own
// line, indent before the others.
func (tl *teller) program(p *story.Program, branch, indent, cwd string) {
	if tl.lines >= programLines && !tl.long || len(indent) > maxDepth*len("│  ") {
		tl.hidden += tl.countAll(p)
		return
	}
	tl.lines++
	kids := tl.shown(p)
	width := 160
	if tl.long && !tl.bare {
		width = 4000
	}
	tl.say("%s%s%s%s", branch, words.CommandLine(p.Argv, p.ArgvLeft, width), tl.where(p, cwd), tl.a.Tint(command.Grey, tl.outcome(p)))
	bar := "   "
	if len(kids) > 0 {
		bar = "│  "
	}
	if !tl.bare {
		tl.deeds(p, indent+bar)
	}
	for i, k := range kids {
		b, in := "├─ ", "│  "
		if i == len(kids)-1 {
			b, in = "└─ ", "   "
		}
		if k.more > 0 {
			tl.say("%s%s%s", indent, b, tl.a.Tint(command.Grey, fmt.Sprintf("… and %d more of %s", k.more, text.Word(k.name))))
			continue
		}
		tl.program(k.p, indent+b, indent+in, p.Cwd)
	}
}

// child is a program to be shown, or how many are left out.
type child struct {
	p    *story.Program
	name string
	more int
}

// shown is the children of p that get a line of their own: of many that run the
// same executable, ended well, started nothing and were refused nothing that the
// others were not, the first few.
func (tl *teller) shown(p *story.Program) []child {
	var out []child
	kinds := map[string]*kind{}
	for _, k := range tl.children[p.Exec] {
		if k == p {
			continue
		}
		name := tl.names[k.Exec]
		of := kinds[name]
		if of == nil {
			of = &kind{at: -1, refused: map[string]bool{}}
			kinds[name] = of
		}
		dull := len(tl.children[k.Exec]) == 0 && (k.Status == "0" || k.Status == "") && k.Signal == "" && of.knows(k.Refused)
		if !dull || of.shown < alike || tl.long {
			of.shown++
			out = append(out, child{p: k, name: name})
			continue
		}
		if of.at < 0 {
			of.at = len(out)
			out = append(out, child{name: name})
		}
		out[of.at].more++
	}
	return out
}

// kind is the children that run one executable.
type kind struct {
	shown   int
	at      int             // where the rest is counted; -1 for nowhere yet
	refused map[string]bool // what those that are shown were refused
}

// knows reports whether nothing of t is new, and takes it in.
func (k *kind) knows(t story.Touched) bool {
	known := t.More == 0
	for _, o := range t.Objects {
		key := o.What + " " + o.Name
		known = known && (k.refused[key] || lines.Usual(o.Name))
		k.refused[key] = true
	}
	return known
}

// countAll is how many programs p and those below it are.
func (tl *teller) countAll(p *story.Program) int {
	n := 0
	for todo := []*story.Program{p}; len(todo) > 0; n++ {
		last := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], tl.children[last.Exec]...)
	}
	return n
}

// where is the directory, when it is not that of the program above.
func (tl *teller) where(p *story.Program, above string) string {
	if p.Cwd == "" || p.Cwd == above {
		return ""
	}
	return "  in " + tl.path(p.Cwd)
}

// outcome is how a program ended.
func (tl *teller) outcome(p *story.Program) string {
	var parts []string
	if p.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", p.PID))
	}
	switch {
	case p.Signal != "":
		parts = append(parts, "ended by signal "+text.Line(p.Signal))
	case p.Status != "":
		parts = append(parts, "status "+text.Line(p.Status))
	case p.Replaced:
		parts = append(parts, "went on as another program")
	case !tl.t.Running:
		parts = append(parts, "status unknown")
	}
	if s := span(p); s != "" {
		parts = append(parts, s)
	}
	if p.Forks > 0 {
		parts = append(parts, words.Plural(p.Forks, "fork", "forks"))
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}

// deeds is what a program did, a line for each kind.
func (tl *teller) deeds(p *story.Program, indent string) {
	for _, d := range []struct {
		word string
		t    story.Touched
	}{{"read", p.Read}, {"wrote", p.Wrote}, {"renamed", p.Renamed}, {"removed", p.Removed}, {"changed", p.Changed}, {"connected to", p.Reached}, {"listened on", p.Bound}} {
		if d.t.Count() > 0 {
			tl.say("%s%s %s", indent, d.word, tl.objects(d.t))
		}
	}
	tl.refused(p, indent)
}

// refused is a line for each of the first things that a program was refused.
func (tl *teller) refused(p *story.Program, indent string) {
	shown, more := 0, p.Refused.More
	for _, o := range p.Refused.Objects {
		if lines.Usual(o.Name) && !tl.long {
			continue
		}
		if shown >= objects && !tl.long {
			more += o.Count
			continue
		}
		shown++
		tl.say("%s%s %s%s  [%s]", indent, tl.a.Tint(command.Red, "refused"), tl.path(o.Name), words.Times(o.Count), text.Line(o.What))
	}
	if more > 0 {
		tl.say("%s%s %d more", indent, tl.a.Tint(command.Red, "refused"), more)
	}
}

// objects names the first few, without those that every program has to do with.
func (tl *teller) objects(t story.Touched) string {
	var parts []string
	left := t.More
	for _, o := range t.Objects {
		if !tl.long && (len(parts) >= objects || ofSystem(o.Name)) {
			left += o.Count
			continue
		}
		what := tl.path(o.Name)
		if o.To != "" {
			what += " → " + tl.path(o.To)
		}
		if o.What != "" {
			what += " (" + text.Line(o.What) + ")"
		}
		parts = append(parts, what+words.Times(o.Count))
	}
	switch {
	case left > 0 && len(parts) == 0:
		parts = append(parts, fmt.Sprintf("%d of the system", left))
	case left > 0:
		parts = append(parts, fmt.Sprintf("%d more", left))
	}
	return strings.Join(parts, ", ")
}

// ofSystem reports whether a path is of what every program reads, or writes to,
// such as libraries and /dev/null. What is not for everybody is not in view.
func ofSystem(name string) bool {
	for _, dir := range []string{"/usr/", "/lib/", "/lib64/", "/etc/ld.so.cache", "/etc/locale.alias", "/proc/", "/sys/", "/dev/null", "/dev/tty"} {
		if strings.HasPrefix(name, dir) {
			return true
		}
	}
	return false
}

// path is a path for the story: below the workspace, from there.
func (tl *teller) path(name string) string {
	if rest, found := strings.CutPrefix(name, tl.t.Workspace+"/"); found && tl.t.Workspace != "" && !tl.long {
		name = "./" + rest
	}
	return words.Cut(name, 300)
}
