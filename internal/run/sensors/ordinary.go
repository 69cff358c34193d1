//go:build linux

package sensors

import (
	"cmp"
	"os"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// probed are names outside the view that programs look for unprompted on every system;
// most hosts have none of them.
var probed = []string{
	"/etc/ld.so.preload", "/etc/suid-debug", // the dynamic linker
	"/sys/devices/system/cpu", "/sys/fs", "/selinux", "/etc/selinux", // coreutils, by libselinux
	"/etc/gitconfig", "/etc/npmrc", "/etc/pip.conf", "/etc/wgetrc", "/etc/curlrc", "/etc/vimrc", "/etc/zsh", "/etc/inputrc",
	"/etc/ssl/cert.pem", "/etc/environment", "/etc/debug", "/etc/localtime", "/etc/timezone", "/etc/nscd.conf", "/run/nscd",
	"/etc/ethers", "/etc/hosts.equiv", "/etc/mailcap", "/etc/apache", "/etc/os-release",
	// What the library of Python links to on Debian.
	"/etc/python3.9", "/etc/python3.10", "/etc/python3.11", "/etc/python3.12", "/etc/python3.13", "/etc/python3.14",
	"/sys/kernel", "/etc/machine-id", "/etc/gcrypt", "/etc/pkcs11", "/etc/crypto-policies",
}

// isOrdinary reports whether the boundary kept nothing from the caller of a look-up in a
// private directory: the host has no such name either, and the name is not one that
// holds credentials. If the first missing name is a directory of the user's, the
// boundary kept it, whatever is in it.
func (s *Set) isOrdinary(e event.Event, missing string) bool {
	path := cmp.Or(e.Resolved, e.Object)
	if !s.isPrivate(path) {
		return false
	}
	if e.Detail["creates"] != "" { // recorded as the call that creates it
		return true
	}
	if !s.place.Common(e) || exists(path) {
		return false
	}
	if !s.place.Personal(missing) && paths.Within(s.place.Home, missing) {
		return true
	}
	return !exists(missing)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isPrivate reports whether the run has its own tree in the place of a path.
func (s *Set) isPrivate(path string) bool {
	return boundary.InTrees(path, boundary.ScratchTrees(s.place.Home))
}

// hiddenByView reports whether a path that is missing in a private directory is not
// ordinary.
func (s *Set) hiddenByView(path string) bool {
	return s.isPrivate(path) && !s.isOrdinary(event.Event{Action: event.FileLookup, Object: path}, path)
}

// hasMarks reports whether an event must not be hidden by a flood of others.
func (s *Set) hasMarks(e event.Event) bool { return len(s.place.Marks(e)) > 0 }
