//go:build linux

package native

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/sys"
)

const (
	countTime  = 10 * time.Second // how long trees are counted
	countDepth = 256              // how far down; each level holds a descriptor
)

// diskCounter counts what a run has on disk, and says what it could not count.
type diskCounter struct {
	sum      usage
	since    time.Time // zero for never
	made     usage     // of sum: what was made since then, where the file system knows
	fresh    usage     // likewise: all else that changed since then
	blind    string    // what cannot be counted, in words; "" for nothing
	passing  bool      // of blind: it is over in a moment, where it is honest
	onDisk   func(fs int64, device uint64) bool
	linked   map[[2]uint64]bool // files with more names than one, and those without
	deadline time.Time
	ended    <-chan struct{} // closed when the count is no longer needed
}

func newDiskCounter(onDisk func(int64, uint64) bool, ended <-chan struct{}) *diskCounter {
	return &diskCounter{onDisk: onDisk, ended: ended, linked: map[[2]uint64]bool{}, deadline: time.Now().Add(countTime)}
}

// tree counts everything below a directory, or a file.
func (c *diskCounter) tree(t tree) {
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		c.blind = t.path + " cannot be measured"
		return
	}
	c.countFile(t.fd, "", &st)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		c.dir(t.fd, ".", &st, 0)
	}
}

// countFile counts what a file, a directory or a link takes.
func (c *diskCounter) countFile(dir int, name string, st *unix.Stat_t) {
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR && !c.markLinked(st) {
		return
	}
	takes := usage{st.Blocks * 512, 1}
	c.sum = c.sum.plus(takes)
	switch {
	case time.Unix(st.Ctim.Unix()).Before(c.since):
	case c.isMade(dir, name):
		c.made = c.made.plus(takes)
	default:
		c.fresh = c.fresh.plus(takes)
	}
}

// isMade reports whether a file was made since then (statx(2) STATX_BTIME); false if
// the file system does not report it.
func (c *diskCounter) isMade(dir int, name string) bool {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	return err == nil && st.Mask&unix.STATX_BTIME != 0 && !time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(c.since)
}

func (c *diskCounter) markLinked(st *unix.Stat_t) bool {
	key := [2]uint64{st.Dev, st.Ino}
	if c.linked[key] {
		return false
	}
	c.linked[key] = true
	return true
}

// dir counts what is in a directory. By descriptor: names can be exchanged
// meanwhile, and a path can be too long to be opened.
func (c *diskCounter) dir(parent int, name string, st *unix.Stat_t, depth int) {
	if depth > countDepth || c.late() {
		c.blind = "it has too many or too deep directories to be measured"
		return
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return // it is gone, or something else since
	case err != nil:
		if int(st.Uid) == os.Geteuid() || !errors.Is(err, unix.EACCES) { // what belongs to others was not made by a run of this user
			c.blind = "a directory in it cannot be read"
		}
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			c.countFile(fd, name, &st)
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				c.dir(fd, name, &st, depth+1)
			}
		}
		if err != nil || c.late() {
			return
		}
	}
}

// late reports whether it is time to stop.
func (c *diskCounter) late() bool { return closed(c.ended) || time.Now().After(c.deadline) }

// countUnnamed counts the open files without a name, which are in no tree. What
// holds such a file where it cannot be counted is noted: a process that does
// not show its descriptors, a mapping, a descriptor that is on its way through
// a socket.
func (c *diskCounter) countUnnamed(pids, helpers []int) {
	for _, pid := range pids {
		if slices.Contains(helpers, innerPID(pid)) {
			continue
		}
		hidden, sum := unnamedOf(pid, c.onDisk, c.markLinked)
		c.sum.bytes += sum
		c.made.bytes += sum // only the run has such a file
		switch {
		case hidden:
			c.blind, c.passing = "a process hides its open files", false
		case mapsUnnamed(pid, c.linked):
			c.blind, c.passing = "a file without a name is mapped", false
		case c.blind == "" && inFlight(pid):
			c.blind, c.passing = "open files are in transit between its processes", true
		}
	}
}

// unnamedBytes is what the open files without a name take that are of interest,
// of those processes that show them.
func unnamedBytes(pids []int, interesting func(fs int64, device uint64) bool) int64 {
	c := newDiskCounter(interesting, nil)
	var sum int64
	for _, pid := range pids {
		_, bytes := unnamedOf(pid, interesting, c.markLinked)
		sum += bytes
	}
	return sum
}

// unnamedOf is that of one process, and whether it hides its files. One that
// has ended hides nothing.
func unnamedOf(pid int, interesting func(int64, uint64) bool, unseen func(*unix.Stat_t) bool) (hidden bool, sum int64) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, os.ErrPermission), 0
	}
	for _, e := range entries {
		var st unix.Stat_t
		var fs unix.Statfs_t
		path := dir + "/" + e.Name()
		if unix.Stat(path, &st) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if unix.Statfs(path, &fs) == nil && interesting(fs.Type, st.Dev) && unseen(&st) {
			sum += st.Blocks * 512
		}
	}
	return false, sum
}

// innerPID is the number of a process in the innermost pid namespace it is in.
func innerPID(pid int) int {
	f := sys.StatusField(statusOf(pid), "NSpid")
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[len(f)-1])
	return n
}

// inFlight reports whether a socket of a process holds descriptors that are not
// received yet (scm_fds in fdinfo, kernel 5.6).
func inFlight(pid int) bool {
	dir := fmt.Sprintf("/proc/%d/fdinfo", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, os.ErrPermission)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(dir + "/" + e.Name())
		if _, rest, ok := strings.Cut(string(raw), "scm_fds:"); err == nil && ok {
			if f := strings.Fields(rest); len(f) > 0 && f[0] != "0" {
				return true
			}
		}
	}
	return false
}

// mapsUnnamed reports whether a process maps a file of a disk that has no name and
// was not counted.
func mapsUnnamed(pid int, counted map[[2]uint64]bool) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return errors.Is(err, os.ErrPermission)
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasSuffix(strings.TrimSpace(line), "(deleted)") {
			continue
		}
		var major, minor uint32
		ino, err := strconv.ParseUint(f[4], 10, 64)
		if _, serr := fmt.Sscanf(f[3], "%x:%x", &major, &minor); serr != nil || err != nil {
			return true
		}
		inMemory := major == 0 && slices.ContainsFunc([]string{"/memfd:", "/dev/zero", "/SYSV", "/tmp/", "/var/tmp/", "/dev/shm/", "/run/"},
			func(prefix string) bool { return strings.HasPrefix(f[5], prefix) })
		if !inMemory && !counted[[2]uint64{unix.Mkdev(major, minor), ino}] {
			return true
		}
	}
	return false
}
