//go:build linux

package supervise

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/event"
)

// twins are two programs of one size: what follows an ELF file is nothing to it.
func twins() (first, second []byte, err error) {
	first, err = os.ReadFile("/bin/true")
	if err != nil {
		return nil, nil, err
	}
	second, err = os.ReadFile("/bin/false")
	size := max(len(first), len(second))
	fill := func(b []byte) []byte { return append(b, bytes.Repeat([]byte{0}, size-len(b))...) }
	return fill(first), fill(second), err
}

// roleStores executes a file that it also has mapped, and changes its content by
// nothing but stores to pages that it wrote to before.
func roleStores(where string) {
	first, second, err := twins()
	fd := -1
	if err == nil && where == "memory" {
		fd, err = unix.MemfdCreate("twin", 0)
	} else if err == nil {
		fd, err = unix.Open(where, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o755)
	}
	if err == nil {
		err = unix.Ftruncate(fd, int64(len(first)))
	}
	var page []byte
	if err == nil {
		page, err = unix.Mmap(fd, 0, len(first), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	copy(page, first)
	time.Sleep(settled + 200*time.Millisecond)
	path := where
	if where == "memory" {
		path = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	fmt.Println("first:", exec.Command(path).Run())
	copy(page, second)
	if where != "memory" { // the kernel executes no file that is open for writing
		unix.Munmap(page)
		unix.Close(fd)
	}
	fmt.Println("second:", exec.Command(path).Run())
}

// TestStoresThroughAMappingAreSeen: they change no time of the file.
func TestStoresThroughAMappingAreSeen(t *testing.T) {
	first, second, err := twins()
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"memory", "file"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			name, says := where, "first: <nil>\nsecond: exit status 1\n"
			if where == "file" {
				name, says = makeTree(t)+"/twin", "second: exit status 1\n"
			}
			r := start(t, []string{"/proc/self/exe"}, environment(roleVar+"=stores 0 "+name))
			if status := r.wait(); status != 0 || !strings.HasSuffix(r.out.String(), says) {
				t.Fatalf("status %d: %s", status, r.out.String())
			}
			all := r.eventsOf(event.ProcExec)
			if len(all) != 3 {
				t.Fatalf("%s", r.dump())
			}
			for i, content := range [][]byte{first, second} {
				sum := sha256.Sum256(content)
				if got := all[1+i].Process.SHA256; got != hex.EncodeToString(sum[:]) {
					t.Errorf("execution %d has the hash %s, want %x", i+1, got, sum)
				}
			}
		})
	}
}
