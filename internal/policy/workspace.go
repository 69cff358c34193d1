package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// workspaceKeys are those of the section workspace.
var workspaceKeys = []key{
	{name: "workspace",
		doc: "The directory that the command works in; the only tree of the host that it may change unless `filesystem.write` names more."},
	{name: "workspace.mode", kind: &words, words: []string{"direct", "review"}, project: raises, example: "review",
		doc: "`direct`: changes are made in the tree itself. `review`: the command works on a copy-on-write view, and its changes wait for `holdfast review`; the run does not change the tree itself, except for what `filesystem.write` and `workspace.outputs` name. The flag is `--review`."},
	{name: "workspace.view", kind: &words, words: []string{string(ViewAuto), string(ViewOverlay), string(ViewCopy)}, project: ignored, example: "copy",
		doc: "How mode `review` makes its view. `overlay`: a layer over the tree, at no cost at the start; the rename of a directory that was there before is refused with EXDEV, which `mv` and `npm` work around and `git mv` does not. `copy`: the tree is copied first, and everything works. `auto`: the layer, and the copy where the host cannot lay one, or where files that the command may change are of another group or user than it has first, as in a tree that a group shares: the kernel refuses to change them in a layer (EOVERFLOW)."},
	{name: "workspace.scratch", kind: &words, words: []string{"off", "on"}, project: ignored, example: "on",
		doc: "`on`: a private directory on disk for the temporary files of a build, named in `HOLDFAST_SCRATCH`. It is empty at the start, gone at the end, and counts against `limits.disk`. The flag is `--scratch`."},
	{name: "workspace.outputs", kind: &paths, project: clears, example: "[dist]",
		doc: "Directories for results: writable on the host, at their place, also where the workspace is read-only. One that is missing is made, but not the directory it is in. What your host would execute or obey, and secrets, are protected, hidden and held back in them as in any workspace. `HOLDFAST_OUTPUT` is the first of them. The flag is `--output`."},
	{name: "workspace.worktrees", kind: &siblings, project: clears, example: "[../widget-trees]",
		doc: "Directories beside the workspace for worktrees of its repository (`git worktree add`): writable on the host, made when missing, and looked after as `workspace.outputs`. A worktree anywhere else outside the workspace would go with the private home, and git is refused it. A relative path counts from the workspace, or for the flag `--worktrees` from the working directory, and may begin with `../`."},
	{name: "workspace.readonly", kind: &paths, project: adds, example: "[vendor]",
		doc: "Paths inside the workspace that the command may read and not change. `.` is the whole workspace; outputs are then named under `filesystem.write`."},
	{name: "workspace.protect", kind: &patterns, project: adds, example: "[deploy.sh]",
		doc: "Names or patterns to protect besides the built-in list of files that the host executes later. They apply at any depth; with a leading slash at the top of the workspace only."},
	{name: "workspace.unprotect", kind: &patterns, project: never, example: "[.vscode/settings.json]",
		doc: "Entries of the built-in list, or paths from the workspace, to leave writable. Whatever the command writes there may later be executed by the host."},
	{name: "workspace.hide", kind: &patterns, project: adds, example: "[customers.csv]",
		doc: "Names or patterns of secrets that the command may not read, besides the built-in list (`.env`, private keys, Terraform state and the like, unless git tracks them). They apply at any depth; with a leading slash at the top of the workspace only."},
	{name: "workspace.show", kind: &patterns, project: never, example: "[.env.test]",
		doc: "Names or patterns of that list that the command may read."},
}

// systemTrees may not be a workspace, nor may anything below them: a backend
// puts its own in their place, or the host runs from them.
var systemTrees = []string{"/boot", "/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr"}

// sourceTrees are below system trees and yet meant for work.
var sourceTrees = []string{"/usr/src", "/usr/local/src"}

// sharedRoots may not be a workspace themselves; a directory in them may.
var sharedRoots = []string{"/", "/home", "/media", "/mnt", "/nix", "/opt", "/root", "/snap", "/srv", "/tmp", "/var", "/var/lib", "/var/cache", "/var/log", "/var/spool", "/var/tmp", "/usr/src", "/usr/local/src"}

// findWorkspace finds the workspace and the working directory in it.
func (e *Effective) findWorkspace(o Options) error {
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
	bad := o.Host.findUntrustedLink(at, nil)
	if bad == nil {
		bad = o.Host.findShippedLink(at)
	}
	if bad != nil {
		return fault(Origin{}, bad.hint("--workspace"), "the workspace %s: %s", quote(printable(given)), bad)
	}
	if o.Workspace == "" {
		at = o.Host.workspaceAround(at)
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
		if within(path, tree) && !isSource(path) {
			return fault(Origin{}, hint, "the workspace %s belongs to the system", path)
		}
	}
	if slices.Contains(sharedRoots, path) {
		return fault(Origin{}, hint, "the workspace %s is shared by the whole machine", path)
	}
	if one := h.executed(path, true); one != "" {
		return fault(Origin{}, "work on a copy of it elsewhere", "the workspace %s is or contains %s, which your account executes or obeys later", path, filepath.Join(h.Home, one))
	}
	for _, own := range h.ownPaths() {
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

// checkPolicyFile refuses a policy file that the command could change.
func (e *Effective) checkPolicyFile(h Host, file string) error {
	at, err := locate(file)
	if err != nil {
		return err
	}
	if bad := h.findUntrustedLink(at, []writable{{e.Workspace, "the workspace"}}); bad != nil {
		return fault(Origin{File: file}, bad.hint("--policy"), "%s", bad)
	}
	if within(at.path, e.Workspace) {
		hint := "move it out of the workspace, or call it " + ProjectFile + " in the workspace's root and trust it: holdfast policy trust"
		return fault(Origin{File: file}, hint, "the policy is inside the workspace %s, where what runs inside could change it", e.Workspace)
	}
	return nil
}

// refuseWritablePolicy refuses a policy of the user's that the command could change, by any
// path that it may write. That of the workspace is judged by its content.
func (p *Plan) refuseWritablePolicy(e Effective, h Host) error {
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
