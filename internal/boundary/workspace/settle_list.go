//go:build linux

package workspace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// open opens a tree where it is now. why is set if the tree is not there any more: the
// host moved or removed it, and what was left in it cannot be looked at.
func (v *settle) open(t *tree, external bool) (fd int, why string, err error) {
	if !external && v.snap.held != nil {
		var st unix.Stat_t
		if fd, err = openAt(int(v.snap.held.Fd()), []byte(".\x00")); err == nil && unix.Fstat(fd, &st) == nil && st.Nlink == 0 {
			unix.Close(fd)
			return -1, fmt.Sprintf("%q is gone: its contents were not checked", t.Root), nil
		}
		if err == nil {
			if from, moved := v.snap.followMove(t); moved {
				v.warn("%q was moved during the run: it was checked at %q", from, t.Root)
			}
			return fd, "", nil
		}
	}
	fd, err = openResolved(string(t.Root), unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return -1, fmt.Sprintf("%q is gone: its contents were not checked", t.Root), nil
	}
	if err != nil {
		return -1, "", err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, "", err
	}
	if st.Ino != t.Ino || st.Dev != t.Dev {
		unix.Close(fd)
		return -1, fmt.Sprintf("%q was moved or replaced: the directory now in its place was left alone, and what the run left in the original was not checked", t.Root), nil
	}
	return fd, "", nil
}

// listWhole lists what is known only when the whole tree was walked.
func (v *settle) listWhole() {
	v.listReplaced()
	for _, in := range v.indexes {
		v.listStaged(in)
	}
	for _, t := range v.deps {
		if n := t.changed.Load(); n > 0 && v.marks[t.path] != nil {
			v.addFlagged(Flagged{Path: v.full(t.path), Change: Changed, Rule: t.rule.Pattern, Reason: t.rule.Reason, Files: n})
		}
	}
	if len(v.unexamined) > 0 {
		v.listUnexamined()
		return
	}
	for rel, m := range v.marks {
		if !v.seen[rel] && v.rows[rel] == nil {
			v.addFlagged(Flagged{Path: v.full(rel), Change: Removed, Rule: m.Rule, Reason: "was there when the run began", Before: m.Sum})
		}
	}
	for _, l := range v.links {
		if int(l.nlink) > len(l.paths) && v.rows[l.paths[0]] == nil {
			v.addFlagged(Flagged{Path: v.full(l.paths[0]), Change: HardLink, Reason: "it has another name that was not found in the workspace"})
		}
	}
}

func (v *settle) repository(w *walker, d *dir) error {
	v.tables(w, d)
	return nil
}

func (v *settle) knownRepository(path []byte) bool { return v.repos[string(path)] }

// closed opens a directory that was made unreadable during the run, so that
// nothing hides in it, and takes one that is too deep to be looked at.
func (v *settle) closed(w *walker, d *dir, e entry, why error) (int, error) {
	if errors.Is(why, errTooDeep) {
		return -1, v.moveOut(w, d, e, &Rule{Reason: "unknown"}, why.Error())
	}
	h, err := openHandle(d.fd, string(e.name()))
	if err != nil {
		return -1, ignoreGone(err)
	}
	defer h.close()
	if !h.is(typeDir) {
		return -1, nil
	}
	if fd, err := h.openOwned(); err == nil {
		v.warn("%q had been made unreadable during the run and was opened again", v.full(w.pathTo(e)))
		return fd, nil
	}
	v.warn("%q cannot be read: %v", v.full(w.pathTo(e)), why)
	return -1, nil
}

// specialFile says how a file of mode is listed that is neither a regular file, a
// directory nor a link; "" of those.
func specialFile(mode uint16) (Change, string) {
	switch mode & typeMask {
	case unix.S_IFSOCK:
		return Socket, "programs on the host may connect to it"
	case unix.S_IFIFO:
		return FIFO, "programs on the host that open it wait, or read what another writes"
	case unix.S_IFCHR, unix.S_IFBLK:
		return Device, "programs on the host that open it act on a device"
	}
	return "", ""
}
