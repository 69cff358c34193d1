//go:build linux

package supervise

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lookAt looks a path up that ends with NUL, without copying it.
func lookAt(path []byte) {
	cwd := unix.AT_FDCWD
	unix.Syscall6(unix.SYS_FACCESSAT, uintptr(cwd), uintptr(unsafe.Pointer(&path[0])), 0, 0, 0, 0)
}

// A path is read whole wherever it lies, also at the end of what can be read.
func TestReadPath(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 3*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	if err := unix.Mprotect(memory[2*4096:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	base := uint64(uintptr(unsafe.Pointer(&memory[0])))
	for _, size := range []int{0, 1, 15, 255, 256, 257, 300, 511, 512, 1000, 4000, 4094, 4095, 4096, 5000} {
		for _, end := range []int{8192, 8191, 8000, 4097 + size, 4096 + size/2, 4096, 4095} {
			start := end - size - 1
			if start < 0 || end > 8192 {
				continue
			}
			clear(memory[:8192])
			path := strings.Repeat("p", size)
			copy(memory[start:], path)
			want := path
			if size >= unix.PathMax {
				want = "" // the kernel takes none that is so long
			}
			if got := newMemory().path(os.Getpid(), base+uint64(start)); got != want {
				t.Errorf("%d bytes that end at %d: %d bytes", size, end, len(got))
			}
		}
	}
	for i := range memory[:8192] {
		memory[i] = 'x'
	}
	for _, addr := range []uint64{base + 8000, base + 8192, 0, 1, 1<<64 - 1, 1 << 63} {
		if got := newMemory().path(os.Getpid(), addr); got != "" {
			t.Errorf("at %x: %q", addr, got)
		}
	}
	clear(memory[:8192])
	copy(memory, "\x01\x00/run/docker.sock\x00")
	for _, c := range []struct {
		size uint64
		want string
	}{{110, "/run/docker.sock"}, {18, "/run/docker.sock"}, {6, "/run"}, {2, ""}, {0, ""}, {1 << 40, "/run/docker.sock"}} {
		if got := newMemory().socketPath(os.Getpid(), base, c.size); got != c.want {
			t.Errorf("an address of %d bytes: %q, want %q", c.size, got, c.want)
		}
	}
}
