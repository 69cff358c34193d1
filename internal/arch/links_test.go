package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// hostile lists the packages that work over trees which something inside may be
// writing at the same time.
const hostile = `boundary/workspace review run consent consent/gate supervise/control record/bus agents/state run/session run/sensors run/relay run/orders network/egress agents/reports boundary/native`

// follows lists where these packages take a path by a call that follows links: the
// file, the calls, and why no run chooses what the path leads to. What goes by a
// descriptor needs no row (openat2(2), O_NOFOLLOW, O_PATH). A call that nothing
// needs is itself a failure.
const follows = `
boundary/workspace/handle.go unix.Chmod unix.Open        : /proc/self/fd of a descriptor that was looked at
boundary/workspace/copytree.go unix.UtimesNanoAt         : /proc/self/fd of the copy
boundary/workspace/copytree.go unix.Statfs               : the storage of a review, in the state
boundary/workspace/external.go unix.Openat               : a pointer of git's is followed as git does; what it leads to counts when it names the worktree in turn
boundary/workspace/review.go os.Open os.ReadDir          : the state
boundary/workspace/reviewend.go os.Open                  : the state
review/open.go unix.Chmod unix.Open             : /proc/self/fd of a descriptor that was looked at
review/plan.go unix.Chmod                       : /proc/self/fd of a descriptor that was looked at
review/target.go unix.Open                      : /proc/self/fd of a descriptor that was looked at
review/journal.go os.Open os.OpenFile           : the state
review/saved.go os.OpenFile os.ReadFile          : the state
review/start.go os.Open filepath.WalkDir        : the state
agents/state/copies.go os.Open                           : the private home, before anything is executed that could change it
agents/state/apply.go os.ReadFile : a file of the user's home, where links are the user's; no run writes there
agents/state/obeyed.go filepath.EvalSymlinks os.OpenFile : the home directory, and a directory that was made a moment ago
agents/state/place.go filepath.EvalSymlinks      : the place itself, in the user's home; what lies below it is compared with what was copied
agents/state/apply.go filepath.Glob             : the state
agents/state/collect.go os.ReadFile os.WriteFile  : the state
agents/state/remember.go os.ReadFile               : the state
run/session/alive.go os.ReadDir                      : the state
consent/client_linux.go os.Stat                : the state
consent/gate/programs.go os.Stat                  : programs of the host, for a notice to the user
run/sensors/outside.go filepath.EvalSymlinks             : adds what a link leads to to what is refused, and takes nothing away
review/changelist.go os.ReadDir os.ReadFile : the state
run/sensors/loopback.go os.Open : /proc, where the links are the kernel's
run/sensors/client.go os.Open os.ReadDir os.Stat       : /proc, where the links are the kernel's
run/sensors/sockets.go os.Open                         : /proc
supervise/control/client.go filepath.Glob      : the state
consent/gate/process.go os.ReadFile                        : /proc, where the links are the kernel's
run/session/view.go os.Chown os.Chtimes syscall.Chmod : directories of the state that were made a moment ago, before the run
run/session/view.go os.ReadDir                       : the state
run/session/view.go syscall.Stat                     : the workspace, by the path that was resolved; nothing is done to it
run/session/scratch.go syscall.Stat                    : the workspace, by the path that was resolved; nothing is done to it
run/session/session.go filepath.Glob os.OpenFile os.ReadDir : the state
boundary/workspace/usergit.go unix.Open                       : the user's working directory by the name that the shell has for it, to learn whether it is the workspace
boundary/workspace/usergit.go os.OpenFile                     : configuration of git's and of agents in the user's home, of which git inside gets only harmless settings
run/session/git.go os.Open                            : a private directory, before anything is executed that could change it
boundary/workspace/inspect.go os.Stat                         : a path of the policy; nothing is done to it
run/session/sweep.go os.Open os.ReadDir                : the state
boundary/native/backend.go os.Stat os.ReadFile   : /proc/sys
boundary/native/check.go os.OpenFile os.ReadFile : /dev and /proc/sys
boundary/native/collect.go os.ReadDir os.ReadFile : /proc, where the links are the kernel's
boundary/native/disk_count.go os.ReadDir os.ReadFile unix.Stat unix.Statfs : /proc, where the links are the kernel's
boundary/native/groups.go filepath.Glob os.ReadFile os.Stat os.WriteFile : control groups, and /proc
boundary/native/landlock.go os.ReadFile          : /proc/sys
boundary/native/launch.go os.Open os.OpenFile    : /proc/self/exe and /dev/null
boundary/native/memory.go os.ReadDir os.ReadFile unix.Open : /proc; of a process that has not executed the command yet, whose /tmp the launch mounted
boundary/native/memory_others.go filepath.Glob unix.Statfs : /proc, where the links are the kernel's
boundary/native/observe_steps.go os.OpenFile     : /dev/fuse
boundary/native/taskid.go os.Open os.ReadFile os.WriteFile : /proc, where the links are the kernel's
boundary/native/view.go filepath.EvalSymlinks os.ReadFile os.Stat : the system view, which is root's
boundary/native/view_layers.go os.Chmod          : a directory of its own, which no run has
`

// following are the calls that follow a link at the end of a path, by import path.
// Of unix and syscall those count that do not say otherwise by a flag.
var following = map[string][]string{
	"os":            {"Chmod", "Chown", "Chtimes", "CopyFS", "Create", "DirFS", "Open", "OpenFile", "ReadDir", "ReadFile", "Stat", "Truncate", "WriteFile"},
	"path/filepath": {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"syscall":       linkCalls,
	unixPath:        linkCalls,
}

const unixPath = "golang.org/x/sys/unix"

var linkCalls = []string{"Access", "Chmod", "Chown", "Faccessat", "Fchmodat", "Fchownat", "Fstatat", "Getxattr", "Listxattr", "Open", "Openat",
	"Removexattr", "Setxattr", "Stat", "Statfs", "Statx", "Truncate", "Utimes", "UtimesNano", "UtimesNanoAt"}

// stays are the flags with which such a call follows nothing.
var stays = []string{"O_NOFOLLOW", "AT_SYMLINK_NOFOLLOW", "AT_EMPTY_PATH"}

// linked checks that packages which work over hostile trees follow links only
// where a row says why.
func linked(t *tree, packages, table string) []string {
	var bad []string
	reasons := map[string]bool{}
	for _, row := range rows(table) {
		what, why, _ := strings.Cut(row, ": ")
		words := strings.Fields(what)
		if len(words) < 2 || why == "" {
			bad = append(bad, fmt.Sprintf("%q: a row is 'file calls: reason'", row))
			continue
		}
		for _, call := range words[1:] {
			reasons[words[0]+" "+call] = false
		}
	}
	for _, f := range t.files {
		if f.test || !slices.ContainsFunc(strings.Fields(packages), func(p string) bool { return f.dir == "internal/"+p }) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			use := followed(f, call)
			if use == "" {
				return true
			}
			row := strings.TrimPrefix(f.path, "internal/") + " " + use
			if _, known := reasons[row]; !known {
				bad = append(bad, fmt.Sprintf("%s: %s follows links in a tree that a run may be writing: use a descriptor", t.position(n), use))
			}
			reasons[row] = true
			return true
		})
	}
	for row, needed := range reasons {
		name, _, _ := strings.Cut(row, " ")
		if !needed && slices.ContainsFunc(t.files, func(f *file) bool { return f.path == "internal/"+name }) {
			bad = append(bad, fmt.Sprintf("nothing needs %q", row))
		}
	}
	return bad
}

// followed names the call if it follows a link; "" for any other.
func followed(f *file, call *ast.CallExpr) string {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || !slices.Contains(following[f.imports[x.Name]], s.Sel.Name) {
		return ""
	}
	for _, arg := range call.Args {
		if names(f, arg, stays) {
			return ""
		}
	}
	return path.Base(f.imports[x.Name]) + "." + s.Sel.Name
}

// names reports whether an expression has one of the names, itself or by a
// constant of the file.
func names(f *file, e ast.Node, wanted []string) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		found = slices.Contains(wanted, id.Name)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			for i := 0; ok && !found && i < len(spec.Names) && i < len(spec.Values); i++ {
				found = spec.Names[i].Name == id.Name && names(f, spec.Values[i], wanted)
			}
			return !found
		})
		return !found
	})
	return found
}
