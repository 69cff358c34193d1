//go:build linux

package harness

import (
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/report"
)

// Host describes this machine, without names.
func Host() report.Host { return thisHost() }

// thisHost describes the machine, without names.
func thisHost() report.Host {
	h := report.Host{OS: release(), Arch: runtime.GOARCH, User: "user", CPUs: runtime.NumCPU(), Landlock: landlock()}
	if os.Geteuid() == 0 {
		h.User = "root"
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	return h
}

// release returns PRETTY_NAME (os-release(5)).
func release() string {
	b, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// landlock returns the version of the kernel's Landlock ABI, 0 for none
// (landlock_create_ruleset(2)).
func landlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}
