package policy

import (
	"os"
	"path/filepath"
	"strings"
)

// ownState refuses a state directory that another user controls: reviews, journals,
// keys and trust pins in it are obeyed, so whoever owns it, or a directory or link
// on the way to it, would decide what this user writes and where. Root with the
// HOME of somebody else (sudo -E) is the usual case.
func (h Host) ownState() error {
	refuse := func(what, path string, owner int) error {
		return fault(Origin{}, "set HOME or XDG_STATE_HOME to a directory of your own (with sudo: sudo -H holdfast …)",
			"the state directory %s is not safe: %s %s belongs to user %d, not to you or root", quote(h.State), what, quote(path), owner)
	}
	for p := h.State; ; p = filepath.Dir(p) {
		at, err := locate(p)
		for _, l := range at.links {
			if !h.trusts(l.owner) {
				return refuse("the link", l.at, l.owner)
			}
		}
		if err != nil && p != "/" {
			continue // it is not there yet, or cannot be used anyway
		}
		for dir := at.path; err == nil && dir != "/"; dir = filepath.Dir(dir) {
			if up, err := locate(dir); err == nil && !h.trusts(up.owner) {
				return refuse("the directory", dir, up.owner)
			}
		}
		return nil
	}
}

// trusts reports whether a file of this owner is one of the user's or root's. In
// a user namespace that maps a part of the users, all others, root of the host
// among them, are shown as the overflow user.
func (h Host) trusts(owner int) bool {
	const overflow = 65534 // /proc/sys/kernel/overflowuid, as good as always
	return owner == h.UID || owner == 0 || owner == overflow && mappedInPart()
}

func mappedInPart() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}
