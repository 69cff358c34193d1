//go:build linux

package native

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// pin is one path over which something is mounted: over a protected path the
// path itself, read-only; over a secret something empty; over an ancestor of
// either the path itself, writable. In each case the kernel refuses to rename
// or remove it (EBUSY, rename(2)), inside this mount namespace.
type pin struct {
	path string // absolute
	how  pinning
	copy string        // of a read-only path: what a link in its place leads to; "" for itself
	dir  bool          // of a hidden path
	file policy.FileID // what is protected or hidden; zero for what lies above
}

type pinning int

const (
	pinned pinning = iota
	readOnly
	unreadable
)

// pins lists what has to be mounted over, ancestors before what lies in them.
// Below a read-only path only secrets are left to do.
func pins(plan policy.Plan) []pin {
	set := map[string]pin{}
	add := func(r policy.Protected, how pinning) {
		base := plan.Workspace
		if r.Root != "" {
			base = r.Root
		}
		path := plan.Within(r)
		if set[path].how < how {
			set[path] = pin{path, how, r.Copy, r.IsDir, r.File}
		}
		for dir := filepath.Dir(path); below(dir, base) && dir != base; dir = filepath.Dir(dir) {
			if _, ok := set[dir]; !ok {
				set[dir] = pin{path: dir}
			}
		}
	}
	// A directory of a hard link that moves hides the file from the scan of the next run.
	for _, r := range slices.Concat(plan.Protect, plan.HardLinks) {
		add(r, readOnly)
	}
	for _, r := range plan.Hidden {
		add(r, unreadable)
	}
	out := make([]pin, 0, len(set))
	covered := "" // the last read-only or hidden path; what is in it follows it in order
	for _, path := range slices.SortedFunc(maps.Keys(set), comparePaths) {
		p := set[path]
		if covered != "" && below(path, covered) && (p.how != unreadable || set[covered].how == unreadable) {
			continue
		}
		if p.how == readOnly || p.how == unreadable && !(covered != "" && below(path, covered)) {
			covered = path
		}
		out = append(out, p)
	}
	return out
}

// comparePaths orders paths so that what is in a directory follows it at once:
// "/" counts less than every other byte.
func comparePaths(a, b string) int {
	return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
}

// pinAbove keeps what a path of a writable tree lies in from being renamed,
// before something is mounted over the path: else the mount would move along, and
// something else could take its name.
func (b *builder) pinAbove(path string) {
	tree := b.hostTree(path)
	if tree == nil || tree.access == policy.Read || b.omit["pinned"] {
		return
	}
	for i := len(tree.at) + 1; i < len(path); i++ {
		if dir := path[:i]; path[i] == '/' && !b.pinned[dir] {
			b.pin(pin{path: dir})
		}
	}
}

// protect makes the protected paths of the workspace read-only and immovable,
// and its secrets unreadable.
func (b *builder) protect() {
	for _, p := range pins(b.spec.Plan) {
		switch {
		case p.how == unreadable && b.omit["hidden"], p.how != unreadable && b.omit["protected"]:
		case p.how == unreadable:
			b.hide(p)
		case p.copy != "":
			b.divert(p)
		default:
			b.pin(p)
		}
	}
}

func (b *builder) pin(p pin) {
	if p.how == pinned {
		if b.pinned[p.path] {
			return
		}
		b.pinned[p.path] = true
	}
	fd, tree := b.slot(), b.slot()
	b.openNoLinks("open protected "+p.path, p.path, unix.O_NOFOLLOW, fd)
	b.compareIn(fd, p)
	b.cloneTree("clone protected "+p.path, fd, tree)
	if p.how == readOnly {
		b.attributes("make read-only "+p.path, tree, unix.MOUNT_ATTR_RDONLY)
	}
	b.attachOver("pin "+p.path, tree, fd)
	b.expectMount(p.path, "", p.how == readOnly, true, false)
}

// divert covers a file with a link to a copy, which programs that follow links as git
// does change in the file's place.
func (b *builder) divert(p pin) {
	from := fmt.Sprintf("%s/link%d", hidden, len(b.expect))
	b.link(viewLink{from, p.copy})
	b.cover(from, "tmpfs", p)
}

// coversAt holds, if the root is served, the mounts that cover secrets: the server
// learns there what each covers, and sees which process asks for it.
const coversAt = "/.holdfast-covers"

// hide covers a secret with something that no process may read: a file of mode 0, or
// an empty directory.
func (b *builder) hide(p pin) {
	from, fstype := hidden+"/empty", "tmpfs"
	if p.dir {
		from = hidden + "/emptydir"
	}
	if b.facts.tripwire {
		b.mkdirOne(coversAt, 0o700)
		fstype = "fuse"
		from = fmt.Sprintf("%s/%d", coversAt, len(b.expect))
		if p.dir {
			b.file(from+".path", p.path, 0)
			b.mkdirOne(from, 0o555)
		} else {
			b.file(from, p.path, 0)
		}
	}
	b.cover(from, fstype, p)
}

// cover mounts a file or directory over a path, read-only.
func (b *builder) cover(from, fstype string, p pin) {
	path := p.path
	b.pinAbove(path)
	fd := b.slot()
	b.openNoLinks("open hidden "+path, path, unix.O_NOFOLLOW, fd)
	b.compareIn(fd, p)
	tree := b.cloneMount("cover", from)
	b.attributes("make cover read-only", tree, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	b.attachOver("hide "+path, tree, fd)
	b.expectMount(path, fstype, true, true, true)
}

// seal removes what only the launch needed and makes the root read-only.
func (b *builder) seal() {
	b.call("detach private storage", unix.SYS_UMOUNT2, []any{b.str(hidden), unix.MNT_DETACH})
	b.call("remove "+hidden, unix.SYS_UNLINKAT, []any{unix.AT_FDCWD, b.str(hidden), unix.AT_REMOVEDIR})
	if b.made[coversAt] { // with what is in it: it is mounted by now
		b.call("remove "+coversAt, unix.SYS_UNLINKAT, []any{unix.AT_FDCWD, b.str(coversAt), unix.AT_REMOVEDIR})
	}
	if b.facts.tripwire {
		b.pollOnce()
	}
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
