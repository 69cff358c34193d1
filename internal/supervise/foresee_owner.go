//go:build linux

package supervise

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// judgeOwner judges what the owner of a file may change.
func (s *Supervisor) judgeOwner(c *call, at *location) outcome {
	cr, kind := &c.proc.creds, at.stat.Mode&unix.S_IFMT
	errno := ""
	switch owner := cr.uid == at.stat.Uid || cr.owner; c.info.action {
	case event.FileChown:
		errno = s.newOwner(c, at)
	case event.FileXattr:
		return s.attribute(c, at, owner)
	default:
		if kind == unix.S_IFLNK {
			return allowed(unix.ErrnoName(unix.EOPNOTSUPP)) // a link has no mode
		}
		if !owner {
			errno = "EPERM"
		}
	}
	if errno == "EPERM" {
		return denied(event.LayerPermissions, "", errno)
	}
	return allowed(errno)
}

// newOwner is the error of changing the owner of a file: only a capability gives it to
// another user, and its owner to no group but those that the owner is in (chown(2)).
func (s *Supervisor) newOwner(c *call, at *location) string {
	cr := &c.proc.creds
	owner := cr.uid == at.stat.Uid
	for i, now := range [...]uint32{at.stat.Uid, at.stat.Gid} {
		id := uint32(c.args[int(c.info.arg)+i])
		if id == 1<<32-1 {
			continue // it stays as it is
		}
		to, mapped := s.mapID(c, i, id)
		switch {
		case !mapped:
			return "EINVAL"
		case cr.hasCapability(unix.CAP_CHOWN), owner && (to == now || i == 1 && cr.inGroup(to)):
		default:
			return "EPERM"
		}
	}
	return ""
}

// idMaps are the files that say which ids the users and groups of a process have
// outside (user_namespaces(7)).
var idMaps = [...]string{"uid_map", "gid_map"}

// mapID is the number that the supervisor has for a user (0) or group (1) of the
// caller; false if there is none. All inside are in one user namespace.
func (s *Supervisor) mapID(c *call, which int, id uint32) (uint32, bool) {
	if s.ids[which] == nil {
		text := c.proc.readEntry(c.tid, idMaps[which], make([]byte, 4096)) // at most 340 lines; those after it are of no use here
		if text == nil {
			return id, true
		}
		s.ids[which] = parseIDs(string(text))
	}
	for _, r := range s.ids[which] {
		if id >= r[0] && id-r[0] < r[2] {
			return r[1] + id - r[0], true
		}
	}
	return 0, false
}

// parseIDs reads lines of a beginning inside, a beginning outside and a length.
func parseIDs(text string) [][3]uint32 {
	out := [][3]uint32{}
	for line := range strings.Lines(text) {
		var r [3]uint32
		f := strings.Fields(line)
		for i := 0; i < len(f) && i < len(r); i++ {
			n, _ := strconv.ParseUint(f[i], 10, 32)
			r[i] = uint32(n)
		}
		out = append(out, r)
	}
	return out
}

// nameSpaces are those that extended attributes have.
var nameSpaces = []string{"user", "security", "system", "trusted"}

// attribute judges a change of an extended attribute (xattr(7)).
func (s *Supervisor) attribute(c *call, at *location, owner bool) outcome {
	cr, kind, errno := &c.proc.creds, at.stat.Mode&unix.S_IFMT, ""
	space, _, _ := strings.Cut(c.attribute, ".")
	switch {
	case space == "security" && !cr.hasCapability(unix.CAP_SYS_ADMIN) && !(c.attribute == "security.capability" && cr.hasCapability(unix.CAP_SETFCAP)):
		errno = "EPERM"
	case space == "trusted" && !cr.hasCapability(unix.CAP_SYS_ADMIN):
		errno = "EPERM"
	case space == "system" && !owner:
		errno = "EPERM"
	case space == "user" && kind != unix.S_IFREG && (kind != unix.S_IFDIR || at.stat.Mode&unix.S_ISVTX != 0 && !owner):
		errno = "EPERM"
	case space != "security" && space != "system" && !cr.may(&at.stat, 2):
		errno = "EACCES"
	}
	if errno != "" {
		return denied(event.LayerPermissions, "", errno)
	}
	return allowed(s.xattrError(c, at))
}

// xattrError is the error that an extended attribute has for being there, or not.
func (s *Supervisor) xattrError(c *call, at *location) string {
	if at.dir == nil {
		return ""
	}
	file := string(bytes.Join([][]byte{s.resolver.ownPath(at.dir.fd), at.name}, slash))
	_, err := unix.Lgetxattr(file, c.attribute, nil)
	if err == unix.EACCES { // it cannot be read, but its name can
		err = listed(file, c.attribute)
	}
	flags := c.setFlags()
	space, _, _ := strings.Cut(c.attribute, ".")
	switch {
	case !slices.Contains(nameSpaces, space):
		return unix.ErrnoName(unix.EOPNOTSUPP)
	case err == unix.EOPNOTSUPP, err == unix.ENODATA && (removesAttribute(c.nr) || flags&unix.XATTR_REPLACE != 0):
		return unix.ErrnoName(err.(syscall.Errno))
	case err == nil && flags&unix.XATTR_CREATE != 0:
		return "EEXIST"
	}
	return ""
}

// listed is ENODATA when a file has no extended attribute of that name.
func listed(file, name string) error {
	buf := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Llistxattr(file, buf)
	if err == nil && !slices.Contains(strings.Split(string(buf[:n]), "\x00"), name) {
		return unix.ENODATA
	}
	return err
}

func removesAttribute(nr int32) bool {
	switch uint32(nr) {
	case unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT:
		return true
	}
	return false
}

// setFlags are those of setxattr(2); none for calls that have them in memory.
func (c *call) setFlags() uint64 {
	switch uint32(c.nr) {
	case unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR:
		return c.args[4]
	}
	return 0
}
