//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelAsks makes a request as the kernel does.
func kernelAsks(op uint32, node uint64, body ...[]byte) []byte {
	all := bytes.Join(body, nil)
	raw := appendHalves(nil, uint32(fuseHeader+len(all)), op)
	raw = appendWords(raw, 42, node)
	raw = appendHalves(raw, 1000, 1000, 7, 0)
	return append(raw, all...)
}

func cStrings(ss ...string) []byte { return []byte(strings.Join(ss, "\x00") + "\x00") }

func u32s(vs ...uint32) []byte { return appendHalves(nil, vs...) }

func u64s(vs ...uint64) []byte { return appendWords(nil, vs...) }

// give gives a request to f, and returns its error and what the answer holds.
func give(t testing.TB, f *fileSystem, raw []byte) (unix.Errno, []byte) {
	t.Helper()
	r, ok := parseFUSE(raw)
	if !ok {
		t.Fatalf("%x is no request", raw)
	}
	answer := f.handle(r, nil)
	if answer == nil {
		return noReply, nil
	}
	checkAnswer(t, r, answer)
	return unix.Errno(-int32(binary.LittleEndian.Uint32(answer[4:]))), answer[fuseReply:]
}

// checkAnswer checks what the kernel demands of every answer.
func checkAnswer(t testing.TB, r fuseRequest, answer []byte) {
	t.Helper()
	le := binary.LittleEndian
	if len(answer) < fuseReply || int(le.Uint32(answer)) != len(answer) || le.Uint64(answer[8:]) != r.unique {
		t.Fatalf("answer %x to %+v", answer, r)
	}
	errno := int32(le.Uint32(answer[4:]))
	if errno > 0 || errno <= -512 || errno != 0 && len(answer) != fuseReply { // fuse_dev_do_write
		t.Fatalf("error %d in an answer of %d bytes", errno, len(answer))
	}
	if limit := fuseReply + fuseMaxWrite; len(answer) > limit {
		t.Fatalf("an answer of %d bytes", len(answer))
	}
}

func newFS() *fileSystem { return &fileSystem{tree: newTree(), uid: 1000, gid: 1000} }

func TestFileSystem(t *testing.T) {
	write := func(node, offset uint64, s string) []byte {
		return kernelAsks(fuseWrite, node, u64s(0, offset), u32s(uint32(len(s)), 0), u64s(0, 0), []byte(s))
	}
	read := func(node, offset uint64, size uint32) []byte {
		return kernelAsks(fuseRead, node, u64s(0, offset), u32s(size, 0), u64s(0, 0))
	}
	steps := []struct {
		name string
		raw  []byte
		want unix.Errno
		out  string // what the answer must hold
	}{
		{"lookup before", kernelAsks(fuseLookup, 1, cStrings("etc")), unix.ENOENT, ""},
		{"mkdir", kernelAsks(fuseMkdir, 1, u32s(0o755, 0o22), cStrings("etc")), 0, ""}, // 2
		{"mkdir twice", kernelAsks(fuseMkdir, 1, u32s(0o755, 0o22), cStrings("etc")), unix.EEXIST, ""},
		{"mkdir above", kernelAsks(fuseMkdir, 1, u32s(0o755, 0), cStrings("..")), unix.EINVAL, ""},
		{"mkdir with a slash", kernelAsks(fuseMkdir, 1, u32s(0o755, 0), cStrings("a/b")), unix.EINVAL, ""},
		{"mkdir without end", kernelAsks(fuseMkdir, 1, u32s(0o755, 0), []byte("a")), unix.EINVAL, ""},
		{"mkdir of a long name", kernelAsks(fuseMkdir, 1, u32s(0o755, 0), cStrings(strings.Repeat("a", 256))), unix.ENAMETOOLONG, ""},
		{"mkdir nowhere", kernelAsks(fuseMkdir, 99, u32s(0o755, 0), cStrings("a")), unix.ESTALE, ""},
		{"create is left to mknod", kernelAsks(35, 2, u32s(0, unix.S_IFREG|0o644, 0, 0), cStrings("passwd")), unix.ENOSYS, ""},
		{"mknod", kernelAsks(fuseMknod, 2, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings("passwd")), 0, ""}, // 3
		{"mknod of a device", kernelAsks(fuseMknod, 2, u32s(unix.S_IFCHR|0o644, 0x103, 0, 0), cStrings("null")), unix.EPERM, ""},
		{"mkdir in a file", kernelAsks(fuseMkdir, 3, u32s(0o755, 0), cStrings("a")), unix.ENOTDIR, ""},
		{"write", write(3, 0, "root:x"), 0, "\x06\x00\x00\x00"},
		{"write behind the end", write(3, 8, "y"), 0, ""},
		{"read", read(3, 0, 4096), 0, "root:x\x00\x00y"},
		{"read a part", read(3, 1, 3), 0, "oot"},
		{"read behind the end", read(3, 1<<40, 3), 0, ""},
		{"write far behind", write(3, 1<<62, "y"), unix.EINVAL, ""},
		{"write too much", write(3, treeBytes-1, "yy"), unix.ENOSPC, ""},
		{"write less than it says", kernelAsks(fuseWrite, 3, u64s(0, 0), u32s(9, 0), u64s(0, 0), []byte("y")), unix.EINVAL, ""},
		{"write to a directory", write(2, 0, "y"), unix.EINVAL, ""},
		{"read a directory", read(2, 0, 9), unix.EINVAL, ""},
		{"symlink", kernelAsks(fuseSymlink, 1, cStrings("bin", "usr/bin")), 0, ""}, // 4
		{"symlink to nothing", kernelAsks(fuseSymlink, 1, cStrings("b", "")), unix.EINVAL, ""},
		{"readlink", kernelAsks(fuseReadlink, 4), 0, "usr/bin"},
		{"readlink of a file", kernelAsks(fuseReadlink, 3), unix.EINVAL, ""},
		{"rmdir of what is not empty", kernelAsks(fuseRmdir, 1, cStrings("etc")), unix.ENOTEMPTY, ""},
		{"rmdir of a file", kernelAsks(fuseRmdir, 2, cStrings("passwd")), unix.ENOTDIR, ""},
		{"unlink of a directory", kernelAsks(fuseUnlink, 1, cStrings("etc")), unix.EISDIR, ""},
		{"unlink of nothing", kernelAsks(fuseUnlink, 1, cStrings("no")), unix.ENOENT, ""},
		{"rename", kernelAsks(fuseRename, 1, u64s(1), cStrings("etc", "x")), 0, ""},
		{"rename back", kernelAsks(fuseRename, 1, u64s(1), cStrings("x", "etc")), 0, ""},
		{"rename without a second name", kernelAsks(fuseRename, 1, u64s(1), cStrings("etc")), unix.EINVAL, ""},
		{"truncate", kernelAsks(fuseSetattr, 3, u32s(fuseSetSize, 0), u64s(0, 4), make([]byte, 64)), 0, ""},
		{"read the rest", read(3, 0, 4096), 0, "root"},
		{"grow", kernelAsks(fuseSetattr, 3, u32s(fuseSetSize, 0), u64s(0, 6), make([]byte, 64)), 0, ""},
		{"no old bytes", read(3, 0, 4096), 0, "root\x00\x00"},
		{"truncate a directory", kernelAsks(fuseSetattr, 2, u32s(fuseSetSize, 0), u64s(0, 4), make([]byte, 64)), unix.EINVAL, ""},
		{"half a request", kernelAsks(fuseSetattr, 3, u32s(fuseSetSize, 0)), unix.EINVAL, ""},
		{"list", kernelAsks(fuseReaddir, 1, u64s(0, 0), u32s(4096, 0), u64s(0, 0)), 0, "etc\x00\x00"},
		{"list a file", kernelAsks(fuseReaddir, 3, u64s(0, 0), u32s(4096, 0), u64s(0, 0)), unix.ENOTDIR, ""},
		{"list with little room", kernelAsks(fuseReaddir, 1, u64s(0, 0), u32s(10, 0), u64s(0, 0)), 0, ""},
		{"forget", kernelAsks(fuseForget, 3, u64s(1)), noReply, ""},
		{"open", kernelAsks(14, 3, u64s(0)), unix.ENOSYS, ""},
		{"what is unknown", kernelAsks(9999, 1), unix.ENOSYS, ""},
		{"mkdir to remove", kernelAsks(fuseMkdir, 1, u32s(0o700, 0), cStrings(".holdfast")), 0, ""}, // 5
		{"rmdir", kernelAsks(fuseRmdir, 1, cStrings(".holdfast")), 0, ""},
		{"mkdir in what was removed", kernelAsks(fuseMkdir, 5, u32s(0o700, 0), cStrings("x")), unix.ENOENT, ""},
		{"lookup of what was removed", kernelAsks(fuseLookup, 1, cStrings(".holdfast")), unix.ENOENT, ""},
	}
	f := newFS()
	for _, s := range steps {
		errno, out := give(t, f, s.raw)
		if errno != s.want || !bytes.Contains(out, []byte(s.out)) {
			t.Errorf("%s: %v, %q; want %v, %q", s.name, errno, out, s.want, s.out)
		}
	}
	f.sealed = true
	before := len(f.tree.nodes)
	for _, s := range steps {
		op := binary.LittleEndian.Uint32(s.raw[4:])
		errno, _ := give(t, f, s.raw)
		switch op {
		case fuseMkdir, fuseMknod, fuseSymlink, fuseUnlink, fuseRmdir, fuseWrite, fuseSetattr, fuseRename:
			if errno != unix.EROFS && errno != unix.ESTALE {
				t.Errorf("sealed, %s: %v, want EROFS", s.name, errno)
			}
		}
	}
	if len(f.tree.nodes) != before {
		t.Error("the sealed tree has grown")
	}
}

func TestFileSystemAgreesOnAVersion(t *testing.T) {
	for _, c := range []struct {
		name         string
		major, minor uint32
		want         unix.Errno
	}{
		{"ours", 7, 31, 0},
		{"newer", 7, 45, 0},
		{"older", 7, 30, unix.EPROTO},
		{"a new one, which must ask again", 8, 1, 0},
		{"an old one", 6, 9, unix.EPROTO},
	} {
		f := newFS()
		errno, out := give(t, f, kernelAsks(fuseInit, 0, u32s(c.major, c.minor, 1<<20, 1<<32-1), make([]byte, 48)))
		if errno != c.want || errno == 0 && (len(out) != 64 || binary.LittleEndian.Uint32(out) != 7) {
			t.Errorf("%s: %v, %x", c.name, errno, out)
		}
		if agreed := f.minor != 0; agreed != (c.want == 0 && c.major == 7) {
			t.Errorf("%s: agreed is %v", c.name, agreed)
		}
	}
	f := newFS()
	give(t, f, kernelAsks(fuseInit, 0, u32s(7, 31, 0, 0)))
	if errno, _ := give(t, f, kernelAsks(fuseInit, 0, u32s(7, 31, 0, 0))); errno != unix.EPROTO {
		t.Errorf("a second time: %v", errno)
	}
}

func TestTreeIsBounded(t *testing.T) {
	tr := newTree()
	root := tr.get(fuseRoot)
	for i := range treeNodes {
		if _, errno := tr.add(root, itoa(i), unix.S_IFREG, nil); errno == unix.ENOSPC {
			if i != treeNodes-1 {
				t.Errorf("full after %d", i)
			}
			return
		}
	}
	t.Error("never full")
}

func TestNodePath(t *testing.T) {
	tr := newTree()
	root := tr.get(fuseRoot)
	a, _ := tr.add(root, "home", unix.S_IFDIR, nil)
	b, _ := tr.add(a, "agent", unix.S_IFDIR, nil)
	for n, want := range map[*node]string{root: "/", a: "/home", b: "/home/agent"} {
		if got := n.path(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := root.childPath("x") + b.childPath("y"); got != "/x/home/agent/y" {
		t.Error(got)
	}
}

// FuzzFUSE gives a file system two requests of any bytes.
func FuzzFUSE(f *testing.F) {
	f.Add(kernelAsks(fuseMkdir, 1, u32s(0o755, 0), cStrings("a")), kernelAsks(fuseLookup, 1, cStrings("a")), false)
	f.Add(kernelAsks(fuseMknod, 1, u32s(unix.S_IFREG|0o644, 0, 0, 0), cStrings("a")), kernelAsks(fuseWrite, 2, u64s(0, 0), u32s(1, 0), u64s(0, 0), []byte("x")), false)
	f.Add(kernelAsks(fuseSymlink, 1, cStrings("a", "b")), kernelAsks(fuseReadlink, 2), true)
	f.Add(kernelAsks(fuseReaddir, 1, u64s(0, 1<<63), u32s(1<<32-1, 0), u64s(0, 0)), kernelAsks(fuseStatfs, 1), true)
	f.Add(kernelAsks(fuseInit, 0, u32s(7, 45, 0, 0)), kernelAsks(fuseSetattr, 1, make([]byte, 88)), false)
	f.Fuzz(func(t *testing.T, first, second []byte, sealed bool) {
		fs := newFS()
		fs.tree.add(fs.tree.get(1), "file", unix.S_IFREG|0o644, []byte("content"))
		fs.sealed = sealed
		for _, raw := range [][]byte{first, second} {
			r, ok := parseFUSE(raw)
			if !ok {
				continue
			}
			if answer := fs.handle(r, nil); answer != nil {
				checkAnswer(t, r, answer)
			}
			if sealed && (len(fs.tree.nodes) != 2 || string(fs.tree.get(2).data) != "content") {
				t.Fatal("a sealed tree was changed")
			}
		}
	})
}
