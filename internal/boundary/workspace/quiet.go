//go:build linux

package workspace

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A directory is quiet if from the start to the end of a run the kernel reported no
// event in it (fanotify(7)), and its identity and its change time are the same. Settle
// skips its contents. The kernel reports each name that is made, removed or renamed and
// each file that is written to or given another mode, owner or attribute, through any
// mount. Two things it does not report in time: changes to a file by another name in a
// directory that is not watched, and writes through shared memory where the file is closed
// only after the end. Therefore a directory with a file that has several names is looked
// through, and if the run may have added a name or hidden a descriptor, no directory is
// quiet: see NothingHidden.

const (
	// unwatched is how many names are read before the first directory is watched: a smaller
	// tree is looked through again sooner than watches are made and removed.
	unwatched = 512

	watchedEvents = unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO |
		unix.FAN_MODIFY | unix.FAN_CLOSE_WRITE | unix.FAN_ATTRIB | unix.FAN_ONDIR | unix.FAN_EVENT_ON_CHILD
)

// watchable are the file systems that report every change, because only the kernel
// makes them, and that keep change times and inode numbers.
var watchable = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC}

// watch is the kernel's list of the directories of a tree in which something happened.
type watch struct {
	dev    uint64      // of the tree; what is mounted in it is not watched
	kind   int64       // of its file system
	ended  atomic.Bool // nothing more is watched
	open   sync.Once
	events *os.File // nil for none
}

// begin prepares for the tree at root.
func (w *watch) begin(root int, dev uint64) {
	var fs unix.Statfs_t
	if unix.Fstatfs(root, &fs) != nil {
		w.ended.Store(true)
	}
	w.dev, w.kind = dev, int64(fs.Type)
}

// add watches the directory d, whose names are not read yet. It reports whether d can be
// quiet, and its change time.
func (w *watch) add(d *dir) (ctime int64, ok bool) {
	if w.ended.Load() {
		return 0, false
	}
	w.open.Do(func() {
		fd := -1
		if slices.Contains(watchable, w.kind) {
			fd, _ = unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_REPORT_DIR_FID, unix.O_RDONLY)
		}
		if fd < 0 {
			w.ended.Store(true)
			return
		}
		w.events = os.NewFile(uintptr(fd), "fanotify")
	})
	if w.events == nil {
		return 0, false
	}
	var st unix.Statx_t
	err := w.control(func(fd int) error { return unix.FanotifyMark(fd, unix.FAN_MARK_ADD, watchedEvents, d.fd, "") })
	if err == nil {
		err = statAt(d.fd, []byte(".\x00"), &st)
	}
	if err != nil { // the user has no more watches, or an old kernel none of this kind
		w.ended.Store(true)
		return 0, false
	}
	return nanos(st.Ctime), unix.Mkdev(st.Dev_major, st.Dev_minor) == w.dev
}

func (w *watch) control(f func(fd int) error) error {
	c, err := w.events.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := c.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// end ends watching.
func (w *watch) end() {
	if w.ended.Store(true); w.events != nil {
		closeInFlight(w.events)
	}
}

// closeInFlight closes f, and does not wait as close(2) does: for up to 20 ms where the
// kernel has watches to remove. f is sent over a socket that is in flight itself, so that
// nothing but the collector of such sockets can close the two (unix(7)), which since Linux
// 6.8 is a thread of the kernel's. It begins when the other end is closed.
func closeInFlight(f *os.File) {
	if pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		defer unix.Close(pair[0])
		if c, err := f.SyscallConn(); err == nil {
			_ = c.Control(func(fd uintptr) {
				_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(int(fd), pair[1]), nil, 0) // if not, it is closed below
			})
		}
		unix.Close(pair[1])
	}
	f.Close()
}

// changedDirs returns the handles of the directories in which something happened. ok is
// false if the kernel had to drop some.
func (w *watch) changedDirs() (dirs map[string]bool, ok bool) {
	if w.events == nil {
		return nil, false
	}
	dirs, buf := map[string]bool{}, make([]byte, 64<<10)
	for {
		n := 0
		err := w.control(func(fd int) (err error) { n, err = unix.Read(fd, buf); return err })
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return dirs, true
		case err != nil || n == 0 || !eachEvent(buf[:n], func(handle string) { dirs[handle] = true }):
			return nil, false
		}
	}
}

// eachEvent calls f with the handle of the directory of each event. It returns false where
// one has none.
func eachEvent(b []byte, f func(handle string)) bool {
	const fixed, info = 24, 12 // bytes of an event; of its information before the handle
	for len(b) >= fixed+info+8 {
		size, mask, kind := int(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint64(b[8:]), b[fixed]
		// The second type is that of file events, for which the group reports the
		// directory.
		if mask&unix.FAN_Q_OVERFLOW != 0 || kind != unix.FAN_EVENT_INFO_TYPE_DFID && kind != unix.FAN_EVENT_INFO_TYPE_FID {
			return false
		}
		handle := b[fixed+info:]
		n := 8 + int(binary.NativeEndian.Uint32(handle))
		if size > len(b) || size < fixed+info+n {
			return false
		}
		f(string(handle[4:n]))
		b = b[size:]
	}
	return len(b) == 0
}

// handleOf is the handle of a directory as events have it: its type, and its bytes.
func handleOf(dir int, name string) (string, bool) {
	h, _, err := unix.NameToHandleAt(dir, name, 0)
	if err != nil {
		return "", false
	}
	return string(binary.NativeEndian.AppendUint32(nil, uint32(h.Type()))) + string(h.Bytes()), true
}

// find asks which directories something happened in.
func (l *endWalk) find(nothingHidden bool) {
	if l.known == nil {
		return
	}
	if nothingHidden {
		l.happened, _ = l.known.watch.changedDirs()
	}
	l.known.watch.end()
}

// candidate returns what the directory s in the one that w walks was at the start, if it
// may have been quiet since; nil if not.
func (l *endWalk) candidate(w *walker, s *sub) *listing {
	if l == nil || l.happened == nil || s.git {
		return nil
	}
	w.full = w.join(append(w.full[:0], w.path...), s.nameZ[:len(s.nameZ)-1])
	was := l.known.byPath[string(w.full)]
	if was == nil || !was.watched || was.ino != s.ino || was.dep != (s.dep != nil) || was.inGit != s.inGit || was.repo != s.repo {
		return nil
	}
	return was
}

// quiet reports whether the directory under a name is the one that was watched, and was
// quiet.
func (l *endWalk) quiet(was *listing, dir int, nameZ []byte) bool {
	var st unix.Statx_t
	if statAt(dir, nameZ, &st) != nil || st.Mode&typeMask != typeDir || st.Ino != was.ino || nanos(st.Ctime) != was.ctime ||
		unix.Mkdev(st.Dev_major, st.Dev_minor) != l.known.watch.dev {
		return false
	}
	if len(l.happened) > 0 {
		if h, ok := handleOf(dir, string(nameZ[:len(nameZ)-1])); !ok || l.happened[h] {
			return false
		}
	}
	was.seen.Store(true)
	return true
}

// directories visits the directories in a quiet directory.
func (w *walker) directories(d *dir) (subs []sub, err error) {
	eachName(d.still.list, func(n named) {
		if n.typ == unix.DT_DIR && err == nil {
			err = w.entry(d, entry{nameZ: []byte(n.name + "\x00"), typ: n.typ, ino: n.ino}, &subs)
		}
	})
	return subs, err
}
