//go:build linux

package review

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fuzzNames are names that are easily mixed up: in other letters, below each other,
// and such as no text is.
var fuzzNames = []string{"a", "A", "b", "d", "d/a", "d/e", "d/e/f", "-x", "n\nl", "\xff", "z", "z/a", ".env", "Makefile"}

var fuzzTexts = []string{"", "\n", "one", "one\n", "one\r\ntwo\r\n", "a text that is long enough to be followed\n", "\x00\x01", "\xef\xbb\xbfx\n"}

// change does to a tree what two bytes encode; impossible changes are skipped.
func change(root string, what, which byte) {
	name := func(i byte) string { return filepath.Join(root, fuzzNames[int(i)%len(fuzzNames)]) }
	p, q := name(which), name(which/16)
	switch what % 10 {
	case 0, 1:
		os.WriteFile(p, []byte(fuzzTexts[int(what/10)%len(fuzzTexts)]), 0o644)
	case 2:
		os.RemoveAll(p)
	case 3:
		os.Rename(p, q)
	case 4:
		unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, q, unix.RENAME_EXCHANGE)
	case 5:
		os.Mkdir(p, 0o755)
	case 6:
		os.Symlink(fuzzNames[int(what/10)%len(fuzzNames)], p)
	case 7:
		if st, err := os.Lstat(p); err == nil && st.Mode().IsRegular() {
			os.Chmod(p, []os.FileMode{0o600, 0o755, 0o644}[int(what/10)%3])
		}
	case 8:
		os.RemoveAll(p)
		os.Mkdir(p, 0o755)
		os.WriteFile(p+"/a", []byte("x"), 0o644)
	case 9:
		os.Link(p, q)
	}
}

// byPathOf is the result of tree, by path.
func byPathOf(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		state := "dir"
		switch info, _ := d.Info(); {
		case d.Type()&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			state = "-> " + to
		case !d.IsDir():
			text, _ := os.ReadFile(p)
			state = fmt.Sprintf("%04o %q", info.Mode().Perm(), text)
		}
		all[strings.TrimPrefix(p, root+"/")] = state
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Whatever a run did: what was applied is as the run left it, everything else is as
// it was, and with all accepted nothing is left over.
func FuzzApply(f *testing.F) {
	f.Add([]byte{0, 0, 50, 2, 40, 20}, []byte{3, 0x20, 3, 0x02}, uint32(0xffffffff))   // a becomes b, and back
	f.Add([]byte{50, 0, 50, 2}, []byte{4, 0x20}, uint32(0xffffffff))                   // they change places
	f.Add([]byte{50, 2, 5, 3, 0, 4}, []byte{2, 3, 3, 0x32}, uint32(0xffffffff))        // a file takes the place of a directory
	f.Add([]byte{0, 0, 6, 1, 8, 3}, []byte{2, 0, 6, 0, 8, 1, 2, 3, 0, 3}, uint32(0b1)) // links, directories and files exchanged
	f.Add([]byte{50, 8, 50, 9, 10, 7}, []byte{3, 0x89, 7, 9, 20, 8}, uint32(0b10))
	f.Fuzz(func(t *testing.T, before, run []byte, pick uint32) {
		if len(before) > 24 || len(run) > 24 {
			return
		}
		d := newFieldIn(t, Copy, inMemory(t))
		d.fast = true
		for i := 0; i+1 < len(before); i += 2 {
			change(d.ws, before[i], before[i+1])
		}
		d.copied()
		for i := 0; i+1 < len(run); i += 2 {
			change(d.dir+"/upper", run[i], run[i+1])
		}
		was, ran := byPathOf(t, d.ws), byPathOf(t, d.dir+"/upper")
		s := d.collect()
		var list []*Change
		for i, c := range s.Changes {
			if c.Cannot == "" && pick>>(i%32)&1 == 1 {
				list = append(list, c)
			}
		}
		if err := s.DecideAll(list, Accept); err != nil {
			t.Fatal(err)
		}
		r := d.apply(s, Options{hook: func(string, bool) error { return nil }})
		now := byPathOf(t, d.ws)
		if pick == 0xffffffff && len(list) == len(s.Changes) {
			list = nil
			if len(r.Refused)+len(r.Conflicts) > 0 {
				t.Errorf("all was accepted, and %+v %+v", r.Refused, r.Conflicts)
			}
			sameTrees(t, now, ran, nil)
			return
		}
		covered := map[string]bool{}
		for _, c := range s.Changes {
			if !c.Applied {
				continue
			}
			for _, p := range []string{string(c.Path), string(c.From)} {
				for ; p != "" && p != "."; p = filepath.Dir(p) {
					covered[p] = true // a directory above it may have been made
				}
			}
			if p := string(c.Path); c.Type != None && now[p] != ran[p] {
				t.Errorf("%s: %q, and the run left %q", c, now[p], ran[p])
			}
		}
		sameTrees(t, now, was, covered)
	})
}

// sameTrees compares all but what is in except.
func sameTrees(t *testing.T, got, want map[string]string, except map[string]bool) {
	t.Helper()
	for _, one := range []map[string]string{got, want} {
		for p := range one {
			if got[p] != want[p] && !except[p] {
				t.Errorf("%q is %q, want %q", p, got[p], want[p])
			}
		}
	}
}
