//go:build linux

package review

import (
	"io"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/workspace"
)

// maxIndex is how much of an index is looked through.
const maxIndex = 256 << 20

// poisoned reports whether ch is an index that would have git write anywhere,
// and sees to it that it is not applied. repo is "" where the repository has
// another name.
func (c *collector) poisoned(ch *Change, repo string) bool {
	dir, name := cut(string(ch.Path))
	inGit := repo != "" || slices.ContainsFunc(ch.Flags, func(f Flag) bool { return f.Rule == "git" })
	if !inGit || ch.Type != File || name != "index" && !strings.HasPrefix(name, "sharedindex.") {
		return false
	}
	if repo == "" {
		repo = dir
	}
	why := "it cannot be read, or is larger than git's are"
	if f, err := openFile(c.t.upper, string(ch.Path), true); err == nil {
		data, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
		f.Close()
		if err == nil && len(data) <= maxIndex {
			r := repoReader{c: c, repo: repo}
			why = workspace.IndexHarm(data, []byte(r.file("config", true)))
		}
	}
	if why == "" {
		return false
	}
	ch.raise("git", "git would write to any path that stands in it: %s", why)
	ch.Cannot = "git itself does not make an index like it: " + why
	return true
}
