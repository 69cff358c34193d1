//go:build linux

package review

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// maxHistoryFlags bounds how many flags of its parts a history shows.
const maxHistoryFlags = 40

// showParts flags a history with what its parts make git show, or do next: there
// they are not seen one by one.
func (h *Change) showParts() {
	more := 0
	for _, p := range h.parts {
		for _, f := range append(slices.Clone(p.Flags), p.indexed...) {
			switch {
			case f.Rule == "git" && !slices.Contains(p.indexed, f), slices.Contains(h.Flags, f):
			case len(h.Flags) >= maxHistoryFlags:
				more++
			default:
				h.Flags = append(h.Flags, f)
			}
		}
	}
	if more > 0 {
		h.raise("git", "%d more of its files make git show or do something", more)
	}
}

// gitState judges a file of an operation that git has under way. One that could make
// git execute or write something is not applied, as a run that writes to the
// workspace does not keep it.
func (c *collector) gitState(ch *Change, repo string) {
	inGit := repo != "" || slices.ContainsFunc(ch.Flags, func(f Flag) bool { return f.Rule == "git" })
	if !inGit || ch.Type != File {
		return
	}
	parts := strings.Split(string(ch.Path), "/")
	for n := 1; n <= min(2, len(parts)-1); n++ {
		rel := strings.Join(parts[len(parts)-n:], "/")
		if !workspace.IsGitState(rel) {
			continue
		}
		why := "it cannot be read, or is larger than git's are"
		if data := readIndex(c.t.upper, string(ch.Path)); data != nil {
			why = workspace.GitStateHarm(rel, data, c.oldIndex(string(ch.Path)))
		}
		if why != "" {
			ch.raise("git", "git's next commands follow it, and %s", why)
			ch.Cannot = "git's next commands follow it, and " + why
		}
		return
	}
}

// gitView notes what makes git show something else than is there.
func (c *collector) gitView(ch *Change, rel string) {
	if ch.Type != File {
		return
	}
	path := string(ch.Path)
	note := func(why string) { ch.indexed = append(ch.indexed, Flag{"git", fmt.Sprintf("%s: %s", rel, why)}) }
	switch {
	case rel == "packed-refs":
		data := readIndex(c.t.upper, path)
		if data == nil {
			note("it cannot be read, or is larger than git's are")
		} else if why := workspace.PackedHarm(data, c.oldIndex(path)); why != "" {
			note(why)
		}
	case strings.HasPrefix(rel, "reftable/"):
		c.tablesView(strings.TrimSuffix(path, rel)+"reftable", note)
	case strings.HasPrefix(rel, "refs/replace/"):
		note("git shows, and checks out, another object in the place of the one that it names")
	}
}

// tablesView notes what the reftables in dir replace together that they did not
// before: one of them may bring back what another one had deleted.
func (c *collector) tablesView(dir string, note func(why string)) {
	now := func(name string) []byte {
		if data := readIndex(c.t.upper, join(dir, name)); data != nil {
			return data
		}
		return c.oldIndex(join(dir, name))
	}
	old := func(name string) []byte { return c.oldIndex(join(dir, name)) }
	was, _ := workspace.TablesInForce(old("tables.list"), old)
	lines, unread := workspace.TablesInForce(now("tables.list"), now)
	if len(unread) > 0 {
		note(fmt.Sprintf("%q cannot be read as git reads it: git could show other objects than it seems", unread[0]))
	}
	if more := slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(was, line) }); len(more) > 0 {
		note(fmt.Sprintf("with it the repository has %d more refs/replace: git shows, and checks out, other objects in the place of those that they name", len(more)))
	}
}
