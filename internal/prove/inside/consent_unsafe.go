//go:build linux

package inside

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raceArguments executes git below dir repeatedly, with an argument in shared
// memory that we constantly change between "status" and "push", as long as more says
// so. It returns how often.
func raceArguments(dir string, more func(count int, begun time.Time) bool) (count int, err error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return 0, unix.ENOENT
	}
	shared, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(shared)
	word := func(s string) (w [8]byte) { copy(w[:], s); return w }
	harmless, meant := word("status"), word("push")
	slot := (*uint64)(unsafe.Pointer(&shared[0]))
	first, second := *(*uint64)(unsafe.Pointer(&harmless)), *(*uint64)(unsafe.Pointer(&meant))
	var stop atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !stop.Load() {
			atomic.StoreUint64(slot, first)
			for range 50 {
				runtime.KeepAlive(slot)
			}
			atomic.StoreUint64(slot, second)
		}
	})
	defer func() { stop.Store(true); group.Wait() }()
	git, keep := gitCall(path, dir, slot)
	silent, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(silent)
	quiet := func(fd uintptr) Call { return C(unix.SYS_DUP3, uintptr(silent), fd, 0) }
	for begun := time.Now(); more(count, begun); count++ {
		_, _ = Forked([]Call{quiet(1), quiet(2), git})
	}
	runtime.KeepAlive(keep)
	return count, nil
}

// gitCall executes git below dir with one more argument, at slot. keep must live
// until the call is over.
func gitCall(path, dir string, slot *uint64) (call Call, keep any) {
	var pinned []*byte
	text := func(s string) uintptr {
		at, k := CString(s)
		pinned = append(pinned, k)
		return at
	}
	argv := []uintptr{text("git"), text("-C"), text(dir), uintptr(unsafe.Pointer(slot)), 0}
	var environment []uintptr
	for _, e := range append(gitEnv(), "HOME="+dir) {
		environment = append(environment, text(e))
	}
	environment = append(environment, 0)
	call = C(unix.SYS_EXECVE, text(path), Pointer(&argv[0]), Pointer(&environment[0]))
	return call, [3]any{pinned, argv, environment}
}
