package stories

import (
	"fmt"
	"path"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// droppedPaths is how many paths the end of a run names, unless it is to leave
// nothing out.
const droppedPaths = 12

// Dropped says in lines what went with the private home, as a user would spell it,
// what is left of it elsewhere, and how the next run keeps it: "" where none would.
func Dropped(home string, all []story.Dropped, more uint64, long bool) (paths []string, left []string, keep string) {
	for i, d := range all {
		name := d.Path
		if d.Directory {
			name += "/"
		}
		if rest, below := strings.CutPrefix(words.Tilde(home, name), "~/"); below {
			name = "~/" + text.Word(rest)
		} else {
			name = text.Word(name)
		}
		if i < droppedPaths || long {
			paths = append(paths, name)
		}
		if d.Path != home+"/.gitconfig" {
			keep = keepDropped
		}
		switch {
		case len(left) >= droppedPaths:
		case d.Path == home+"/.gitconfig":
			left = append(left, name+" is never kept: make settings of git outside, with git config --global, or in the repository")
		case d.Git == "worktree" && d.Metadata != "":
			repository := path.Dir(path.Dir(d.Metadata))
			left = append(left, fmt.Sprintf("%s was a git worktree: what was committed there is in its repository, the rest is not. To remove what the repository keeps of it: git -C %s worktree prune",
				name, text.Word(strings.TrimSuffix(repository, "/.git"))))
		case d.Git == "worktree":
			left = append(left, name+" was a git worktree: what was committed there is in its repository, the rest is not. To remove what the repository keeps of it: git worktree prune")
		case d.Git == "repository":
			left = append(left, name+" was a git repository: what was not pushed from it is gone")
		}
	}
	if n := uint64(len(all)-len(paths)) + more; n > 0 && len(all) > 0 {
		paths = append(paths, fmt.Sprintf("%d more", n))
	}
	return paths, left, keep
}

// keepDropped is how such paths are kept.
const keepDropped = "to keep such a path, make it before the run and name it: --rw PATH, or filesystem.write in the policy"

// dropped is the same of a story.
func (pr *printer) dropped() {
	paths, left, keep := Dropped(pr.t.Started["home"], pr.t.Dropped, 0, pr.long)
	if len(paths) == 0 {
		return
	}
	pr.title("DROPPED")
	pr.printf("  with the private home: %s", strings.Join(paths, ", "))
	for _, l := range left {
		pr.printf("  %s", l)
	}
	if keep != "" {
		pr.printf("  %s", keep)
	}
}
