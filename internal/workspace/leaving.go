//go:build linux

package workspace

import (
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// wait lets other runs get on for a moment, as long as patience lasts. What is
// still there then is taken, whatever happened to it meanwhile.
func (v *settle) wait() bool {
	const moment = 50 * time.Millisecond
	v.mu.Lock()
	left := v.snap.Patience
	v.snap.Patience -= moment
	v.mu.Unlock()
	if left <= 0 {
		return false
	}
	time.Sleep(moment)
	return true
}

func (v *settle) link(rel string, st *unix.Statx_t) {
	key := inode{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links[key] == nil {
		v.links[key] = &linked{nlink: st.Nlink}
	}
	v.links[key].paths = append(v.links[key].paths, rel)
}

// stays reports whether the text of a link keeps it in the workspace. This only
// decides about a line in a list.
func (v *settle) stays(d *dir, w *walker, e entry) bool {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(d.fd, string(e.name()), buf)
	if err != nil {
		return true
	}
	_, ok := v.inTree(string(w.path), string(buf[:n]))
	return ok
}

// inTree returns the path from the root of target as it is read in the
// directory rel, if that is in the tree.
func (v *settle) inTree(rel, target string) (string, bool) {
	if !path.IsAbs(target) {
		target = string(v.t.Root) + "/" + rel + "/" + target
	}
	target = path.Clean(target)
	if target == string(v.t.Root) {
		return "", true
	}
	return strings.CutPrefix(target, string(v.t.Root)+"/")
}
