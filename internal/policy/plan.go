package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/consent/rules"
)

// Plan is the effective policy of one run: resolved for this user, this host and this
// workspace, with nothing left to look up. A backend enforces exactly what it contains.
//
// Compile makes it, and it is final except for what only a look at the trees and the
// start of the run can show: With adds that, and checks it. Nothing else assigns to its
// fields.
type Plan struct {
	Profile     string      // local, ci or production
	Sources     []Source    // what was read, in order of precedence, for records
	Workspace   string      // absolute, every component resolved; the only writable host tree by default
	File        FileID      // what Workspace was: a backend shows this or nothing
	Dir         string      // working directory inside; Workspace or below it
	Identity    Identity    // the user of the command inside
	Paths       []PathRule  // what is in view in addition to the fixed system view; sorted by Path
	Protect     []Protected // names that the host would execute: read-only, and neither they nor their ancestors move
	HardLinks   []Protected // files that are also files outside the workspace: read-only, but free to move
	Hidden      []Protected // secrets of the workspace: unreadable, and neither they nor their ancestors move
	Env         []Env       // the whole environment inside, sorted by name
	Limits      Limits
	Allow       []HostRule   // destinations; empty means no network but loopback inside
	HostPorts   []Port       // services on the host's loopback that are reached at the same port inside
	Publish     []Port       // services inside that the host may reach on its loopback
	Credentials []Credential // secrets that stay outside, and where they may go
	Agent       *Agent       // what a preset adds for an agent program; nil without one
	Accepted    []Guarantee

	Tools []ToolRule // calls of agents' tools that their hooks deny

	Ask, Deny []rules.Rule // what a human must decide, and what is denied without asking
	Approvals Approvals
	Programs  Programs // that may be started

	Record      Record
	Alerts      Alerts
	Honeytokens bool // worthless credentials are placed in the private home

	Review  bool     // the command works on a view of the workspace, and what it changes there waits for a human
	View    View     // how that is made
	Scratch bool     // a private directory on disk, at ScratchDir
	Outputs []string // directories for results, then those for worktrees, absolute and resolved except for the last component, which the run makes; each is in Paths too

	ProtectMore []Pattern // workspace.protect: protected in addition to the built-in list
	ProtectLess []Pattern // workspace.unprotect: entries of that list that stay writable
	HideMore    []Pattern // workspace.hide: secrets in addition to the built-in list
	HideLess    []Pattern // workspace.show: files of that list that stay readable
	Notes       []string  // what was left out or lowered, and why; for humans
}

// Accepts reports whether the human accepted the loss of g by name.
func (p Plan) Accepts(g Guarantee) bool { return slices.Contains(p.Accepted, g) }

// Source is a policy that contributed to a Plan.
type Source struct {
	Name   string // file path, "profile local", "--rw"
	SHA256 string // of its bytes, hex; "" for flags
}

// Origin says where an entry of a Plan comes from.
type Origin struct {
	File string // path, "profile local", or a flag such as "--rw"
	Line int    // 1-based; 0 where lines mean nothing
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// FileID is which file of the host a path was when it was judged. The zero value means
// that it is not known.
type FileID struct{ Dev, Ino uint64 }

// Identity is the user of the command inside.
type Identity struct {
	UID, GID int    // as seen inside
	Name     string // user name shown inside
	Home     string // absolute path of the private home inside
}

// Additions is what a run learns of the host after Compile, and all that a plan may
// gain by it: what was found in the trees that the command can change, and what
// Holdfast itself needs inside.
type Additions struct {
	Files     map[string]FileID // by path, of the workspace or a rule: which directory was looked through
	Paths     []PathRule        // git directories of worktrees, and the program of agents' hooks; each takes the place of a rule for the same path
	Protect   []Protected
	HardLinks []Protected
	Hidden    []Protected
	Env       []Env // a variable that the plan sets already stays as it is
	Certs     []Env // variables that name certificates, which lie elsewhere inside: each takes the place of the one that the plan sets
	Notes     []string
}

// ReplacedError means that a path is no longer the file that Compile judged.
type ReplacedError struct{ Path string }

func (e *ReplacedError) Error() string { return e.Path + " was replaced after it was checked" }

// With returns the plan with what a run learned. Nothing else of a plan changes after
// Compile, and nothing is removed. p does not change.
func (p Plan) With(a Additions) (Plan, error) {
	out := p
	out.Paths = slices.Clone(p.Paths)
	for path, file := range a.Files {
		if err := out.identify(path, file); err != nil {
			return p, err
		}
	}
	for _, r := range a.Paths {
		if !filepath.IsAbs(r.Path) || r.Access < Read || r.Access > Write {
			return p, fmt.Errorf("%s: the plan cannot gain the path %q with access %s", r.Origin, r.Path, r.Access)
		}
		out.insertRule(r)
	}
	for _, r := range slices.Concat(a.Protect, a.HardLinks, a.Hidden) {
		if r.Root != "" && !filepath.IsAbs(r.Root) || !filepath.IsLocal(r.Path) {
			return p, fmt.Errorf("the plan cannot gain the row %q below %q", r.Path, r.Root)
		}
	}
	out.Protect = slices.Concat(p.Protect, a.Protect)
	out.HardLinks = slices.Concat(p.HardLinks, a.HardLinks)
	out.Hidden = slices.Concat(p.Hidden, a.Hidden)
	out.Notes = slices.Concat(p.Notes, a.Notes)
	out.Env = slices.Clone(p.Env)
	for _, e := range a.Env {
		if err := variable(e.Name); err != nil {
			return p, err
		}
		if !slices.ContainsFunc(out.Env, func(have Env) bool { return have.Name == e.Name }) {
			out.Env = append(out.Env, e)
		}
	}
	for _, e := range a.Certs {
		if i := slices.IndexFunc(out.Env, func(have Env) bool { return have.Name == e.Name }); i >= 0 {
			out.Env[i] = e
		}
	}
	return out, nil
}

// identify notes which file a path is. Of one that Compile did not find it is the
// first word.
func (p *Plan) identify(path string, is FileID) error {
	was := &p.File
	if path != p.Workspace {
		i := slices.IndexFunc(p.Paths, func(r PathRule) bool { return r.Path == path })
		if i < 0 {
			return nil
		}
		was = &p.Paths[i].File
	}
	if *was != (FileID{}) && *was != is {
		return &ReplacedError{path}
	}
	*was = is
	return nil
}

// insertRule puts a rule among the others, in their order.
func (p *Plan) insertRule(r PathRule) {
	if i := slices.IndexFunc(p.Paths, func(have PathRule) bool { return have.Path == r.Path }); i >= 0 {
		r.At = cmp.Or(r.At, p.Paths[i].At)
		p.Paths[i] = r
		return
	}
	at, _ := slices.BinarySearchFunc(p.Paths, r, func(a, b PathRule) int { return strings.Compare(a.Path, b.Path) })
	p.Paths = slices.Insert(p.Paths, at, r)
}
