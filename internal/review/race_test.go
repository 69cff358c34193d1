//go:build linux

package review

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Another program works in the workspace while changes are applied: it moves
// directories, puts links in their place, replaces and removes files. Nothing outside
// may change, no file may be a mixture, and what it wrote last may not be lost
// silently.
func TestApplyInABusyTree(t *testing.T) {
	top := inMemory(t)
	f := newFieldIn(t, Overlay, top)
	var lower, upper []string
	for d := range 8 {
		for i := range 25 {
			lower = append(lower, fmt.Sprintf("d%d/f%d=old %d %d %s\n", d, i, d, i, strings.Repeat("o", 4000)))
			upper = append(upper, fmt.Sprintf("d%d/f%d=new %d %d %s\n", d, i, d, i, strings.Repeat("n", 5000)), fmt.Sprintf("d%d/added%d=new %d %d %s\n", d, i, d, i, strings.Repeat("n", 5000)))
		}
	}
	f.lower(lower...).upper(upper...)
	f.make(top+"/outside", "f1=outside\n", "sub/f2=outside\n")
	outside := tree(t, top+"/outside")
	s := f.collect()
	f.acceptAll(s)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { moves(f.ws, top+"/outside", stop) })
	wg.Go(func() { replaces(f.ws, stop) })
	var reports []Report
	applied := 0
	for began := time.Now(); time.Since(began) < 1500*time.Millisecond || applied < 20 && time.Since(began) < 30*time.Second; {
		r, err := s.Apply(t.Context(), Options{})
		if err != nil {
			t.Error(err)
		}
		reports = append(reports, r)
		applied += len(r.Applied)
	}
	close(stop)
	wg.Wait()
	want(t, tree(t, top+"/outside"), outside...)
	told := fmt.Sprintf("%+v", reports)
	files := 0
	for _, l := range tree(t, f.ws) {
		name, content, ok := strings.Cut(l, "=")
		if strings.Contains(l, tempPrefix) {
			if at := strings.Index(l, tempPrefix); !strings.Contains(told, l[at:at+20]) {
				t.Errorf("left behind without a word: %.80q", l)
			}
		}
		if !ok {
			continue
		}
		files++
		whole := false
		for _, side := range []struct {
			word string
			n    int
		}{{"old", 4000}, {"new", 5000}, {"busy", 3000}} {
			rest, is := strings.CutPrefix(content, side.word+" ")
			whole = whole || is && strings.HasSuffix(rest, "\n") && strings.Count(content, side.word[:1]) >= side.n && len(content) < side.n+20
		}
		if !whole {
			t.Errorf("%s is a mixture: %.80q", name, content)
		}
	}
	if files < 200 || applied < 20 {
		t.Errorf("%d files are left and %d changes were applied: the test shows nothing", files, applied)
	}
}

// moves renames directories and puts links in their place.
func moves(ws, outside string, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		d := fmt.Sprintf("%s/d%d", ws, n%4)
		away := fmt.Sprintf("%s/away%d", ws, n%4)
		if os.Rename(d, away) != nil {
			continue
		}
		os.Symlink(outside, d)
		time.Sleep(50 * time.Microsecond)
		os.Remove(d)
		os.Rename(away, d)
	}
}

// replaces rewrites files, by renaming over them and in place.
func replaces(ws string, stop chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		p := fmt.Sprintf("%s/d%d/f%d", ws, 4+n%4, n%25)
		switch n % 3 {
		case 0:
			os.WriteFile(ws+"/mine", []byte("busy "+strings.Repeat("b", 3000)+"\n"), 0o644)
			os.Rename(ws+"/mine", p)
		case 1:
			os.Remove(p)
		case 2:
			os.WriteFile(ws+"/mine", []byte("busy "+strings.Repeat("b", 3000)+"\n"), 0o644)
			unix.Renameat2(unix.AT_FDCWD, ws+"/mine", unix.AT_FDCWD, p, unix.RENAME_EXCHANGE)
			os.Remove(ws + "/mine")
		}
		time.Sleep(200 * time.Microsecond)
	}
}
