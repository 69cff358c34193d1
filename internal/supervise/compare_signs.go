//go:build linux

package supervise

import (
	"slices"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// foreseen is where a call should lead, kept until it has returned.
type foreseen struct {
	at, to aim
	lost   bool   // its path could not be followed
	text   string // of a symbolic link that it makes
}

// aim is where one path should lead. Its descriptor is of the directory, so that it
// does not change.
type aim struct {
	dir  int    // -1 for none
	name []byte // in dir, with a zero byte; that alone for dir itself
	path string
	was  unix.Stat_t
	had  bool // was is set: something was there
}

// expect keeps what s.at and s.to say.
func (s *Supervisor) expect(c *call) *foreseen {
	opens := c.info.shape == shapeOpen
	f := &foreseen{at: aimOf(&s.at, opens), to: aimOf(&s.to, opens)}
	f.lost = s.at.asked == nil || s.at.unknown != ""
	f.text = c.detail["to"]
	return f
}

func aimOf(at *location, opens bool) aim {
	a := aim{dir: -1, path: at.absolutePath(), was: at.stat, had: at.exists}
	if at.dir != nil && !opens { // what was opened is looked at itself
		if fd, err := unix.FcntlInt(uintptr(at.dir.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			a.dir, a.name = fd, append(slices.Clone(at.name), 0)
		}
	}
	return a
}

func (f *foreseen) close() {
	for _, a := range []*aim{&f.at, &f.to} {
		if a.dir >= 0 {
			unix.Close(a.dir)
		}
	}
}

// currentStat returns what is there now.
func (a *aim) currentStat() (now unix.Stat_t, there bool) {
	there = a.dir >= 0 && fstatat(a.dir, a.name, &now, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) == 0
	return now, there
}

// sign is the visible effect of a call at the place where it was expected.
type sign int

const (
	signThere   sign = iota // what it did
	signMissing             // it did nothing there
	signNone                // nothing that it had to leave
)

// sign looks for what a call that succeeded did, other than opening. No name is
// made or taken away by a call that is not recorded, so that another cannot have
// left it.
func (s *Supervisor) sign(c *call, f *foreseen) sign {
	if f.lost {
		return signNone
	}
	if f.at.dir < 0 {
		return map[bool]sign{true: signNone, false: signMissing}[f.at.had] // a descriptor without a name
	}
	now, there := f.at.currentStat()
	same := there && f.at.had && sameFile(&now, &f.at.was)
	missing := !there || same
	switch c.info.action {
	case event.FileMkdir, event.FileMknod:
	case event.FileSymlink:
		var buf [pathMax]byte
		text, errno := readlinkat(f.at.dir, f.at.name, buf[:])
		missing = missing || errno != 0 || string(text) != f.text
	case event.FileLink:
		missing = missing || f.to.had && now.Dev == f.to.was.Dev && now.Ino != f.to.was.Ino
	case event.FileUnlink:
		missing = same || !f.at.had
	case event.FileRename:
		missing = f.renameMissing(same)
	default:
		return f.altered(c, &now, same)
	}
	if missing {
		return signMissing
	}
	return signThere
}

// renameMissing reports whether a rename did not move what it should; same means that the
// file still has its name.
func (f *foreseen) renameMissing(same bool) (missing bool) {
	if f.at.had && f.to.had && sameFile(&f.at.was, &f.to.was) {
		return false // two names of one file: nothing is done (rename(2))
	}
	now, there := f.to.currentStat()
	return !f.at.had || same || !there || f.to.had && sameFile(&now, &f.to.was)
}

// altered checks a file that should be changed in place, and is still the same.
func (f *foreseen) altered(c *call, now *unix.Stat_t, same bool) sign {
	switch {
	case !f.at.had:
		return signMissing
	case !same: // it was copied up, or replaced
		return signNone
	case now.Ctim != f.at.was.Ctim:
		return signThere
	case !stamps(f.at.dir, f.at.was.Ctim, c.began):
		return signNone
	}
	switch c.info.action {
	case event.FileChmod, event.FileChown: // leave their time also where nothing else changes
		return signMissing
	case event.FileTruncate:
		if length := int64(c.args[1]); length != f.at.was.Size {
			return signMissing
		}
	}
	return signNone
}

// slowStamps is the least distance of two changes that have different times on every
// file system that stamps knows, in nanoseconds: several ticks of the kernel's clock.
const slowStamps = 50e6

// stamps reports whether a file system gives a change a time that differs from was,
// that of the one before. Since Linux 6.13 some do so always for a time that was
// looked at.
func stamps(dir int, was unix.Timespec, now int64) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(dir, &fs) != nil {
		return false
	}
	switch uint64(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return linux6(13) || now-was.Nano() > slowStamps
	case unix.OVERLAYFS_SUPER_MAGIC:
		return now-was.Nano() > slowStamps
	}
	return false
}
