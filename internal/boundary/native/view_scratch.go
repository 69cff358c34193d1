//go:build linux

package native

import (
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// scratch is a private writable directory.
type scratch struct {
	at, name string
	mode     int
	exec     bool
	how      keeping
}

// keeping is how a private directory is kept where the root is served.
type keeping int

const (
	plain   keeping = iota // still a tmpfs: programs share memory by its files
	layered                // a tmpfs over the directory of the root, which is asked for what is missing: fast
	served                 // by the root itself: whatever is missing at any depth is seen
)

// scratchParts are the private writable directories: what their files hold is in
// one tmpfs, so that one size limits them together.
func scratchParts(home string) []scratch {
	parts := []scratch{
		{"/dev/shm", "shm", 0o1777, true, plain},
		{"/run", "run", 0o755, false, served},
		{"/tmp", "tmp", 0o1777, true, layered},
		{"/var/tmp", "vartmp", 0o1777, true, layered},
	}
	return append(parts, scratch{home, "home", 0o700, true, served})
}

// scratchAt is the private directory that a part is.
func (b *builder) scratchAt(p part) (scratch, bool) {
	parts := scratchParts(b.spec.Plan.Identity.Home)
	i := slices.IndexFunc(parts, func(s scratch) bool { return p.source == "" && s.at == p.at })
	if i < 0 {
		return scratch{}, false
	}
	return parts[i], true
}

// keepingFor returns how a private directory is kept in this launch.
func (b *builder) keepingFor(s scratch) keeping {
	if !b.facts.tripwire {
		return plain
	}
	return s.how
}

// scratch mounts the one tmpfs of all private writable directories where
// nothing will see it.
func (b *builder) scratch() {
	tree := b.slot()
	size := b.spec.Plan.Limits.Disk
	options := [][2]string{{"mode", "0700"}}
	if size > 0 {
		// Every file costs kernel memory even when it is empty: one for each
		// 16 KiB is more than any tool was seen to make.
		options = append(options, [2]string{"size", strconv.FormatInt(size, 10)},
			[2]string{"nr_inodes", strconv.FormatInt(min(max(size>>14, 16<<10), 1<<20), 10)})
	}
	b.filesystem("private storage", "tmpfs", options, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, tree)
	b.mkdir(hidden, 0o700)
	b.attach("attach private storage", tree, hidden)
	for _, s := range scratchParts(b.spec.Plan.Identity.Home) {
		if b.keepingFor(s) != served {
			b.mkdir(hidden+"/"+s.name, s.mode)
			continue
		}
		b.mkdir(s.at, s.mode)
		b.trees[s.at] = b.cloneMount("private "+s.at, s.at) // before another private directory is mounted above it
	}
	b.mkdirOne(hidden+"/emptydir", 0o555)
	b.file(hidden+"/empty", "", 0)
	run := hidden + "/run"
	if b.facts.tripwire {
		b.handOutStore()
		run = "/run"
	}
	b.mkdir(run+"/user", 0o755)
	b.mkdir(fmt.Sprintf("%s/user/%d", run, b.facts.uid), 0o700)
	b.mkdir(run+"/lock", 0o1777)
}

// attachScratch puts one private directory into place.
func (b *builder) attachScratch(s scratch) {
	if b.keepingFor(s) == layered {
		from := hidden + "/" + s.name
		work := from + ".work"
		b.mkdirOne(work, 0o700)
		b.attachOverlay("private "+s.at, s.at, from, work, s.at)
		return
	}
	tree, fstype := b.trees[s.at], "fuse"
	if b.keepingFor(s) == plain {
		tree, fstype = b.cloneMount("private "+s.at, hidden+"/"+s.name), "tmpfs"
	}
	if !s.exec {
		b.attributes("private "+s.at+": restrict", tree, unix.MOUNT_ATTR_NOEXEC)
	}
	b.attach("private "+s.at, tree, s.at)
	b.over[s.at] = b.keepingFor(s) == plain // else it is the root itself
	b.expectMount(s.at, fstype, false, true, !s.exec)
}
