//go:build linux

package supervise

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// store has what the files of private directories hold: a file for each, named by
// its number, in a directory that is in no view. What no process inside can
// name, none can exchange: no link is followed, and the names are ours.
//
// It is memory of the supervisor's, which would not count against the limit of the
// run's: charge is called before more is taken, and may refuse.
type store struct {
	dir     int
	open    []stored // the last used, the most recent last
	used    map[uint64]int64
	sum     int64 // of used, bytes
	charged int64 // at least as many, in steps of storeStep
	charge  func(bytes int64) error
}

// storeStep is by how much more is charged at a time.
const storeStep = 16 << 20

// stored is a file of the storage that is open.
type stored struct {
	id uint64
	fd int
}

// storeOpen is how many files are kept open.
const storeOpen = 64

// newStore takes over dir. A nil charge refuses nothing.
func newStore(dir *os.File, charge func(bytes int64) error) (*store, error) {
	defer dir.Close()
	fd, err := unix.FcntlInt(dir.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return &store{dir: fd, used: map[uint64]int64{}, charge: charge}, nil
}

func (s *store) close() {
	if s == nil {
		return
	}
	for _, o := range s.open {
		unix.Close(o.fd)
	}
	s.open = nil
	unix.Close(s.dir)
}

func storeName(id uint64) string { return strconv.FormatUint(id, 10) }

// create makes an empty file. A store that is not there yet has no room.
func (s *store) create(id uint64) unix.Errno {
	if s == nil {
		return unix.ENOSPC
	}
	fd, err := unix.Openat(s.dir, storeName(id), unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return asErrno(err)
	}
	s.cacheDescriptor(id, fd)
	return 0
}

func (s *store) cacheDescriptor(id uint64, fd int) {
	if len(s.open) == storeOpen {
		unix.Close(s.open[0].fd)
		s.open = slices.Delete(s.open, 0, 1)
	}
	s.open = append(s.open, stored{id, fd})
}

// file is an open descriptor of a file.
func (s *store) file(id uint64) (int, unix.Errno) {
	for i := len(s.open) - 1; i >= 0; i-- {
		if s.open[i].id == id {
			return s.open[i].fd, 0
		}
	}
	fd, err := unix.Openat(s.dir, storeName(id), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, asErrno(err)
	}
	s.cacheDescriptor(id, fd)
	return fd, 0
}

func (s *store) remove(id uint64) {
	if i := slices.IndexFunc(s.open, func(o stored) bool { return o.id == id }); i >= 0 {
		unix.Close(s.open[i].fd)
		s.open = slices.Delete(s.open, i, i+1)
	}
	unix.Unlinkat(s.dir, storeName(id), 0) // a file that stays does no harm, and counts against the size of the storage
	s.recordUse(id, 0)
	delete(s.used, id)
}

// recordUse notes how much a file takes.
func (s *store) recordUse(id uint64, bytes int64) {
	s.sum += bytes - s.used[id]
	s.used[id] = bytes
	if s.sum < s.charged-2*storeStep && s.charge != nil && s.charge(s.sum+storeStep) == nil {
		s.charged = s.sum + storeStep
	}
}

// measure notes what a file that is open takes.
func (s *store) measure(id uint64, fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil {
		s.recordUse(id, st.Blocks*512)
	}
}

// reserve charges room for that many bytes more.
func (s *store) reserve(bytes int64) unix.Errno {
	if s.charge == nil || s.sum+bytes <= s.charged {
		return 0
	}
	want := s.sum + bytes + storeStep
	if s.charge(want) != nil {
		return unix.ENOSPC
	}
	s.charged = want
	return 0
}

func (s *store) resize(id, size uint64) unix.Errno {
	fd, errno := s.file(id)
	if errno != 0 {
		return errno
	}
	if size > 1<<63-1 {
		return unix.EFBIG
	}
	err := unix.Ftruncate(fd, int64(size))
	s.measure(id, fd)
	return asErrno(err)
}

func (s *store) write(id, offset uint64, data []byte) (int, unix.Errno) {
	fd, errno := s.file(id)
	if errno != 0 {
		return 0, errno
	}
	if offset > 1<<63-1-uint64(len(data)) {
		return 0, unix.EFBIG
	}
	if errno := s.reserve(int64(len(data)) + 4096); errno != 0 { // the last page is whole
		return 0, errno
	}
	n, err := unix.Pwrite(fd, data, int64(offset))
	s.measure(id, fd)
	return max(n, 0), asErrno(err)
}

// read appends size bytes, or as many as there are.
func (s *store) read(id, offset uint64, size int, out []byte) ([]byte, unix.Errno) {
	fd, errno := s.file(id)
	if errno != 0 {
		return nil, errno
	}
	have := len(out)
	out = slices.Grow(out, size)[:have+size]
	n, err := unix.Pread(fd, out[have:], int64(offset))
	return out[:have+max(n, 0)], asErrno(err)
}

// room is the result of statfs(2) for the storage.
func (s *store) room() (unix.Statfs_t, unix.Errno) {
	var st unix.Statfs_t
	return st, asErrno(unix.Fstatfs(s.dir, &st))
}

// asErrno is the error number of a system call's error.
func asErrno(err error) unix.Errno {
	switch e := err.(type) {
	case nil:
		return 0
	case unix.Errno:
		return e
	}
	return unix.EIO
}
