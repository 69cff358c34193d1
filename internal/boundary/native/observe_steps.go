//go:build linux

package native

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// waitKillable lets a task whose call has been received be interrupted by fatal
// signals alone, so that a call is never reported twice and programs see no
// EINTR that the kernel would not have given (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
// kernel 5.19).
const waitKillable = 1 << 5

// levelOf is what the filter reports for an observation; tripwire says whether the
// root of the view sees look-ups. Where it does not, the filter reports them, at
// both levels: which of them become events is the supervisor's.
func levelOf(o *boundary.Observation, tripwire bool) level {
	switch {
	case o == nil || o.Level != policy.RecordStandard && o.Level != policy.RecordFull:
		return levelNone
	case !tripwire:
		return levelLookups
	case o.Level == policy.RecordFull:
		return levelFull
	}
	return levelStandard
}

// watched installs the filter with a listener, hands that out and waits until
// it is served. The process has one thread, so that there is nothing
// to synchronise, and makes no call that is reported until then.
func (b *builder) watched(program uint64) {
	listener := b.listener(program)
	b.await("wait for the listener to be served")
	b.closeFD(listener)
}

// listener installs a filter with a listener and says its number. The
// supervisor takes it by that: to send it along would be a call that the filter
// reports, and the listener is not served yet.
func (b *builder) listener(program uint64) (listener ref) {
	listener = b.slot()
	b.call("install filter with a listener", unix.SYS_SECCOMP,
		[]any{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | waitKillable, program}, into(listener))
	b.message("announce listener", msgWatch, b.copyField(listener, 1))
	return listener
}

// takeListener takes the listener out of the process that announced it, which
// waits meanwhile and is still this program (pidfd_getfd(2)).
func takeListener(m *message) error {
	pidfd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return fmt.Errorf("receiving the seccomp listener: %w", err)
	}
	defer unix.Close(pidfd)
	fd, err := unix.PidfdGetfd(pidfd, int(m.fields[0]), 0)
	if err != nil {
		return fmt.Errorf("receiving the seccomp listener: %w", err)
	}
	m.file = os.NewFile(uintptr(fd), "listener")
	return nil
}

// rootDevice is the number of the descriptor of FUSE while the root is made: it
// is written in the options of the mount as text, so it is known beforehand. Behind
// the trees nothing else is open yet.
func (b *builder) rootDevice() int { return fdTrees + len(b.facts.trees) }

// openRootDevice opens the device in the user namespace that the file system will
// belong to (fuse_fill_super wants that), while the process may still be root's.
func (b *builder) openRootDevice() {
	fd := b.slot()
	b.call("tripwire: open /dev/fuse", unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str(fuseDevice), unix.O_RDWR | unix.O_CLOEXEC, 0}, into(fd))
	b.call("tripwire: place device", unix.SYS_DUP3, []any{fd, b.rootDevice(), unix.O_CLOEXEC})
	b.closeFD(fd)
}

const fuseDevice = "/dev/fuse"

// tripwireRoot makes the file system of the root and hands its device out. The
// first look-up waits until the device is served. No descriptor of it stays inside:
// when the supervisor dies, every look-up fails (ENOTCONN).
func (b *builder) tripwireRoot(root ref) {
	options := [][2]string{{"source", "holdfast"}, {"fd", strconv.Itoa(b.rootDevice())}, {"rootmode", "40755"},
		{"user_id", strconv.Itoa(b.facts.uid)}, {"group_id", strconv.Itoa(b.facts.gid)}, {"default_permissions", ""}}
	b.filesystem("tripwire", "fuse", options, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, root)
	msg, fd := b.rights(b.words(msgRoot, 0, 0), 24)
	b.call("tripwire: number of the device", noCall, []any{b.rootDevice()}, into(fd))
	b.call("tripwire: hand out device", unix.SYS_SENDMSG, []any{fdControl, msg, 0})
	b.call("tripwire: close device", unix.SYS_CLOSE, []any{b.rootDevice()})
}

// handOutStore gives the server of the root the directory that has what files of
// the private directories hold, and waits until it is taken.
func (b *builder) handOutStore() {
	b.mkdirOne(storeAt, 0o700)
	msg, number := b.rights(b.words(msgStore, 0, 0), 24)
	b.call("tripwire: open storage", unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str(storeAt), openPath, 0}, into(number))
	b.call("tripwire: hand out storage", unix.SYS_SENDMSG, []any{fdControl, msg, 0})
	b.call("tripwire: close storage", unix.SYS_CLOSE, []any{number})
	b.call("tripwire: wait until it is taken", unix.SYS_READ, []any{fdControl, b.words(0), 8}, want(8))
}

// pollOnce polls a file of the root, which its server answers with ENOSYS, so that the
// kernel asks never again (fuse_file_poll in fs/fuse/file.c). The Go runtime of the
// server polls each file that it opens, and would wait for an answer of its own.
func (b *builder) pollOnce() {
	file := b.slot() // and a struct pollfd that asks for nothing, poll(2)
	b.call("tripwire: open a file", unix.SYS_OPENAT, []any{unix.AT_FDCWD, b.str("/etc/hostname"), unix.O_RDONLY | unix.O_CLOEXEC, 0}, into(file))
	b.call("tripwire: poll it", unix.SYS_PPOLL, []any{uint64(file), 1, b.words(0, 0), 0, 8}, ignored())
	b.closeFD(file)
}

const storeAt = hidden + "/store"

// canTrip reports whether this process may open the device.
func canTrip() bool {
	f, err := os.OpenFile(fuseDevice, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// serve reports whether something is there from the beginning in the root that the
// supervisor serves: it is in that file system, and reached by no link. To have it
// made by system calls takes four requests for each file.
func (b *builder) serve(path string, mode uint32, content string) bool {
	if !b.facts.tripwire {
		return false
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if b.own[dir] {
			return false
		}
		if other, attached := b.over[dir]; attached {
			if other {
				return false
			}
			break
		}
	}
	b.served = append(b.served, boundary.Entry{Path: path, Mode: mode, Content: content})
	return true
}

// observe passes on what the launch hands out for its observer.
func (l *launch) observe(m message, p *process) error {
	o := l.spec.Observe
	if m.kind == msgWatch {
		if err := takeListener(&m); err != nil {
			return err
		}
	}
	if m.file == nil {
		return errors.New("the launch announced a descriptor for the supervisor but sent none")
	}
	uid, gid := l.facts.uid, l.facts.gid
	switch m.kind {
	case msgRoot:
		if err := o.Root(boundary.RootDevice{File: m.file, First: m.pid, UID: uid, GID: gid, Private: l.servedPaths(), Made: l.builder.served, Covers: coversAt, Charge: p.charge}); err != nil {
			return fmt.Errorf("serving the root of the view: %w", err)
		}
		return nil
	case msgStore:
		if err := o.Store(m.file); err != nil {
			return fmt.Errorf("serving the private directories: %w", err)
		}
		return send(p.control)
	}
	net := l.spec.Network
	watch := boundary.Watch{Closed: net == nil || !net.Intercept || l.facts.rung == boundary.Closed, Listener: m.file, Sockets: l.sockets, Trees: l.viewTrees(), First: m.pid, Portal: len(l.spec.Plan.Publish) > 0, UID: uid, GID: gid, Refuse: refusals(l.omit), Name: callName, Uncompared: l.omit["comparison"]}
	l.sockets = nil
	if err := o.Open(watch); err != nil {
		return fmt.Errorf("observing system calls: %w", err)
	}
	return send(p.control)
}

// servedPaths are the private directories that the file system of the root has.
func (l *launch) servedPaths() []string {
	var paths []string
	for _, s := range scratchParts(l.spec.Plan.Identity.Home) {
		if l.builder.keepingFor(s) == served {
			paths = append(paths, s.at)
		}
	}
	return paths
}

// refusals answers in the filter's place for what it reports instead of
// refusing. It reads the same table.
func refusals(omit map[string]bool) func(nr uint32, args [6]uint64) (syscall.Errno, bool) {
	if omit["listener-refusals"] {
		return func(uint32, [6]uint64) (syscall.Errno, bool) { return 0, false }
	}
	table := sync.OnceValues(func() (*callPolicy, error) {
		return loadPolicy(runtime.GOARCH, filterOptions{Omit: omittedGroups(omit)})
	})
	return func(nr uint32, args [6]uint64) (syscall.Errno, bool) {
		p, err := table()
		if err != nil { // the compiled filter came from this table; without it nothing is allowed
			return syscall.EPERM, true
		}
		answer := p.decide(p.audit, nr, args)
		switch answer & unix.SECCOMP_RET_ACTION_FULL {
		case unix.SECCOMP_RET_ALLOW:
			return 0, false
		case unix.SECCOMP_RET_ERRNO:
			return syscall.Errno(answer & unix.SECCOMP_RET_DATA), true
		default:
			return syscall.EPERM, true
		}
	}
}

var callNames = sync.OnceValue(func() map[uint32]string {
	names := map[uint32]string{}
	numbers, _ := callNumbers(runtime.GOARCH) // without it calls are named by number
	for name, nr := range maps.All(numbers) {
		names[nr] = name
	}
	return names
})

// callName names a system call of this architecture.
func callName(nr uint32) string {
	if name, ok := callNames()[nr]; ok {
		return name
	}
	return "call " + strconv.FormatUint(uint64(nr), 10)
}
