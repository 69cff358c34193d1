//go:build linux

package review

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestSyncOfWhatCannotBe: a file system that keeps nothing is not an error, any other
// is; a test that breaks calls puts nothing on disk.
func TestSyncOfWhatCannotBe(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if err := (&disk{}).sync(pipe[1]); err != nil {
		t.Errorf("a pipe: %v", err)
	}
	if err := (&disk{}).sync(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("no file: %v", err)
	}
	if err := (&disk{hook: func(string, bool) error { return nil }}).sync(-1); err != nil {
		t.Errorf("with a hook: %v", err)
	}
}

// TestCallsThatAreBroken: a hook breaks a call before and after it, a call that a signal
// ended is made again, and one that failed is not reported to have happened.
func TestCallsThatAreBroken(t *testing.T) {
	before, after := errors.New("before"), errors.New("after")
	var told []bool
	for i, row := range []struct {
		hook  [2]error
		calls []error
		want  error
		told  []bool
	}{
		{[2]error{}, []error{nil}, nil, []bool{false, true}},
		{[2]error{before, nil}, nil, before, []bool{false}},
		{[2]error{nil, after}, []error{nil}, after, []bool{false, true}},
		{[2]error{nil, after}, []error{unix.EIO}, unix.EIO, []bool{false}},
		{[2]error{}, []error{unix.EINTR, unix.EINTR, nil}, nil, []bool{false, true}},
	} {
		told = nil
		n := 0
		d := &disk{hook: func(op string, done bool) error {
			told = append(told, done)
			if done {
				return row.hook[1]
			}
			return row.hook[0]
		}}
		call := func() error { n++; return row.calls[n-1] }
		if err := d.do("x", call); !errors.Is(err, row.want) || n != len(row.calls) || !slices.Equal(told, row.told) {
			t.Errorf("row %d: %v after %d calls, told %v", i, err, n, told)
		}
		if n = 0; len(row.calls) == 0 {
			continue
		}
		if err := (&disk{}).do("x", call); !errors.Is(err, row.calls[len(row.calls)-1]) || n != len(row.calls) {
			t.Errorf("row %d, without a hook: %v after %d calls", i, err, n)
		}
	}
}

// TestOwnerOfWhatIsMade: a group is given away where it is another, and a refusal of
// that leaves what is made with ours.
func TestOwnerOfWhatIsMade(t *testing.T) {
	other := os.Getegid() + 4242
	for i, row := range []struct {
		uid, group int
		fails      error
		want       error
		chowned    bool
	}{
		{-1, -1, nil, nil, false},
		{-1, os.Getegid(), nil, nil, false},
		{-1, other, unix.EPERM, nil, true},
		{-1, other, unix.EIO, unix.EIO, true},
		{os.Geteuid(), -1, nil, nil, true},
		{os.Geteuid(), os.Getegid(), nil, nil, true},
		{os.Geteuid(), -1, unix.EPERM, unix.EPERM, true},
	} {
		f, err := os.Create(t.TempDir() + "/f")
		if err != nil {
			t.Fatal(err)
		}
		chowned := false
		d := &disk{uid: row.uid, gid: os.Getegid(), hook: func(op string, done bool) error {
			if op != "chown" {
				return nil
			}
			chowned = true
			return row.fails
		}}
		err = d.setOwnerAndMode(int(f.Fd()), 0o640, row.group)
		info, _ := f.Stat()
		f.Close()
		if !errors.Is(err, row.want) || chowned != row.chowned || (info.Mode() == 0o640) != (err == nil) {
			t.Errorf("row %d: %v, chowned %t, mode %v", i, err, chowned, info.Mode())
		}
	}
}

// TestCopyKeepsHoles: a copy has the content of the file and takes no more room.
func TestCopyKeepsHoles(t *testing.T) {
	dir := t.TempDir()
	from, err := os.Create(dir + "/from")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	const size = 8 << 20
	for _, at := range []int64{1 << 20, 5 << 20} {
		if _, err := from.WriteAt([]byte("data"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := from.Truncate(size); err != nil {
		t.Fatal(err)
	}
	to, err := os.Create(dir + "/to")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := (&disk{}).copy(to, from, size); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(to.Fd()), &st); err != nil || st.Size != size || st.Blocks > 1<<20/512 {
		t.Errorf("%v, %d bytes in %d blocks", err, st.Size, st.Blocks)
	}
	if !workspace.SameContent(int(from.Fd()), int(to.Fd()), size) {
		t.Error("the copy has another content")
	}
}
