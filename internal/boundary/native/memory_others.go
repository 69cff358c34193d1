//go:build linux

package native

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// otherFiles is the memory in files that this user can see are not the run's: such
// files that processes outside every boundary map, and every file system in memory
// except the run's own private storage, including that of other runs. It stops once the
// run has ended.
func otherFiles(own uint64, ended <-chan struct{}) int64 {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0 // the pattern is a constant
	}
	var sum int64
	devices, namespaces := map[uint64]bool{own: true}, map[string]bool{}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if closed(ended) {
			return sum
		}
		// In the pid namespace of this process, and so in no boundary: status lists
		// its number in each namespace that it is in.
		if status := statusOf(pid); len(sys.StatusField(status, "NSpid")) == 1 {
			sum += statusBytes(status, "RssShmem")
		}
		if ns, err := os.Readlink(dir + "/ns/mnt"); err == nil && !namespaces[ns] {
			namespaces[ns] = true
			sum += mountedFiles(dir, devices)
		}
	}
	return sum
}

// mountedFiles is what the file systems in memory take that the process at dir
// in /proc sees mounted, each device once. A root that a program serves is not
// entered: it answers when it likes.
func mountedFiles(dir string, devices map[uint64]bool) int64 {
	mounts, err := readMounts(dir + "/mountinfo")
	if err != nil || slices.ContainsFunc(mounts, func(m boundary.Mount) bool { return m.Point == "/" && strings.HasPrefix(m.FSType, "fuse") }) {
		return 0
	}
	var sum int64
	for _, m := range mounts {
		var at unix.Stat_t
		var st unix.Statfs_t
		path := dir + "/root" + m.Point
		if m.FSType != "tmpfs" || unix.Lstat(path, &at) != nil || devices[at.Dev] || unix.Statfs(path, &st) != nil || !inMemory(st.Type) {
			continue
		}
		devices[at.Dev] = true
		sum += int64(st.Blocks-st.Bfree) * st.Bsize
	}
	return sum
}
