package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	lexical "holdfast.dev/holdfast/internal/floor/paths"
)

// systemTrees may not be a workspace, nor may anything below them: a backend
// puts its own in their place, or the host runs from them.
var systemTrees = []string{"/boot", "/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr"}

// sourceTrees are below system trees and yet meant for work.
var sourceTrees = []string{"/usr/src", "/usr/local/src"}

// sharedRoots may not be a workspace themselves; a directory in them may.
var sharedRoots = []string{"/", "/home", "/media", "/mnt", "/nix", "/opt", "/root", "/snap", "/srv", "/tmp", "/var", "/var/lib", "/var/cache", "/var/log", "/var/spool", "/var/tmp", "/usr/src", "/usr/local/src"}

// place finds the workspace and the working directory in it.
func (e *Effective) place(o Options) error {
	given := o.Workspace
	if given == "" {
		given = o.Host.Dir
	}
	if strings.ContainsAny(given, "\x00\n\r") {
		return fault(Origin{}, "rename it, or choose another with --workspace", "the workspace \"%s\" contains a NUL or a line break", printable(given))
	}
	if !filepath.IsAbs(given) {
		given = o.Host.Dir + "/" + given // not joined: what .. leads to is the kernel's to say
	}
	at, err := locate(given)
	if err != nil {
		hint := "choose a directory with --workspace"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make it first: mkdir -p " + quote(given)
		}
		return &Error{Msg: fmt.Sprintf("the workspace %s: %v", printable(given), reason(err)), hint: hint, cause: err}
	}
	if !at.dir {
		return fault(Origin{}, "name the directory that it is in", "the workspace %s is not a directory", at.path)
	}
	bad := o.Host.untrusted(at, nil)
	if bad == nil {
		bad = o.Host.shipped(at)
	}
	if bad != nil {
		return fault(Origin{}, bad.hint("--workspace"), "the workspace %s: %s", quote(printable(given)), bad)
	}
	if err := o.Host.workspace(at.path); err != nil {
		return err
	}
	e.Workspace, e.Dir, e.file = at.path, at.path, at.id
	if dir, err := locate(o.Host.Dir); err == nil && within(dir.path, at.path) {
		e.Dir = dir.path
	}
	return nil
}

// workspace says why a resolved directory cannot be one.
func (h Host) workspace(path string) error {
	const hint = "make a directory for the work and name it with --workspace"
	switch {
	case path == "/":
		return fault(Origin{}, hint, "the workspace is /: everything would be writable")
	case path == h.Home:
		return fault(Origin{}, hint, "the workspace %s is your home: your keys and start-up files would be in it", path)
	case within(h.Home, path):
		return fault(Origin{}, hint, "the workspace %s contains your home", path)
	}
	for _, tree := range systemTrees {
		open := slices.ContainsFunc(sourceTrees, func(s string) bool { return path != s && within(path, s) })
		if within(path, tree) && !open {
			return fault(Origin{}, hint, "the workspace %s belongs to the system", path)
		}
	}
	if slices.Contains(sharedRoots, path) {
		return fault(Origin{}, hint, "the workspace %s is shared by the whole machine", path)
	}
	for _, one := range embeddedToolchains().Executed {
		if full := filepath.Join(h.Home, one); within(path, full) || within(full, path) {
			return fault(Origin{}, "work on a copy of it elsewhere", "the workspace %s is or contains %s, which your account executes or obeys later", path, full)
		}
	}
	for _, own := range h.own() {
		if own.path == "" {
			continue
		}
		if within(own.path, path) {
			return fault(Origin{}, own.hint, "the workspace %s contains %s %s, which what runs inside could then change", path, own.what, own.path)
		}
		if own.tree && within(path, own.path) {
			return fault(Origin{}, hint, "the workspace %s is inside %s %s", path, own.what, own.path)
		}
	}
	return nil
}

// ownPath is a place that Holdfast rests on.
type ownPath struct {
	what, path, hint string
	tree             bool
}

func (h Host) own() []ownPath {
	if h.owned != nil {
		return h.owned
	}
	all := []ownPath{
		{what: "the state directory", path: h.State, tree: true, hint: "unset XDG_STATE_HOME, or set it to a directory outside the workspace"},
		{what: "the policy directory", path: h.Config, tree: true, hint: "unset XDG_CONFIG_HOME, or set it to a directory outside the workspace"},
		{what: "the holdfast program", path: h.Executable, hint: "install holdfast outside the workspace, for example in /usr/local/bin"},
	}
	for i, own := range all {
		if !filepath.IsAbs(own.path) {
			all[i].path = ""
			continue
		}
		var links []string
		links, all[i].path = steps(own.path)
		for _, at := range links { // what leads there counts as well
			all = append(all, ownPath{what: "a link to " + own.what, path: at, hint: own.hint})
		}
	}
	return all
}

// nearestReal resolves as much of path as exists and adds the rest.
func nearestReal(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	_, real := steps(path)
	return real
}

// outside refuses a policy file that the command could change.
func (e *Effective) outside(h Host, file string) error {
	at, err := locate(file)
	if err != nil {
		return err
	}
	if bad := h.untrusted(at, []writable{{e.Workspace, "the workspace"}}); bad != nil {
		return fault(Origin{File: file}, bad.hint("--policy"), "%s", bad)
	}
	if within(at.path, e.Workspace) {
		hint := "move it out of the workspace, or call it " + ProjectFile + " in the workspace's root and trust it: holdfast policy trust"
		return fault(Origin{File: file}, hint, "the policy is inside the workspace %s, where what runs inside could change it", e.Workspace)
	}
	return nil
}

// unreachable refuses a policy of the user's that the command could change, by any
// path that it may write. That of the workspace is judged by its content.
func (p *Plan) unreachable(e Effective, h Host) error {
	x := explainer{plan: *p, host: h}
	for _, s := range e.Sources {
		if !filepath.IsAbs(s.Name) || e.Project != nil && s.Name == e.Project.Path {
			continue
		}
		if by := x.replaceable(s.Name); by != "" {
			return fault(Origin{File: s.Name}, "move it to a directory that is not writable inside", "what runs inside could change the policy (%s)", by)
		}
	}
	return nil
}

// within reports whether path is tree or lies below it. Both are resolved
// names of the kernel's.
func within(path, tree string) bool { return lexical.Within(tree, path) }

// reason is the cause of a failed look-up without the path, which the message
// has already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
