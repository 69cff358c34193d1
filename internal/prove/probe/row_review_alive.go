//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// unreviewed is the content that a second run puts into the place of what an apply
// prepares.
const unreviewed = "this was never reviewed"

// aliveRows are about a review that is applied while another run is alive in the
// workspace: it sees each name that the launcher makes there.
func aliveRows() []Row {
	var files, dirs, refs []string
	for i := range 40 {
		dir := fmt.Sprintf("W/r%d/.git/refs/heads", i)
		files, dirs, refs = append(files, fmt.Sprintf("W/src/%d", i)), append(dirs, dir), append(refs, dir+"/topic")
	}
	const title = "a run that is alive in the workspace exchanges %s that an apply prepares, and the apply says that it applied what was reviewed"
	exchange := func(dirs ...string) *Command {
		return &Command{Action: "exchange-prepared", Args: []string{"path=" + strings.Join(dirs, "\n"), "evil=" + unreviewed, "skip=topic"}}
	}
	rows := []Row{
		{ID: "RVW-401", Title: fmt.Sprintf(title, "the files"), Refs: []string{"CWE-367", "renameat2(2)"}, Files: asItWas(files),
			Action: "overwrite", Args: []string{"path=" + strings.Join(files, "\n")}, Oracle: appliedUnreviewed(files),
			Beside: exchange("W/src")},
		{ID: "RVW-402", Title: fmt.Sprintf(title, "the branches of git"), Refs: []string{"CWE-367", "gitrepository-layout(5)"}, Setup: manyRepositories,
			Action: "git-write", Args: []string{"path=" + strings.Join(refs, "\n")}, Oracle: appliedUnreviewed(refs),
			Beside: exchange(dirs...)},
	}
	for i := range rows {
		r := &rows[i]
		r.Class, r.Kind, r.Promise, r.Core = classReview, Sandbox, "P3", i == 0
		r.Harmless = "names of the workspace may be exchanged; what counts is what is said to be applied"
		r.Bare = "nothing is reviewed or applied there, so that nothing can be said of it"
		r.Drive, r.Timed, r.Timeout = thenReviewed("accept", "--flagged", "."), true, time.Minute
		r.Trace = nothing("that names of the workspace are exchanged is honest work")
	}
	return rows
}

// asItWas are files with some content.
func asItWas(paths []string) map[string]string {
	files := map[string]string{}
	for _, path := range paths {
		files[path] = "as it was\n"
	}
	return files
}

// manyRepositories makes the repositories of RVW-402. The inside is told the commit
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
// the launcher says that it, or the repository that it is in, was applied.
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
