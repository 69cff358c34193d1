//go:build linux

package workspace

import (
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// waitForOthers sleeps for a moment, so that another run can finish or remove what it is
// writing. It returns false once Patience is used up.
func (v *settle) waitForOthers() bool {
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

func (v *settle) noteLink(rel string, st *unix.Statx_t) {
	key := inode{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.links[key] == nil {
		v.links[key] = &linked{nlink: st.Nlink}
	}
	v.links[key].paths = append(v.links[key].paths, rel)
}

// enclosed makes Settle take links that lead out of the tree, where no honest
// program makes any and one on the host writes later.
func enclosed() Option { return func(s *scan) { s.enclosed = true } }

// outOfHistory is the rule for links in such a tree.
var outOfHistory = &Rule{Pattern: "link", Reason: "the agent on the host writes through it"}

// staysIn reports whether the text of a link keeps it in the tree. certain requires
// that the kernel resolves the text the same way: after a name that is a link, ".."
// leads elsewhere. A name that is no longer a link stays.
func (v *settle) staysIn(d *dir, w *walker, e entry, certain bool) bool {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(d.fd, string(e.name()), buf)
	if err != nil {
		return true
	}
	named := false
	for c := range strings.SplitSeq(string(buf[:n]), "/") {
		if c == ".." && named && certain {
			return false
		}
		named = named || c != ".." && c != "." && c != ""
	}
	return v.inTree(string(w.path), string(buf[:n]))
}

// inTree reports whether target, as it is read in the directory rel, is in the
// tree.
func (v *settle) inTree(rel, target string) bool {
	if !path.IsAbs(target) {
		target = string(v.t.Root) + "/" + rel + "/" + target
	}
	target = path.Clean(target)
	return target == string(v.t.Root) || strings.HasPrefix(target, string(v.t.Root)+"/")
}
