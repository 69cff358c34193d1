//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// newPrivate is a sealed file system with the private directory /home, node 2.
func newPrivate(t testing.TB) (*fileSystem, string) {
	t.Helper()
	at := t.TempDir()
	dir, err := os.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	f := &fileSystem{tree: newTree("/home"), uid: 1000, gid: 1000}
	if f.tree.store, err = newStore(dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.tree.store.close)
	give(t, f, kernelAsks(fuseMkdir, 1, u32s(0o700, 0), cStrings("home")))
	f.sealed = true
	return f, at
}

func writing(node, offset uint64, s string) []byte {
	return kernelAsks(fuseWrite, node, u64s(0, offset), u32s(uint32(len(s)), 0), u64s(0, 0), []byte(s))
}

func reading(node, offset uint64, size uint32) []byte {
	return kernelAsks(fuseRead, node, u64s(0, offset), u32s(size, 0), u64s(0, 0))
}

func TestPrivateDirectory(t *testing.T) {
	f, _ := newPrivate(t)
	file := func(dir uint64, name string) []byte {
		return kernelAsks(fuseMknod, dir, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings(name))
	}
	rename := func(dir, to uint64, flags uint32, names ...string) []byte {
		return kernelAsks(fuseRename2, dir, u64s(to), u32s(flags, 0), cStrings(names...))
	}
	set := func(valid uint32, body ...[]byte) []byte {
		all := append(u32s(valid, 0), bytes.Join(body, nil)...)
		return append(all, make([]byte, 88-len(all))...)
	}
	for _, s := range []struct {
		name string
		raw  []byte
		want unix.Errno
		out  string
	}{
		{"a file", file(2, "a"), 0, ""}, // 3
		{"a file outside", file(1, "a"), unix.EROFS, ""},
		{"write", writing(3, 0, "hello"), 0, "\x05\x00\x00\x00"},
		{"write behind the end", writing(3, 8, "you"), 0, ""},
		{"read", reading(3, 0, 4096), 0, "hello\x00\x00\x00you"},
		{"read behind the end", reading(3, 99, 9), 0, ""},
		{"write where nothing can be", writing(3, 1<<63, "x"), unix.EFBIG, ""},
		{"cut", kernelAsks(fuseSetattr, 3, set(fuseSetSize, u64s(0, 4))), 0, ""},
		{"read what is left", reading(3, 0, 4096), 0, "hell"},
		{"to another owner", kernelAsks(fuseSetattr, 3, set(fuseSetUID, make([]byte, 68), u32s(0))), unix.EPERM, ""},
		{"to the same owner", kernelAsks(fuseSetattr, 3, set(fuseSetUID, make([]byte, 68), u32s(1000))), 0, ""},
		{"a directory", kernelAsks(fuseMkdir, 2, u32s(0o755, 0), cStrings("d")), 0, ""}, // 4
		{"a pipe", kernelAsks(fuseMknod, 4, u32s(unix.S_IFIFO|0o644, 0, 0, 0), cStrings("p")), 0, ""},
		{"a socket", kernelAsks(fuseMknod, 4, u32s(unix.S_IFSOCK|0o644, 0, 0, 0), cStrings("s")), 0, ""},
		{"a device", kernelAsks(fuseMknod, 4, u32s(unix.S_IFBLK|0o644, 0, 0, 0), cStrings("v")), unix.EPERM, ""},
		{"a link", kernelAsks(fuseSymlink, 2, cStrings("l", "a")), 0, ""}, // 7
		{"a further name", kernelAsks(fuseLink, 4, u64s(3), cStrings("b")), 0, ""},
		{"a further name of a directory", kernelAsks(fuseLink, 4, u64s(4), cStrings("e")), unix.EPERM, ""},
		{"a further name outside", kernelAsks(fuseLink, 1, u64s(3), cStrings("b")), unix.EROFS, ""},
		{"a further name of nothing", kernelAsks(fuseLink, 4, u64s(99), cStrings("c")), unix.ENOENT, ""},
		{"into itself", rename(2, 4, 0, "d", "d"), unix.EINVAL, ""},
		{"a file over a directory", rename(2, 2, 0, "a", "d"), unix.EISDIR, ""},
		{"a directory over a file", rename(2, 2, 0, "d", "a"), unix.ENOTDIR, ""},
		{"to outside", rename(2, 1, 0, "a", "a"), unix.EROFS, ""},
		{"out of nothing", rename(2, 2, 0, "no", "a"), unix.ENOENT, ""},
		{"without replacing", rename(2, 2, unix.RENAME_NOREPLACE, "l", "a"), unix.EEXIST, ""},
		{"with a whiteout", rename(2, 2, 4, "l", "a"), unix.EINVAL, ""},
		{"the same file", rename(2, 4, 0, "a", "b"), 0, ""},
		{"exchange", rename(2, 4, unix.RENAME_EXCHANGE, "l", "b"), 0, ""},
		{"the link is there", kernelAsks(fuseLookup, 4, cStrings("b")), 0, "\x07\x00"},
		{"the exchanged name", kernelAsks(fuseUnlink, 2, cStrings("l")), 0, ""},
		{"the last name", kernelAsks(fuseUnlink, 2, cStrings("a")), 0, ""},
		{"read what has no name", reading(3, 0, 4096), 0, "hell"},
		{"a further name of what has none", kernelAsks(fuseLink, 2, u64s(3), cStrings("z")), unix.ENOENT, ""},
		{"not empty", kernelAsks(fuseRmdir, 2, cStrings("d")), unix.ENOTEMPTY, ""},
		{"the private directory", kernelAsks(fuseRmdir, 1, cStrings("home")), unix.EROFS, ""},
		{"room", kernelAsks(fuseStatfs, 2), 0, ""},
	} {
		if errno, out := give(t, f, s.raw); errno != s.want || !bytes.Contains(out, []byte(s.out)) {
			t.Errorf("%s: %v, %q; want %v, %q", s.name, errno, out, s.want, s.out)
		}
	}
}

// What has no name and is not held by the kernel leaves nothing behind.
func TestPrivateFilesAreForgotten(t *testing.T) {
	f, at := newPrivate(t)
	for i := range 3 * storeOpen {
		name := fmt.Sprint(i)
		give(t, f, kernelAsks(fuseMknod, 2, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings(name)))
		give(t, f, writing(uint64(3+i), 0, name))
	}
	var batch [][]byte
	for i := range 3 * storeOpen {
		if errno, out := give(t, f, reading(uint64(3+i), 0, 99)); errno != 0 || string(out) != fmt.Sprint(i) {
			t.Fatalf("%d: %v %q", i, errno, out)
		}
		give(t, f, kernelAsks(fuseUnlink, 2, cStrings(fmt.Sprint(i))))
		if i%2 == 0 {
			give(t, f, kernelAsks(fuseForget, uint64(3+i), u64s(1)))
		} else {
			batch = append(batch, u64s(uint64(3+i), 1))
		}
	}
	give(t, f, kernelAsks(fuseBatchForget, 0, u32s(uint32(len(batch)+7), 0), bytes.Join(batch, nil)))
	left, err := os.ReadDir(at)
	if err != nil || len(left) != 0 || len(f.tree.nodes) != 2 || f.tree.bytes != len("home") || len(f.tree.get(2).order) > 1 {
		t.Errorf("%d files, %d nodes, %d bytes are left, %v", len(left), len(f.tree.nodes), f.tree.bytes, err)
	}
}

// What files hold is charged before it is there, and given back.
func TestPrivateFilesAreCharged(t *testing.T) {
	f, _ := newPrivate(t)
	var charged int64
	f.tree.store.charge = func(bytes int64) error {
		if bytes > 3*storeStep {
			return unix.ENOMEM
		}
		charged = bytes
		return nil
	}
	give(t, f, kernelAsks(fuseMknod, 2, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings("a")))
	text := strings.Repeat("x", fuseMaxWrite)
	written := 0
	for ; written < 10*storeStep; written += len(text) {
		if errno, _ := give(t, f, writing(3, uint64(written), text)); errno != 0 {
			if errno != unix.ENOSPC {
				t.Fatal(errno)
			}
			break
		}
	}
	if written < storeStep || written > 3*storeStep || int64(written) > charged {
		t.Errorf("%d bytes are written, %d charged", written, charged)
	}
	give(t, f, kernelAsks(fuseUnlink, 2, cStrings("a")))
	give(t, f, kernelAsks(fuseForget, 3, u64s(1)))
	if charged > storeStep || f.tree.store.sum != 0 {
		t.Errorf("%d bytes are still charged, %d counted", charged, f.tree.store.sum)
	}
}

func TestPrivateDirectoryWithoutStorage(t *testing.T) {
	f := &fileSystem{tree: newTree("/home"), uid: 1000, gid: 1000}
	give(t, f, kernelAsks(fuseMkdir, 1, u32s(0o700, 0), cStrings("home")))
	if errno, _ := give(t, f, kernelAsks(fuseMknod, 2, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings("a"))); errno != unix.ENOSPC {
		t.Errorf("%v, want ENOSPC", errno)
	}
}

// A file that was there from the beginning takes nothing of the storage until it is
// changed, and is then like any other.
func TestPrivateFileFromTheBeginning(t *testing.T) {
	f, at := newPrivate(t)
	for _, name := range []string{"a", "b", "c"} { // 3, 4, 5
		if errno := f.tree.make(Entry{Path: "/home/" + name, Mode: unix.S_IFREG | 0o600, Content: "known"}); errno != 0 {
			t.Fatal(errno)
		}
	}
	reads := func(node uint64, want string, stored int) {
		t.Helper()
		errno, out := give(t, f, reading(node, 0, 99))
		files, err := os.ReadDir(at)
		if errno != 0 || string(out) != want || err != nil || len(files) != stored {
			t.Errorf("%v, %q, %d files in the storage, %v; want %q, %d", errno, out, len(files), err, want, stored)
		}
	}
	reads(3, "known", 0)
	give(t, f, writing(3, 5, " now"))
	reads(3, "known now", 1)
	cut := append(append(u32s(fuseSetSize, 0), u64s(0, 2)...), make([]byte, 64)...)
	give(t, f, kernelAsks(fuseSetattr, 4, cut))
	reads(4, "kn", 2)

	// Where the storage takes nothing more, the file is as it was.
	f.tree.store.charge = func(int64) error { return unix.ENOMEM }
	if errno, _ := give(t, f, writing(5, 0, "other")); errno != unix.ENOSPC {
		t.Errorf("%v, want ENOSPC", errno)
	}
	reads(5, "known", 2)
	for _, name := range []string{"a", "b", "c"} {
		give(t, f, kernelAsks(fuseUnlink, 2, cStrings(name)))
	}
	if files, err := os.ReadDir(at); len(files) != 0 || f.tree.bytes != len("home") || err != nil {
		t.Errorf("%d files, %d bytes are left, %v", len(files), f.tree.bytes, err)
	}
}

// A listing continues where it ended, whatever was removed and made meanwhile: what was
// there all the time is listed once.
func TestListingWhileItChanges(t *testing.T) {
	f, _ := newPrivate(t)
	for i := range 200 {
		give(t, f, kernelAsks(fuseMkdir, 2, u32s(0o755, 0), cStrings(fmt.Sprint("d", i))))
	}
	var names []string
	for from, round := uint64(0), 0; ; round++ {
		_, out := give(t, f, kernelAsks(fuseReaddir, 2, u64s(0, from), u32s(300, 0), u64s(0, 0)))
		if len(out) == 0 {
			break
		}
		for len(out) > 0 {
			size := int(binary.LittleEndian.Uint32(out[16:]))
			from = binary.LittleEndian.Uint64(out[8:])
			names = append(names, string(out[24:24+size]))
			out = out[(24+size+7)/8*8:]
		}
		for i := range 3 {
			give(t, f, kernelAsks(fuseRmdir, 2, cStrings(fmt.Sprint("d", 2*(3*round+i)))))
		}
	}
	for i := 1; i < 200; i += 2 {
		if name := fmt.Sprint("d", i); strings.Count(strings.Join(names, " ")+" ", " "+name+" ") != 1 {
			t.Errorf("%s is not listed once", name)
		}
	}
}

// TestPrivateLikeADirectory does the same at random in a private directory and in
// one of the host, and compares what each gives.
func TestPrivateLikeADirectory(t *testing.T) {
	const seed = 16
	f, _ := newPrivate(t)
	host := t.TempDir()
	r := rand.New(rand.NewPCG(seed, seed))
	names := []string{"a", "b", "c"}
	type place struct {
		id   uint64
		path string
	}
	pick := func() (place, string) { // a directory that is there in both, and a name
		at := place{2, host}
		for range r.IntN(3) {
			name := names[r.IntN(len(names))]
			n := f.tree.get(at.id).child(name)
			if n == nil || !n.dir() {
				break
			}
			at = place{n.id, filepath.Join(at.path, name)}
		}
		return at, names[r.IntN(len(names))]
	}
	for step := range 20_000 {
		at, name := pick()
		to, other := pick()
		path, second := filepath.Join(at.path, name), filepath.Join(to.path, other)
		var raw []byte
		var want error
		n := f.tree.get(at.id).child(name)
		switch op := r.IntN(7); {
		case op == 0:
			raw, want = kernelAsks(fuseMkdir, at.id, u32s(0o755, 0), cStrings(name)), unix.Mkdir(path, 0o755)
		case op == 1:
			raw, want = kernelAsks(fuseMknod, at.id, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings(name)), unix.Mknod(path, unix.S_IFREG|0o644, 0)
		case op == 2:
			raw, want = kernelAsks(fuseUnlink, at.id, cStrings(name)), unix.Unlink(path)
		case op == 3:
			raw, want = kernelAsks(fuseRmdir, at.id, cStrings(name)), unix.Rmdir(path)
		case op == 4 && n != nil && !n.dir():
			raw, want = kernelAsks(fuseLink, to.id, u64s(n.id), cStrings(other)), unix.Link(path, second)
		default:
			flags := []uint32{0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}[r.IntN(4)]
			raw = kernelAsks(fuseRename2, at.id, u64s(to.id), u32s(flags, 0), cStrings(name, other))
			want = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, second, uint(flags))
		}
		got, _ := give(t, f, raw)
		if encloses := strings.HasPrefix(path+"/", second+"/") || strings.HasPrefix(second+"/", path+"/"); encloses && want != nil && got != 0 {
			continue // the kernel refuses it before it asks, in an order of its own
		}
		if got != 0 != (want != nil) || want != nil && got != want {
			t.Fatalf("step %d, %x %s %s: %v, and in a directory of the host %v", step, raw[4:8], path, second, got, want)
		}
		if step%100 == 0 {
			same(t, f.tree.get(2), host)
		}
	}
}

// same compares what a node and a directory list.
func same(t *testing.T, n *node, dir string) {
	t.Helper()
	var got, want []string
	for name := range n.kids {
		got = append(got, name)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		want = append(want, e.Name())
		if kid := n.child(e.Name()); kid != nil && kid.dir() != e.IsDir() {
			t.Fatalf("%s/%s is of another kind", dir, e.Name())
		} else if e.IsDir() && kid != nil {
			same(t, kid, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %v, want %v", dir, got, want)
	}
}
