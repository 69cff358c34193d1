//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// raced is a call that has one of two paths, as another thread likes.
type raced struct {
	name   string
	action string
	ready  func(path string) // before each call
	call   func(path unsafe.Pointer) (fd uintptr, errno unix.Errno)
	did    func(path string, fd uintptr) bool // whether it was this one
}

func raw(nr uintptr, a ...uintptr) (uintptr, unix.Errno) {
	var b [4]uintptr
	copy(b[:], a)
	r, _, errno := unix.RawSyscall6(nr, b[0], b[1], b[2], b[3], 0, 0)
	return r, errno
}

var here = uintptr(0xffffffffffffff9c) // AT_FDCWD

func raceOpen(name string, flags int, there bool) raced {
	return raced{name, event.FileWrite, func(path string) {
		os.Remove(path)
		if there {
			os.WriteFile(path, []byte("12345678"), 0o644)
		}
	}, func(path unsafe.Pointer) (uintptr, unix.Errno) {
		return raw(unix.SYS_OPENAT, here, uintptr(path), uintptr(flags), 0o644)
	}, func(path string, fd uintptr) bool {
		var a, b unix.Stat_t
		return unix.Fstat(int(fd), &a) == nil && unix.Stat(path, &b) == nil && a.Ino == b.Ino
	}}
}

var otherPath, madePath = []byte("./other\x00"), []byte("./made\x00")

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

func raceMake(name, action string, call func(path unsafe.Pointer) (uintptr, unix.Errno)) raced {
	return raced{name, action, func(path string) { os.Remove(path) }, call, func(path string, _ uintptr) bool { return exists(path) }}
}

func races() []raced {
	file := func(path string) { os.WriteFile(path, []byte("12345678"), 0o644) }
	other, made := uintptr(unsafe.Pointer(&otherPath[0])), uintptr(unsafe.Pointer(&madePath[0]))
	size := func(path string) int64 { fi, _ := os.Stat(path); return fi.Size() }
	return []raced{
		raceOpen("write", unix.O_WRONLY, true),
		raceOpen("truncate-open", unix.O_WRONLY|unix.O_TRUNC, true),
		raceOpen("create", unix.O_WRONLY|unix.O_CREAT, false),
		raceOpen("create-to-read", unix.O_RDONLY|unix.O_CREAT, false),
		raceOpen("create-exclusive", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, false),
		{"unlink", event.FileUnlink, file, func(p unsafe.Pointer) (uintptr, unix.Errno) { return raw(unix.SYS_UNLINKAT, here, uintptr(p), 0) },
			func(path string, _ uintptr) bool { return !exists(path) }},
		{"rename", event.FileRename, file, func(p unsafe.Pointer) (uintptr, unix.Errno) {
			return raw(unix.SYS_RENAMEAT, here, uintptr(p), here, made)
		}, func(path string, _ uintptr) bool { return !exists(path) }},
		{"chmod", event.FileChmod, func(path string) { os.Chmod(path, 0o644) }, func(p unsafe.Pointer) (uintptr, unix.Errno) {
			return raw(unix.SYS_FCHMODAT, here, uintptr(p), 0o600)
		}, func(path string, _ uintptr) bool { fi, _ := os.Stat(path); return fi.Mode().Perm() == 0o600 }},
		{"truncate", event.FileTruncate, file, func(p unsafe.Pointer) (uintptr, unix.Errno) { return raw(unix.SYS_TRUNCATE, uintptr(p), 3) },
			func(path string, _ uintptr) bool { return size(path) == 3 }},
		raceMake("mkdir", event.FileMkdir, func(p unsafe.Pointer) (uintptr, unix.Errno) { return raw(unix.SYS_MKDIRAT, here, uintptr(p), 0o755) }),
		raceMake("symlink", event.FileSymlink, func(p unsafe.Pointer) (uintptr, unix.Errno) { return raw(unix.SYS_SYMLINKAT, other, here, uintptr(p)) }),
		raceMake("link", event.FileLink, func(p unsafe.Pointer) (uintptr, unix.Errno) {
			return raw(unix.SYS_LINKAT, here, other, here, uintptr(p))
		}),
	}
}

// roleRace makes a call n times while another thread exchanges its path, and reports
// how often it reached the other file.
func roleRace(n int, what string) {
	runtime.LockOSThread()
	for _, r := range races() {
		if r.name != what {
			continue
		}
		for _, p := range []string{"other", "good", "evil"} {
			os.WriteFile(p, []byte("12345678"), 0o644)
		}
		path := new(uint64)
		good, evil := word("./good"), word("./evil")
		atomic.StoreUint64(path, good)
		var racing atomic.Bool
		go func() {
			runtime.LockOSThread()
			for n := 0; ; n++ {
				for !racing.Load() {
					runtime.Gosched()
				}
				for began := time.Now(); time.Since(began) < time.Duration(n%120)*time.Microsecond; {
				}
				atomic.StoreUint64(path, evil)
				for racing.Load() {
					runtime.Gosched()
				}
				atomic.StoreUint64(path, good)
			}
		}()
		hits := 0
		for range n {
			racing.Store(false)
			for atomic.LoadUint64(path) != good {
				runtime.Gosched()
			}
			r.ready("good")
			r.ready("evil")
			racing.Store(true)
			fd, errno := r.call(unsafe.Pointer(path))
			if errno == 0 && r.did("evil", fd) {
				hits++
			}
			if r.action == event.FileWrite && errno == 0 {
				unix.Close(int(fd))
			}
		}
		fmt.Println("hits", hits)
	}
}

// TestWhatIsChangedIsRecorded exchanges the path of a call after it was looked at:
// each time that it came to another file, an event names that one.
func TestWhatIsChangedIsRecorded(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range races() {
		t.Run(tt.name, func(t *testing.T) {
			dir := makeTree(t)
			began := time.Now()
			r := start(t, []string{"/bin/sh", "-c", exe + "; true"}, in(dir), environment(fmt.Sprintf("%s=race 200 %s", roleVar, tt.name)))
			if status := r.wait(); status != 0 {
				t.Fatalf("status %d: %s", status, r.out.String())
			}
			hits := -1
			fmt.Sscanf(r.out.String(), "hits %d", &hits)
			other, named := 0, 0
			for _, e := range r.sink.events {
				if e.Detail["compared"] != "" {
					t.Errorf("%+v", e)
				}
				if e.Detail["instead_of"] == "" {
					continue
				}
				if e.Action != tt.action || !strings.HasSuffix(e.Detail["instead_of"], "good") && !strings.HasSuffix(e.Detail["instead_of"], "evil") {
					t.Errorf("%+v", e)
				}
				if strings.HasSuffix(e.Detail["instead_of"], "good") {
					other++
				}
				if strings.HasSuffix(e.Object, "/evil") {
					named++
				}
			}
			said := 0 // it was exchanged before it was looked at
			for _, e := range r.eventsOf(tt.action) {
				if strings.HasSuffix(e.Object, "/evil") && e.Detail["instead_of"] == "" && e.Verdict == event.Allowed && e.Error == "" && strings.HasPrefix(e.Object, "./") {
					said++
				}
			}
			t.Logf("%d hits: %d were named afterwards (%d as the other), %d at once; %v", hits, other, named, said, time.Since(began))
			if hits != other+said {
				t.Errorf("%d calls came to another file, %d events say so", hits, other+said)
			}
		})
	}
}

// roleElsewhere opens a path n times, in a process with one thread, while another
// process exchanges it in their shared memory. These two may do nothing that needs the
// other threads of this program, because they do not have them.
func roleElsewhere(n int) {
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	path, state := (*uint64)(unsafe.Pointer(&page[0])), (*uint32)(unsafe.Pointer(&page[64]))
	var evil unix.Stat_t
	if err := unix.Stat("evil", &evil); err != nil {
		panic(err)
	}
	*path = word("./good")
	child := elsewhere(false, path, state, word("./good"), word("./evil"), n, evil.Ino)
	second := elsewhere(true, path, state, 0, 0, n, evil.Ino)
	unix.Wait4(second, nil, 0, nil)
	unix.Kill(child, unix.SIGKILL)
	fmt.Println("hits", atomic.LoadUint32((*uint32)(unsafe.Pointer(&page[128]))))
}

// elsewhere is the process that opens, or the one that exchanges. It counts what
// came to the other file behind state.
//
//go:nosplit
//go:norace
func elsewhere(opens bool, path *uint64, state *uint32, good, evil uint64, n int, other uint64) (pid int) {
	child, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if child != 0 {
		return int(child)
	}
	hits := (*uint32)(unsafe.Add(unsafe.Pointer(state), 64))
	for i := 0; !opens || i < n; i++ {
		if opens {
			for atomic.LoadUint32(state) != 0 {
				unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
			atomic.StoreUint32(state, 1)
			var st unix.Stat_t
			fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, here, uintptr(unsafe.Pointer(path)), unix.O_WRONLY, 0, 0, 0)
			if errno == 0 {
				unix.RawSyscall(unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0)
				unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
			}
			if st.Ino == other {
				atomic.AddUint32(hits, 1)
			}
			for atomic.LoadUint32(state) != 2 {
				unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
			atomic.StoreUint32(state, 3)
			continue
		}
		for atomic.LoadUint32(state) != 1 {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		for k := 0; k < i%97*1000; k++ {
			atomic.LoadUint32(state)
		}
		atomic.StoreUint64(path, evil)
		atomic.StoreUint32(state, 2)
		for atomic.LoadUint32(state) == 2 {
			unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		atomic.StoreUint64(path, good)
		atomic.StoreUint32(state, 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	return 0
}

// TestSharedMemoryIsCompared has a process with one thread open a path in memory that
// another process writes.
func TestSharedMemoryIsCompared(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := makeTree(t)
	if err := errors.Join(os.WriteFile(dir+"/good", nil, 0o644), os.WriteFile(dir+"/evil", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r := start(t, []string{"/bin/sh", "-c", exe + "; true"}, in(dir), environment(roleVar+"=elsewhere 500"))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	hits := -1
	fmt.Sscanf(r.out.String(), "hits %d", &hits)
	r.saysChanged(t, "/evil", hits)
}

// saysChanged demands that the record has so many writes to a file.
func (r *run) saysChanged(t *testing.T, file string, hits int) {
	t.Helper()
	said, other := 0, 0
	for _, e := range r.sink.events {
		at := e.Object
		if e.Resolved != "" {
			at = e.Resolved
		}
		if e.Detail["compared"] != "" {
			t.Errorf("%+v", e)
		}
		if e.Action == event.FileWrite && e.Verdict == event.Allowed && strings.HasSuffix(at, file) {
			if said++; e.Detail["instead_of"] != "" {
				other++
			}
		}
	}
	t.Logf("%d calls came to the other file; the record has %d, %d of them afterwards", hits, said, other)
	if hits != said {
		t.Errorf("%d calls came to the other file, the record has %d", hits, said)
	}
}

// roleFlip exchanges the links l and n until the file stop is there.
func roleFlip() {
	os.WriteFile("up", nil, 0o644)
	for !exists("stop") {
		for range 20 {
			unix.Renameat2(unix.AT_FDCWD, "l", unix.AT_FDCWD, "n", unix.RENAME_EXCHANGE)
		}
	}
}

// TestLinksAreNotTurnedUnderCalls has a process with one thread write through a
// link that another process turns all the time.
func TestLinksAreNotTurnedUnderCalls(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := makeTree(t)
	if err := errors.Join(os.Mkdir(dir+"/g", 0o755), os.Mkdir(dir+"/e", 0o755), os.WriteFile(dir+"/e/f", nil, 0o644), os.Symlink("g", dir+"/l"), os.Symlink("e", dir+"/n")); err != nil {
		t.Fatal(err)
	}
	const script = `(EXE & until [ -e up ]; do :; done; i=0; while [ $i -lt 300 ]; do echo >> l/f; i=$((i+1)); done; : > stop; wait); true`
	r := start(t, []string{"/bin/sh", "-c", strings.ReplaceAll(script, "EXE", exe)}, in(dir), environment(roleVar+"=flip"))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	text, err := os.ReadFile(dir + "/e/f")
	if err != nil {
		t.Fatal(err)
	}
	r.saysChanged(t, "/e/f", len(text))
}

// TestHonestThreadsAreComparedInSilence has many threads that make and remove files,
// and rename directories beside each other: all of it comes to what it names.
func TestHonestThreadsAreComparedInSilence(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const script = `(EXE & EXE & for i in 1 2 3 4 5 6 7 8; do mkdir d; echo x > d/f; ln -s d l; echo y > l/f; mv d e; rm l e/f; rmdir e; done; wait); true`
	dir := makeTree(t)
	r := start(t, []string{"/bin/sh", "-c", strings.ReplaceAll(script, "EXE", exe)}, in(dir), environment(roleVar+"=storm 8"))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	n := 0
	for _, e := range r.sink.events {
		if strings.HasPrefix(e.Action, "file.") {
			n++
		}
		if e.Detail["instead_of"] != "" || e.Detail["came_to"] != "" || e.Detail["compared"] != "" || e.Verdict == event.Unknown && strings.HasPrefix(e.Action, "file.") && !strings.Contains(e.Detail["unknown"], "ended before") {
			t.Errorf("%+v", e)
		}
	}
	if n < 500 {
		t.Errorf("%d events of files", n)
	}
}
