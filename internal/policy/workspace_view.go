package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// View is how a run in review mode sees the workspace.
type View string

// The ways.
const (
	ViewAuto    View = "auto" // ViewOverlay, or ViewCopy where the host cannot do that
	ViewOverlay View = "overlay"
	ViewCopy    View = "copy"
)

// ScratchDir is where the scratch directory is inside.
const ScratchDir = "/var/scratch"

// output puts a directory for results into view. One that is not there has its
// place where the directory it is in is, by its own name.
func (v *view) output(one Entry) *Error {
	given := v.entryPath(one)
	at, err := v.locate(given)
	if errors.Is(err, fs.ErrNotExist) {
		var parent located
		if parent, err = locate(filepath.Dir(given)); err == nil && !parent.dir {
			err = fmt.Errorf("%s is not a directory", parent.path)
		}
		if err == nil {
			at.path, at.dir = filepath.Join(parent.path, filepath.Base(given)), true
		}
	}
	if refused := v.leads(one, at, Write); refused != nil {
		return refused
	}
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make the directory that it is in first: mkdir -p " + quote(filepath.Dir(given))
		}
		return &Error{Origin: one.Origin, Msg: fmt.Sprintf("%s: the path %s: %s", one.Key, printable(one.Value), reason(err)), hint: hint, cause: err}
	}
	switch {
	case one.Key == "workspace.worktrees" && v.review:
		return fault(one.Origin, "leave the review out, or make the worktrees in the workspace", "%s: in a review the repository is a view, and nothing beside it could use it", one.Key)
	case !at.dir:
		return fault(one.Origin, "name the directory that it is in", "%s: %s is not a directory", one.Key, at.path)
	case within(v.workspace, at.path):
		return fault(one.Origin, "name a directory in it, or another", "%s: %s is or contains the workspace", one.Key, at.path)
	}
	if err := v.host.showable(at, Write); err != nil {
		return fault(one.Origin, "name a directory that holds only results", "%s: %s", one.Key, err)
	}
	v.rules = append(v.rules, ranked{PathRule{Path: at.path, Access: Write, Origin: one.Origin, File: at.id}, one.rank})
	if !slices.Contains(v.outputs, at.path) {
		v.outputs = append(v.outputs, at.path)
	}
	return nil
}

// show settles the paths, and how the workspace is shown.
func (p *Plan) show(e Effective, v *view) error {
	v.discover()
	p.Paths = v.settle()
	p.Notes = append(p.Notes, v.notes...)
	p.Review = v.review
	p.View = ViewAuto
	if w := e.word("workspace.view"); w != "" {
		p.View = View(w)
	}
	p.Scratch = e.word("workspace.scratch") == "on"
	p.Outputs = v.outputs
	i := slices.IndexFunc(p.Paths, func(r PathRule) bool { return r.Path == p.Workspace })
	switch {
	case !p.Review || i < 0:
	case p.Paths[i].Access == Read:
		p.Review = false
		p.Notes = append(p.Notes, "workspace.mode review: the whole workspace is read-only (workspace.readonly), so there is nothing to review")
	default:
		return fault(p.Paths[i].Origin, "remove the entry, or set workspace.mode: direct",
			"%s access to the whole workspace would bypass workspace.mode review", p.Paths[i].Access)
	}
	return nil
}

// ownRules are the places that a run has in addition to those that its policy names.
func (p Plan) ownRules() []PathRule {
	rules := []PathRule{{Path: p.Workspace, Access: Write, Origin: Origin{File: "workspace"}}}
	if p.Scratch {
		rules = append(rules, PathRule{Path: ScratchDir, Access: Copy, Origin: Origin{File: "workspace.scratch"}})
	}
	return rules
}

// outcomeOf describes the outcome of a change under a rule that allows it.
func (p Plan) outcomeOf(path string, rule PathRule) string {
	switch {
	case p.Review && rule.Path == p.Workspace:
		return "to a view of the workspace; the change waits for 'holdfast review'"
	case slices.ContainsFunc(p.Outputs, func(dir string) bool { return within(path, dir) }):
		return "a directory for results: changes are made on the host"
	}
	return "changes are made on the host"
}

func workspaceRows(e Effective, p Plan) []Row {
	rows := e.rows("workspace.mode", "workspace.view", "workspace.scratch", "workspace.outputs", "workspace.worktrees", "workspace.protect", "workspace.unprotect", "workspace.hide", "workspace.show")
	return append(rows, Row{"workspace", p.Workspace, "workspace"})
}
