//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reviewing is a target that can hold changes of the workspace until they were
// reviewed. Review does what a human then does, with those words.
type Reviewing interface {
	// Holding returns the target called to hold changes.
	Holding() Target
	Review(w *World, words ...string) ([]byte, error)
}

// sharedByGroup gives W/shared to a group that is not the primary one of the user
// who starts the target.
func sharedByGroup(w *World) error {
	group, has := secondGroup()
	if !has {
		return fmt.Errorf("%w: a second group", ErrMissing)
	}
	return filepath.WalkDir(w.Path("W/shared"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return errors.Join(err, os.Chown(path, -1, group))
		}
		return errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o775|fs.ModeSetgid))
	})
}

// secondGroup returns a group that a file can be given to, other than the user's
// primary one: root may use any. In a user namespace in which an ordinary user
// mounts there is none: unmapped groups all appear as 65534 (user_namespaces(7)).
func secondGroup() (group int, has bool) {
	const nobodys, unmapped = 4242, 65534
	if os.Geteuid() == 0 {
		return nobodys, true
	}
	groups, err := os.Getgroups()
	i := slices.IndexFunc(groups, func(g int) bool { return g != os.Getgid() && g != unmapped })
	if err != nil || i < 0 {
		return 0, false
	}
	return groups[i], true
}

// thenReviewed plays the row against a target that holds changes, and then has a
// human review them with those words. Another target is played as it is.
func thenReviewed(words ...string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Reviewing)
		if !ok {
			s.Run(Command{})
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.Holding()
		s.Run(Command{})
		lines := [][]string{words}
		switch words[0] {
		case "accept":
			lines = append(lines, []string{"apply"})
		case "--all": // to review all
			lines = append(lines, []string{"accept", "ok.txt"}, []string{"apply"})
		}
		for _, line := range lines {
			out, err := t.Review(s.World, line...)
			s.World.remembered += string(out)
			if err != nil && len(out) == 0 { // the output tells what could not be applied
				s.Fail(fmt.Errorf("review %v: %w", line, err))
				return
			}
		}
	}
}

// unshown checks that each of these words is in the text of the review.
func unshown(words ...string) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		for _, word := range words {
			if !strings.Contains(w.remembered, word) {
				out = append(out, "the review shows nothing of "+word)
			}
		}
		return out
	}
}

// unreviewed is the content that a second run substitutes for what an apply
// prepares.
const unreviewed = "this was never reviewed"

// manyRepositories makes the repositories of RVW-402. The inside gets the commit
// that all of them have.
func manyRepositories(w *World) error {
	for i := range 40 {
		if err := w.gitInit(fmt.Sprintf("W/r%d", i)); err != nil {
			return err
		}
	}
	head, err := os.ReadFile(w.Path("W/r0/.git/refs/heads/main"))
	w.Arg("text=" + strings.TrimSpace(string(head)))
	return err
}

// appliedUnreviewed looks among paths for what the second run put there although
// the launcher reports that it, or its repository, was applied.
func appliedUnreviewed(paths []string) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		said := map[string]bool{}
		for line := range strings.Lines(w.remembered) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "applied "); ok {
				said[name] = true
			}
		}
		for _, path := range paths {
			rel := strings.TrimPrefix(path, "W/")
			repo, _, _ := strings.Cut(rel, ".git/")
			content, _ := readSome(w.Path(path))
			if (said[rel] || said[repo+".git"]) && string(content) == unreviewed {
				out = append(out, "said to be applied, and never reviewed: "+path)
			}
		}
		return out
	}
}

// withOutput plays the row with W/dist as a directory for results and further
// flags, if the target takes flags. What then waits for a human is accepted.
func withOutput(flags ...string) func(*Session) {
	return func(s *Session) {
		t := s.Target
		defer func() { s.Target = t }()
		if f, ok := t.(Flagger); ok {
			s.Target = f.With(append([]string{"--output", s.World.Path("W/dist")}, flags...)...)
		}
		s.Run(Command{})
		r, ok := t.(Reviewing)
		if !ok || !slices.Contains(flags, "--review") {
			return
		}
		for _, line := range [][]string{{"accept", "ok.txt"}, {"apply"}} {
			if out, err := r.Review(s.World, line...); err != nil && len(out) == 0 {
				s.Fail(err)
			}
		}
	}
}

// policies plays the row once for each policy if the target takes one by
// --policy, and else once without.
func policies(bodies ...string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Flagger)
		if !ok {
			s.Run(Command{Options: s.Row.Options})
			return
		}
		defer func() { s.Target = t.(Target) }()
		for i, body := range bodies {
			path := fmt.Sprintf("%s/named-%d.yaml", s.World.B, i)
			if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+body), 0o600); err != nil {
				s.Fail(err)
				return
			}
			s.Target = t.With("--policy", path)
			o := s.Run(Command{Options: s.Row.Options})
			if found := s.World.changes(); len(found) > 0 {
				s.World.seen = append(s.World.seen, finding{fmt.Sprintf("with %q: %s", body, found[0])})
				return
			}
			if o.TimedOut {
				return
			}
		}
	}
}
