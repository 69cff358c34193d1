package reviews

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/review"
)

// manyInOne is how many files of a directory that is new are named one by one.
const manyInOne = 12

// tree prints changes below the directories that they are in.
func (v *openedReview) tree(b *strings.Builder, list []*review.Change, all bool) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y *review.Change) int {
		return strings.Compare(sortKey(string(x.Path)), sortKey(string(y.Path)))
	})
	heading := ""
	first := true
	for i := 0; i < len(list); {
		c := list[i]
		dir := parentDir(string(c.Path))
		if top, n := v.sameBelow(list[i:]); n > manyInOne && !all {
			fmt.Fprintf(b, "\n%s  %s %s  %s\n", fileName(top+"/"), c.Kind, words.Plural(n, "path", "paths"), v.a.Tint(command.Grey, "(--all names them)"))
			heading, first = "\x00", false
			i += n
			continue
		}
		if dir != heading || first {
			heading, first = dir, false
			if dir == "" {
				dir = "."
			}
			fmt.Fprintf(b, "\n%s\n", v.a.Tint(command.Bold, fileName(dir+"/")))
		}
		fmt.Fprintf(b, "  %s\n", v.line(c, path.Base(string(c.Path))))
		i++
	}
}

// sortKey puts what is in a directory before what is in directories below it.
func sortKey(p string) string {
	dir, base := parentDir(p), path.Base(p)
	return strings.ReplaceAll(dir, "/", "\x01") + "\x00" + base
}

func parentDir(p string) string {
	if d := path.Dir(p); d != "." {
		return d
	}
	return ""
}

// sameBelow counts the changes at the beginning of a list that are in one directory
// that is new as a whole, and have the same decision. Deletions are never grouped in
// one line: they cannot be looked up afterwards in what is there.
func (v *openedReview) sameBelow(list []*review.Change) (string, int) {
	c := list[0]
	if c.Kind != review.Added {
		return "", 0
	}
	top := ""
	for dir := parentDir(string(c.Path)); dir != "" && v.isNewDirectory(dir); dir = parentDir(dir) {
		top = dir
	}
	if top == "" && c.Type == review.Dir {
		top = string(c.Path)
	}
	if top == "" {
		return "", 0
	}
	n := 0
	for _, other := range list {
		p := string(other.Path)
		if !paths.Within(top, p) || other.Kind != c.Kind || other.Decision != c.Decision || other.Applied != c.Applied || other.Cannot != "" || len(other.Notes) > 0 {
			break
		}
		n++
	}
	return top, n
}

// isNewDirectory reports whether a directory as a whole is new.
func (v *openedReview) isNewDirectory(dir string) bool {
	if c := v.set.Find(dir); c != nil {
		return c.Kind == review.Added && c.Type == review.Dir
	}
	if v.listOnly() {
		return false
	}
	is, known := v.missing[dir]
	if !known {
		_, err := os.Lstat(string(v.Workspace) + "/" + dir)
		is = errors.Is(err, fs.ErrNotExist)
		v.missing[dir] = is
	}
	return is
}
