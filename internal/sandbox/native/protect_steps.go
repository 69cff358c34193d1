//go:build linux

package native

import (
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// pin is one path that is mounted over itself: read-only when it is protected,
// writable when it is only an ancestor of a protected path. Either way the
// kernel refuses to rename or remove it (EBUSY, rename(2)), inside this mount
// namespace.
type pin struct {
	path     string // absolute
	readonly bool
}

// pins lists what has to be mounted over itself, ancestors before what lies in
// them. Below a read-only path nothing more is needed.
func pins(plan policy.Plan) []pin {
	set := map[string]bool{}
	for _, r := range plan.Protect {
		base := plan.Workspace
		if r.Root != "" {
			base = r.Root
		}
		path := filepath.Join(base, r.Path)
		set[path] = true
		for dir := filepath.Dir(path); below(dir, base) && dir != base; dir = filepath.Dir(dir) {
			if !set[dir] {
				set[dir] = false
			}
		}
	}
	for _, r := range plan.HardLinks {
		set[filepath.Join(plan.Workspace, r.Path)] = true
	}
	paths := make([]string, 0, len(set))
	for p := range set {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	out := make([]pin, 0, len(paths))
	readonly := "" // the last read-only path; everything in it follows it in order
	for _, p := range paths {
		if readonly != "" && below(p, readonly) {
			continue
		}
		if set[p] {
			readonly = p
		}
		out = append(out, pin{p, set[p]})
	}
	return out
}

// protect makes the protected paths of the workspace read-only and immovable.
func (b *builder) protect() {
	if b.omit["protected"] {
		return
	}
	for _, p := range pins(b.spec.Plan) {
		fd, tree := b.slot(), b.slot()
		b.openNoLinks("open protected "+p.path, p.path, fd)
		b.cloneTree("clone protected "+p.path, fd, tree)
		if p.readonly {
			b.attributes("make read-only "+p.path, tree, unix.MOUNT_ATTR_RDONLY)
		}
		b.attachOver("pin "+p.path, tree, fd)
		b.expected(p.path, "", p.readonly, true, true, false)
	}
}

// seal takes away what only the launch needed and makes the root read-only.
func (b *builder) seal() {
	b.call("detach private storage", unix.SYS_UMOUNT2, []any{b.str(hidden), unix.MNT_DETACH})
	b.call("remove "+hidden, unix.SYS_UNLINKAT, []any{unix.AT_FDCWD, b.str(hidden), unix.AT_REMOVEDIR})
	root := b.slot()
	b.call("open root", unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str("/"), openPath, 0}, into(root))
	b.call("make root read-only", unix.SYS_MOUNT_SETATTR,
		[]any{root, b.empty, unix.AT_EMPTY_PATH, b.words(unix.MOUNT_ATTR_RDONLY, 0, 0, 0), 32})
	b.closeFD(root)
	name := "holdfast"
	b.call("sethostname", unix.SYS_SETHOSTNAME, []any{b.str(name), len(name)})
	b.call("restore umask", unix.SYS_UMASK, []any{b.umask})
	b.call("close trees", unix.SYS_CLOSE_RANGE, []any{fdTrees, 1<<32 - 1, 0})
}
