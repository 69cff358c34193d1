//go:build !linux

package sys

// FewProcesses reports whether this user may have too few processes to start, and
// how many; not here.
func FewProcesses() (most uint64, few bool) { return 0, false }

// Confined reports whether a boundary like that of a run is around this process; here
// there is none.
func Confined() bool { return false }
