//go:build linux

package workspace

import (
	"context"
	"fmt"
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
		for _, name := range []string{"new/.envrc", "r0/.git/index", "r3/.git/index", "r0/.git/config"} {
			if !taken(r, name) {
				t.Errorf("%s stays", name)
			}
		}
		if !slices.ContainsFunc(r.Flagged, func(f Flagged) bool { return strings.HasSuffix(string(f.Path), "new/Makefile") && f.After == "" }) {
			t.Errorf("%+v", r.Flagged)
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
