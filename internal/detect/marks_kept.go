package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// settings are files below a home that say what git executes there
// (git-config(1), FILES). They have no mark of their own: every git looks for
// them, and a look-up of what is marked is always recorded.
var settings = []string{".gitconfig", ".config/git/config", ".config/git/attributes", ".config/git/hooks"}

// keptWord marks a change to a place in the home which the host executes or obeys,
// if the change did not reach it. It is a word only for conditions, without a bit.
const keptWord = "kept"

// keptMarks are the marks of the two paths of a change that did not reach such places:
// it went into the private home, or found no directory there. 0 for all others.
func (p *Place) keptMarks(e *event.Event) (object, to mark) {
	missed := e.Verdict == event.Denied && e.Layer == event.LayerView && e.Action != event.FileLookup && e.Action != event.FileOpen
	if e.Detail[event.DetailKept] == "" && !missed {
		return 0, 0
	}
	object = p.keptAt(cmp.Or(e.Resolved, e.Object))
	if e.Action == event.FileRename { // the second path of a link is the one that is read
		to = p.keptAt(cmp.Or(e.Detail["to_resolved"], e.Detail["to"]))
	}
	return object, to
}

// keptWords adds keptWord to the words of an event.
func (p *Place) keptWords(e *event.Event, words []string) []string {
	object, to := p.keptMarks(e)
	if object != 0 {
		words = append(words, keptWord)
	}
	if to != 0 {
		words = append(words, toPrefix+keptWord)
	}
	return words
}

// keptAt is the mark of a place below the home, if a program of the host
// executes or obeys it there, and of a copy of a repository's configuration; 0 for any
// other place.
func (p *Place) keptAt(at string) mark {
	if within(at, event.KeptConfigs) {
		return hook
	}
	if p.Home == "" || p.Home == "/" || !within(at, p.Home) || within(at, p.Workspace) {
		return 0
	}
	rest := strings.TrimPrefix(at[len(p.Home):], "/")
	if slices.ContainsFunc(settings, func(s string) bool { return within(rest, s) }) {
		return hook
	}
	w := walk{names: pathNames(), place: p, first: true}
	w.walkNames(rest)
	if m := w.found & (startup | guardrail | editor | hook | credential | usual); m != 0 && w.found&browserStore == 0 {
		return m
	}
	return 0
}

// toolchains are names in a home, besides those with a dot, that programs make for
// themselves.
var toolchains = []string{
	"go", "node_modules", "snap", "perl5", "R", "nltk_data", "sdk",
	"anaconda3", "miniconda3", "miniforge3", "mambaforge", "micromamba",
}

// Personal reports whether an absolute path is one that a user would look for: it is
// below the home, and neither a name that programs make for themselves, such as a cache
// or the state of an agent, nor in the workspace. Of the names that begin with a dot,
// only those count that the host executes, or reads credentials and settings from.
func (p Place) Personal(at string) bool {
	if p.Home == "" || p.Home == "/" || at == p.Home || !within(at, p.Home) || within(at, p.Workspace) {
		return false
	}
	rest := strings.TrimPrefix(at[len(p.Home):], "/")
	first, _, _ := strings.Cut(rest, "/")
	if !strings.HasPrefix(first, ".") {
		return !slices.Contains(toolchains, first) && p.path(rest)&dependency == 0
	}
	m := p.keptAt(at)
	switch {
	case m&guardrail != 0:
		return false
	case m&(startup|hook) != 0:
		return true
	}
	top := path.Dir(rest) == "."
	return m&(editor|usual) != 0 && top && rest != ".ssh" && rest != ".aws" && rest != ".kube" && rest != ".gnupg" && rest != ".azure" ||
		m&credential != 0 && m&usual == 0 && !top && (first == ".ssh" || first == ".aws" || first == ".kube" || first == ".gnupg")
}
