package policy

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

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
	Notes     []string
}

// ReplacedError says that a path is not the file any more that Compile judged.
type ReplacedError struct{ Path string }

func (e *ReplacedError) Error() string { return e.Path + " was replaced while it was looked through" }

// With returns the plan with what a run learned. Nothing else of a plan changes after
// Compile, and nothing is taken away. p stays as it is.
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
		out.place(r)
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

// place puts a rule among the others, in their order.
func (p *Plan) place(r PathRule) {
	if i := slices.IndexFunc(p.Paths, func(have PathRule) bool { return have.Path == r.Path }); i >= 0 {
		r.At = cmp.Or(r.At, p.Paths[i].At)
		p.Paths[i] = r
		return
	}
	at, _ := slices.BinarySearchFunc(p.Paths, r, func(a, b PathRule) int { return strings.Compare(a.Path, b.Path) })
	p.Paths = slices.Insert(p.Paths, at, r)
}
