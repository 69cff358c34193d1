//go:build linux

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLookupBelowALayer: what a run left overlays the workspace: a name is what the
// layer says it is, even if the layer says that it is gone.
func TestLookupBelowALayer(t *testing.T) {
	dir := t.TempDir()
	work, over := filepath.Join(dir, "work"), filepath.Join(dir, "over")
	for path, text := range map[string]string{work + "/kept": "k", work + "/gone": "g", work + "/changed": "", over + "/changed": "changed", over + "/made": "made", dir + "/outside": "outside"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(over+"/gone", unix.S_IFCHR, 0); err != nil { // Linux 5.8 allows any user
		t.Fatal(err)
	}
	s := &scan{found: &tree{Root: Name(work)}, over: over}
	for name, want := range map[string]int64{
		work + "/kept": 1, work + "/changed": 7, work + "/made": 4, dir + "/outside": 7, work + "/gone": -1, work + "/nothing": -1,
	} {
		at, err := s.lookup(name)
		switch {
		case want < 0 && !errors.Is(err, unix.ENOENT):
			t.Errorf("%s is there: %v", name, err)
		case want >= 0 && (err != nil || int64(at.st.Size) != want):
			t.Errorf("%s has %d bytes, want %d: %v", name, at.st.Size, want, err)
		}
	}
	s.over = ""
	if at, err := s.lookup(work + "/gone"); err != nil || at.st.Size != 1 {
		t.Errorf("without a layer: %d bytes, %v", at.st.Size, err)
	}
}

// A path is followed as the kernel does it: links on the way, and what is missing
// behind the part that is there.
func TestFollow(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "d/e/f", "x")
	link(t, "d", w, "rel")
	link(t, w+"/d/e", w, "abs")
	link(t, "../rel/e", w, "d/up")
	link(t, "loop", w, "loop")
	link(t, "none/x", w, "dangling")
	for _, tt := range []struct {
		target, path string
		links        []string // that were met
		missing      []string
		there        bool
	}{
		{"/d/e/f", "/d/e/f", nil, nil, true},
		{"//d/./e//", "/d/e", nil, nil, true},
		{"/d/e/..", "/d", nil, nil, true},
		{"/d/../d/e/../../d", "/d", nil, nil, true},
		{"/rel/e/f", "/d/e/f", []string{"/rel"}, nil, true},
		{"/rel/..", "", []string{"/rel"}, nil, true},
		{"/abs/f", "/d/e/f", []string{"/abs"}, nil, true},
		{"/d/up/f", "/d/e/f", []string{"/d/up", "/rel"}, nil, true},
		{"/d/none/x", "/d", nil, []string{"none", "x"}, false},
		{"/dangling/y", "", []string{"/dangling"}, []string{"none", "x", "y"}, false},
		{"/d/e/f/x", "/d/e/f", nil, []string{"x"}, false},
	} {
		s := &scan{found: &tree{Root: Name(w)}}
		var met []string
		at := s.follow(w+tt.target, func(l located) { met = append(met, strings.TrimPrefix(l.path, w)) })
		if tt.there {
			var st unix.Stat_t
			if err := unix.Lstat(w+tt.path, &st); err != nil || st.Ino != at.st.Ino || at.real != w+tt.path {
				t.Errorf("%s is another file than %s, %v", tt.target, tt.path, err)
			}
			tt.links = append(tt.links, tt.path)
		}
		if at.path != w+tt.path || at.there != tt.there || !slices.Equal(met, tt.links) || !slices.Equal(at.missing, tt.missing) {
			t.Errorf("%s: %q, there %v, met %q, missing %q", tt.target, at.path, at.there, met, at.missing)
		}
	}
	s := &scan{found: &tree{Root: Name(w)}}
	met := 0
	if at := s.follow(w+"/loop", func(located) { met++ }); at.there || met != 41 {
		t.Errorf("a link to itself: %+v after %d", at, met)
	}
	if at := s.follow("/..", func(located) {}); at.path != "/" || !at.there {
		t.Errorf("above all: %+v", at)
	}
}

// Only regular files are read, through links, and no more of them than is asked for.
func TestReadOfObeyedFiles(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "d/f", "text")
	write(t, w, "large", "")
	must(t, os.Truncate(w+"/large", MaxConfig+100))
	link(t, "d/f", w, "link")
	must(t, unix.Mkfifo(w+"/pipe", 0o600))
	s := &scan{found: &tree{Root: Name(w)}}
	for name, want := range map[string]int{w + "/d/f": 4, w + "/link": 4, w + "/large": MaxConfig + 1, w + "/d": -1, w + "/pipe": -1, w + "/none": -1, "d/f": -1, "": -1} {
		b := s.read(name)
		if got := len(b); (b == nil) != (want < 0) || want >= 0 && got != want {
			t.Errorf("%s: %d bytes, nil %v", name, got, b == nil)
		}
	}
}
