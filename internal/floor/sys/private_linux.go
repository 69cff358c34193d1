package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// KeepPrivate closes the memory and the descriptors of this process to others of
// the same user (ptrace(2), /proc/PID) and keeps them out of core files. Files of
// the process in /proc belong to root from then on, its own view of them is as
// before (proc(5)); what it executes is dumpable again, and what it forks with a
// user namespace must map its ids before it calls this.
func KeepPrivate() error {
	// The limit is 1 and not 0: with 0 a core_pattern that is a pipe is still served
	// (core(5)).
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}); err != nil {
		return fmt.Errorf("keeping secrets out of core dumps: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the memory of the supervisor: %w", err)
	}
	return nil
}
