//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Past the budget nothing is taken for harmless.
func TestBudget(t *testing.T) {
	settled := func(t *testing.T, prepare func(*Budget)) (string, Report) {
		w := tempRoot(t)
		write(t, w, "old/Makefile", "all:\n")
		s := scanned(t, w)
		for i := range 4 {
			repo := fmt.Sprintf("r%d/.git/", i)
			write(t, w, repo+"HEAD", "ref: refs/heads/main\n")
			write(t, w, repo+"objects/x", "")
			write(t, w, repo+"refs/x", "")
			write(t, w, repo+"index", string(indexOf(20, "", "a")))
			write(t, w, repo+"config", "[core]\n\tbare = false\n")
			write(t, w, repo+"sequencer/opts", "[options]\n\tedit = false\n")
			write(t, w, repo+"packed-refs", "# pack-refs with: peeled fully-peeled sorted\n")
		}
		write(t, w, "new/Makefile", "all:\n")
		write(t, w, "new/.envrc", "")
		s.Budget = NewBudget()
		prepare(s.Budget)
		r, err := s.Settle(context.Background(), tempRoot(t))
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	taken := func(r Report, name string) bool {
		return slices.ContainsFunc(r.Quarantined, func(q Quarantined) bool { return strings.HasSuffix(string(q.Path), name) })
	}
	t.Run("with enough of it only what is dangerous goes", func(t *testing.T) {
		_, r := settled(t, func(*Budget) {})
		if len(r.Quarantined) != 1 || !taken(r, "new/.envrc") {
			t.Errorf("%+v", r.Quarantined)
		}
	})
	t.Run("what could not be read is moved out, and names are still looked at", func(t *testing.T) {
		_, r := settled(t, func(b *Budget) { b.bytes.Store(0) })
		for _, name := range []string{"new/.envrc", "r0/.git/index", "r3/.git/index", "r0/.git/config", "r0/.git/sequencer/opts"} {
			if !taken(r, name) {
				t.Errorf("%s stays", name)
			}
		}
		if !slices.ContainsFunc(r.Flagged, func(f Flagged) bool { return strings.HasSuffix(string(f.Path), "new/Makefile") && f.After == "" }) {
			t.Errorf("%+v", r.Flagged)
		}
		if !slices.ContainsFunc(r.Flagged, func(f Flagged) bool { return strings.HasSuffix(string(f.Path), "r3/.git/packed-refs") }) {
			t.Errorf("packed references that were not read are not listed: %+v", r.Flagged)
		}
	})
	for name, prepare := range map[string]func(*Budget){
		"stopped, everything is listed as unexamined": (*Budget).Stop,
		"so it is when the time is over":              func(b *Budget) { b.end = time.Now() },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := settled(t, prepare)
			if len(r.Flagged) != 1 || r.Flagged[0].Change != Unexamined || string(r.Flagged[0].Path) != w {
				t.Errorf("%+v", r.Flagged)
			}
			if r.Unsure == "" && len(r.Differences) > 0 {
				t.Errorf("it claims to know all differences")
			}
		})
	}
}

// What an earlier run left does not decide what the next start costs.
func TestBudgetOfAStart(t *testing.T) {
	w := tempRoot(t)
	for i := range 4 {
		repo := fmt.Sprintf("r%d/.git/", i)
		write(t, w, repo+"HEAD", "ref: refs/heads/main\n")
		write(t, w, repo+"objects/x", "")
		write(t, w, repo+"refs/x", "")
		write(t, w, repo+"index", string(indexOf(20, "", "a")))
	}
	t.Run("an index that is not read counts as new at the end", func(t *testing.T) {
		b := NewBudget()
		b.bytes.Store(0)
		s, err := Scan(t.Context(), w, DefaultRules(), withBudget(b))
		if err != nil || len(s.Warnings) != 4 || !strings.Contains(s.Warnings[0], "was not read") {
			t.Fatalf("%v, %q", err, s.Warnings)
		}
	})
	t.Run("sparse indexes", func(t *testing.T) {
		for i := range 14 {
			repo := fmt.Sprintf("s%d/.git/", i)
			write(t, w, repo+"HEAD", "ref: refs/heads/main\n")
			write(t, w, repo+"objects/x", "")
			write(t, w, repo+"refs/x", "")
			write(t, w, repo+"index", "DIRC\x00\x00\x00\x02\x00\x0f\xff\xff")
			must(t, os.Truncate(w+"/"+repo+"index", 200<<20))
		}
		b := NewBudget()
		s, err := Scan(t.Context(), w, DefaultRules(), withBudget(b))
		if err != nil || len(s.Warnings) < 10 {
			t.Fatalf("%v, %d warnings", err, len(s.Warnings))
		}
	})
	t.Run("when the time is over nothing starts", func(t *testing.T) {
		b := NewBudget()
		b.end = time.Now()
		var over *BudgetError
		if _, err := Scan(t.Context(), w, DefaultRules(), withBudget(b)); !errors.As(err, &over) || over.Hint() == "" {
			t.Errorf("%v", err)
		}
	})
	t.Run("settings that name programs in each of many worktrees", func(t *testing.T) {
		w := tempRoot(t)
		write(t, w, ".git/HEAD", "ref: refs/heads/main\n")
		write(t, w, ".git/objects/x", "")
		write(t, w, ".git/refs/x", "")
		var config strings.Builder
		for i := range 20_000 {
			fmt.Fprintf(&config, "[alias]\n\ta%d = !x\n", i)
		}
		write(t, w, ".git/config", config.String())
		for i := range 5000 {
			write(t, w, fmt.Sprintf("t%d/.git", i), "gitdir: x\n")
		}
		began := time.Now()
		var limit *LimitError
		if _, err := Scan(t.Context(), w, DefaultRules()); !errors.As(err, &limit) || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The clock is read at the first of each 1024 entries, and the directory that is
// scanned then is reported to the user.
func TestBudgetIsAskedNowAndThen(t *testing.T) {
	rules := DefaultRules()
	at := func(dir string) *walker { return &walker{walk: &walk{rules: &rules}, path: []byte(dir)} }
	b := NewBudget()
	s := &scan{found: &tree{Root: "/w"}, budget: b}
	b.Stop()
	var over *BudgetError
	if err := s.countEntry(at("d")); !errors.As(err, &over) || over.At != "/w/d" || over.Files != 1 {
		t.Errorf("the first entry: %v", err)
	}
	if err := s.countEntry(at("e")); err != nil || b.At() != "/w/d" {
		t.Errorf("the second entry: %v, at %s", err, b.At())
	}
	b.files.Store(1024)
	if err := s.countEntry(at("f")); err == nil || b.At() != "/w/f" {
		t.Errorf("the 1025th entry: %v, at %s", err, b.At())
	}

	v := &settle{t: &tree{Root: "/w"}, budget: NewBudget(), unexamined: map[string]bool{}}
	for i, want := range []Name{"/w/d", "/w/d", "/w"} {
		if i == 2 {
			v.budget.files.Store(2048)
		}
		if !v.countEntry([]byte([]string{"d", "e", ""}[i])) || v.budget.At() != string(want) || v.partial {
			t.Errorf("entry %d: at %s, partial %t", i, v.budget.At(), v.partial)
		}
	}
}

// What was not looked through is listed, directory by directory as long as these are
// few, with the reason.
func TestUnexaminedIsListed(t *testing.T) {
	for _, tt := range []struct {
		dirs, want int
		end        func(*Budget)
		why        string
	}{
		{3, 3, (*Budget).Stop, "that was stopped"},
		{3, 3, func(b *Budget) { b.end = time.Now() }, "that took too long"},
		{maxUnread, maxUnread, (*Budget).Stop, "that was stopped"},
		{maxUnread + 9, 1, (*Budget).Stop, "that was stopped"},
	} {
		v := &settle{t: &tree{Root: "/w"}, budget: NewBudget(), unexamined: map[string]bool{}}
		tt.end(v.budget)
		for i := range tt.dirs {
			if v.countEntry(fmt.Appendf(nil, "d%d", i)) || !v.partial {
				t.Errorf("directory %d is looked at", i)
			}
		}
		v.listUnexamined()
		if list := v.report.Flagged; len(list) != tt.want || !strings.Contains(list[0].Reason, tt.why) || (list[0].Path == "/w") != (tt.want == 1) {
			t.Errorf("%d directories: %d lines, %+v", tt.dirs, len(list), list[0])
		}
	}
	v := &settle{snap: &Snapshot{Root: "/w"}, t: &tree{Root: "/w"}}
	if v.listMore(); len(v.report.Flagged) != 0 {
		t.Errorf("nothing is missing: %+v", v.report.Flagged)
	}
	for range maxFlagged + 3 {
		v.addFlagged(Flagged{})
	}
	if v.listMore(); len(v.report.Flagged) != maxFlagged+1 || v.report.Flagged[maxFlagged].Files != 3 {
		t.Errorf("%d lines, %+v", len(v.report.Flagged), v.report.Flagged[len(v.report.Flagged)-1])
	}
}

func TestBudgetSpends(t *testing.T) {
	b := NewBudget()
	b.bytes.Store(10)
	for i, tt := range []struct {
		n  int64
		ok bool
	}{{11, false}, {10, true}, {1, false}, {0, true}, {-5, true}, {1, false}} {
		if b.spend(tt.n) != tt.ok {
			t.Errorf("%d: %d bytes: %v", i, tt.n, !tt.ok)
		}
	}
	b.Stop()
	if b.spend(0) {
		t.Error("nothing more is read once it is stopped")
	}
	b.Expect("/a", "/b")
	if b.finished("/a"); !slices.Equal(b.Left(), []string{"/b"}) {
		t.Errorf("left: %q", b.Left())
	}
}
