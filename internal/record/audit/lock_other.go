//go:build !unix

package audit

import "os"

// openPlain has no flags on other systems.
const openPlain = 0

// lockFile does nothing: no run writes a log on this system.
func lockFile(*os.File) error { return nil }

// tryLock takes no lock: no run writes a log on this system.
func tryLock(*os.File) bool { return true }

// locked reports whether a process is writing the log f.
func locked(*os.File) bool { return false }
