//go:build linux

package review

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// maxIndex is how much of an index is looked through.
const maxIndex = 256 << 20

// maxIndexed bounds how many names of an index are flagged.
const maxIndexed = 20

// checkIndex reports whether ch is an index that would have git write anywhere, and makes
// sure that it is not applied. For any other it notes what is new in it. repo is "" if
// the repository has another name.
func (c *collector) checkIndex(ch *Change, repo string) bool {
	dir, name := cut(string(ch.Path))
	inGit := repo != "" || slices.ContainsFunc(ch.Flags, func(f Flag) bool { return f.Rule == "git" })
	if !inGit || ch.Type != File || name != "index" && !strings.HasPrefix(name, "sharedindex.") {
		return false
	}
	if repo == "" {
		repo = dir
	}
	why := "it cannot be read, or is larger than git's are"
	if data := readIndex(c.t.upper, string(ch.Path)); data != nil {
		r := repoReader{c: c, repo: repo}
		config := []byte(r.file("config", true))
		if why = workspace.IndexHarm(data, config); why == "" {
			c.noteIndexNames(ch, data, config)
		}
	}
	if why == "" {
		return false
	}
	ch.raise("git", "git would write to any path that stands in it: %s", why)
	ch.Cannot = "git itself does not make an index like it: " + why
	return true
}

// noteIndexNames notes names in an index that are hidden from a run as long as git does not
// track them, and those that a host would obey: git checkout writes what the index has,
// whatever is decided about the files.
func (c *collector) noteIndexNames(ch *Change, data, config []byte) {
	dir, name := cut(string(ch.Path))
	top := dir
	r := repoReader{c: c, repo: dir}
	if at, base := cut(dir); strings.EqualFold(base, ".git") {
		top = at
	} else if at, in := strings.CutPrefix(r.file("gitdir", true), c.root+"/"); in {
		top, _ = cut(strings.TrimRight(at, "\n"))
	}
	was := [][]byte{c.oldIndex(string(ch.Path))}
	if name != "index" {
		was = append(was, c.oldIndex(join(dir, "index")))
	}
	shared := func(name string) []byte {
		if data := readIndex(c.t.upper, join(dir, name)); data != nil {
			return data
		}
		return c.oldIndex(join(dir, name))
	}
	list := c.rules.IndexNames(c.t.tree, top, data, was, shared, config)
	for _, n := range list[:min(len(list), maxIndexed)] {
		if n.Rule.Tier == workspace.Hide {
			ch.indexed = append(ch.indexed, Flag{n.Rule.Pattern, fmt.Sprintf("git's index names %q, which was hidden: what git tracks is not hidden from the next run", n.Path)})
			continue
		}
		ch.indexed = append(ch.indexed, Flag{n.Rule.Pattern, fmt.Sprintf("git's index names %q, and git checkout or git restore writes it: %s", n.Path, n.Rule.Reason)})
	}
	old := func(name string) []byte { return c.oldIndex(join(dir, name)) }
	for _, why := range workspace.IndexBlind(data, was, shared, old, config) {
		ch.indexed = append(ch.indexed, Flag{".git/index", why})
	}
	if more := len(list) - maxIndexed; more > 0 {
		ch.indexed = append(ch.indexed, Flag{"git", fmt.Sprintf("git's index has %d more names, or more than that, which a host would obey or which were hidden", more)})
	}
}

// oldIndex is an index as it was when the run began; nil for none.
func (c *collector) oldIndex(path string) []byte { return readWhole(c.t.openOld(path)) }

// readIndex reads a whole index below root; nil if there is none that git would accept.
func readIndex(root int, path string) []byte {
	return readWhole(openFile(root, path, true))
}

func readWhole(f *os.File, err error) []byte {
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil || len(data) > maxIndex {
		return nil
	}
	return data
}
