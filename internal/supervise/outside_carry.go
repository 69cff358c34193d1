//go:build linux

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// openCarried are the flags of open(2) that a file outside may be opened with.
// The last two are O_LARGEFILE and O_NOFOLLOW, one on each architecture.
const openCarried = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC | unix.O_APPEND | unix.O_NONBLOCK |
	unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_SYNC | unix.O_DSYNC | 0x8000 | 0x20000

// hostPlace is where a path leads on the host.
type hostPlace struct {
	path   string // absolute, without links; as asked where it leads nowhere
	name   string // in the directory; "" where that could not be reached
	dir    identity
	exists bool
	is     identity
	kind   uint32
	errno  unix.Errno // of reaching the directory
}

// locate finds out where ch is on the host, before a question is asked.
func (ch *change) locate() {
	follow := !ch.call.info.stay
	switch f := ch.call.flags; ch.op {
	case "write":
		follow = f&unix.O_NOFOLLOW == 0 && f&(unix.O_CREAT|unix.O_EXCL) != unix.O_CREAT|unix.O_EXCL
	case "chmod":
		follow = ch.call.arg(ch.call.info.flags)&unix.AT_SYMLINK_NOFOLLOW == 0 || ch.call.info.flags < 0
	}
	ch.at = lookHost(ch.path, follow)
	if ch.to != "" {
		ch.dest = lookHost(ch.to, false)
	}
}

// lookHost finds where an absolute path leads outside.
func lookHost(at string, follow bool) (p hostPlace) {
	at = path.Clean(at)
	p.path = at
	if follow {
		if fd, err := openHost(unix.AT_FDCWD, at, unix.O_PATH, unix.RESOLVE_NO_MAGICLINKS); err == nil {
			at = descriptorPath(fd)
			unix.Close(fd)
		}
	}
	dir, name := path.Split(at)
	fd, err := openHost(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_MAGICLINKS)
	if err != nil || name == "" {
		p.errno = asErrno(err)
		return p
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		p.errno = asErrno(err)
		return p
	}
	p.dir, p.name = identityOf(&st), name
	p.path = path.Join(descriptorPath(fd), name)
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		p.exists, p.is, p.kind = true, identityOf(&st), st.Mode&unix.S_IFMT
	}
	return p
}

func descriptorPath(fd int) string {
	text, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "/"
	}
	return text
}

func openHost(dir int, name string, flags, resolve uint64) (int, error) {
	for try := 0; ; try++ {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve})
		if (err == unix.EAGAIN || err == unix.EINTR) && try < 8 {
			continue
		}
		return fd, err
	}
}

// Outside returns a Config.Carry that lets everything be carried out but what is
// one of these paths or below one, leads to one, or is below the kernel's own
// trees.
func Outside(never []string) func(op, path string) error {
	never = append(slices.Clone(never), "/proc", "/sys", "/dev")
	return func(_, at string) error {
		for _, n := range never {
			if paths.Within(n, at) || paths.Within(at, n) {
				return fmt.Errorf("%s is never changed from inside", n)
			}
		}
		return nil
	}
}

// mayCarry says why p may not be changed even where a human allowed it.
func (s *Supervisor) mayCarry(op string, p *hostPlace) error {
	if s.config.Carry == nil {
		return errors.New("this run may change nothing outside")
	}
	// A link of the host's may lead back into the view.
	if t := s.resolver.places.treeFor(p.path); t != nil && t.Access != policy.Read && (t.Access != policy.Copy || !s.isAskedAbout(p.path)) {
		return errors.New("it leads back into the view")
	}
	return s.config.Carry(op, p.path)
}

// carryOut does on the host what a human allowed. The directory must be the one
// that was there when the human was asked, and so must what is changed in it.
func (s *Supervisor) carryOut(ctx context.Context, ch *change) done {
	refused := func(err error) done { return done{fd: -1, why: err.Error()} }
	switch {
	case ctx.Err() != nil:
		return refused(errors.New("it was not answered before the run ended"))
	case ch.at.name == "":
		return done{fd: -1, errno: ch.at.errno}
	case ch.to != "" && ch.dest.name == "":
		return done{fd: -1, errno: ch.dest.errno}
	}
	if err := s.mayCarry(ch.op, &ch.at); err != nil {
		return refused(err)
	}
	dir, err := ch.at.open()
	if err != nil {
		return refused(err)
	}
	defer unix.Close(dir)
	if ch.to == "" {
		return asOwner(dir, func() done { return ch.carry(dir, -1) })
	}
	if err := s.mayCarry(ch.op, &ch.dest); err != nil {
		return refused(err)
	}
	to, err := ch.dest.open()
	if err != nil {
		return refused(err)
	}
	defer unix.Close(to)
	return asOwner(dir, func() done { return ch.carry(dir, to) })
}

// open opens the directory of p name by name, and sees that it is the same.
func (p *hostPlace) open() (int, error) {
	fd, err := openHost(unix.AT_FDCWD, path.Dir(p.path), unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
	if err != nil {
		return -1, fmt.Errorf("its directory changed while it waited: %w", err)
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	switch {
	case unix.Fstat(fd, &st) != nil || !identityOf(&st).file(p.dir):
		err = errors.New("its directory changed while it waited")
	case unix.Fstatfs(fd, &fs) != nil || slices.Contains(kernelFS, int64(fs.Type)):
		err = errors.New("it is on a file system of the kernel")
	case unix.Fstatat(fd, p.name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil != p.exists || p.exists && !identityOf(&st).file(p.is):
		err = errors.New("it changed while it waited")
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// kernelFS are file systems whose files are not ordinary files.
var kernelFS = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
	unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.DEVPTS_SUPER_MAGIC,
	unix.BINFMTFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC, unix.NSFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC, 0x62656570, 0x19800202}

// asOwner does something with the rights of the owner of dir, where we are root:
// what is made is the owner's, and nothing is done that the owner could not. Otherwise it is
// done with our own.
func asOwner(dir int, do func() done) done {
	if os.Geteuid() != 0 {
		return do()
	}
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return done{fd: -1, errno: asErrno(err)}
	}
	runtime.LockOSThread()
	_ = unix.Setfsgid(int(st.Gid))
	_ = unix.Setfsuid(int(st.Uid))
	var d done
	uid, _ := unix.SetfsuidRetUid(-1)
	gid, _ := unix.SetfsgidRetGid(-1)
	if uid == int(st.Uid) && gid == int(st.Gid) {
		d = do()
	} else {
		d = done{fd: -1, why: "the rights of its directory's owner cannot be assumed"}
	}
	_ = unix.Setfsuid(0)
	_ = unix.Setfsgid(0)
	if uid, _ := unix.SetfsuidRetUid(-1); uid == 0 {
		runtime.UnlockOSThread()
	} // a thread that is not ours again ends with its goroutine
	return d
}
