package sys

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// leastProcesses is how many threads and processes this program needs to start at
// all: with fewer the runtime of Go ends it with a trace.
const leastProcesses = 64

// FewProcesses reports whether this user may have too few processes and threads to
// start, and how many. The limit does not hold for root (RLIMIT_NPROC, getrlimit(2)).
func FewProcesses() (most uint64, few bool) {
	var limit unix.Rlimit
	if os.Geteuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return 0, false
	}
	return limit.Cur, limit.Cur < leastProcesses
}

// Confined reports whether a boundary like the one of a run is around this process:
// a filter of system calls that answers openat2(2) as an old kernel would.
func Confined() bool {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err == nil {
		unix.Close(fd)
	}
	status, _ := os.ReadFile("/proc/self/status")
	return errors.Is(err, unix.ENOSYS) && strings.Contains(string(status), "\nSeccomp:\t2\n")
}
