package policy

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

var patterns = kind{
	takes:  "a list of names or path patterns",
	many:   true,
	text:   func(k key, text string) (Entry, string, error) { return checked(k, text, patternText(text)) },
	schema: func(key) map[string]any { return list(textShape()) },
}

func patternText(text string) error {
	switch {
	case text == "" || strings.ContainsAny(text, "\x00\n\r"):
		return errors.New("an empty pattern, or one with a line break")
	case strings.Trim(text, "/*.") == "" || strings.HasPrefix(text, "~"):
		return fmt.Errorf("the pattern %q; patterns are names, or paths that count from the workspace", printable(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the pattern %q has a component .. in it", printable(text))
	}
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Errorf("the pattern %q: %w", printable(text), err)
	}
	return nil
}

// Pattern is a name or a path pattern (path.Match) that applies at any depth of
// the workspace, or with a leading slash at its top only.
type Pattern struct {
	Text   string
	Origin Origin
}

// names sets which names of the workspace are protected and hidden in addition to the
// built-in lists, and which names of those are not.
func (p *Plan) names(e Effective) {
	p.ProtectMore, p.ProtectLess = e.patterns("workspace.protect"), e.patterns("workspace.unprotect")
	p.HideMore, p.HideLess = e.patterns("workspace.hide"), e.patterns("workspace.show")
}

func (e Effective) patterns(key string) (out []Pattern) {
	for _, one := range e.entriesFor(key) {
		out = append(out, Pattern{one.Value, one.Origin})
	}
	return out
}

// Protected is a path below the workspace that the host would later execute
// (or obey), and that is therefore read-only inside although the workspace is
// writable. Found by package workspace, enforced by the backend: the path is
// read-only, and neither it nor an ancestor up to the workspace can be renamed
// or removed.
type Protected struct {
	Root   string // absolute directory that Path is below; "" means Plan.Workspace. Set for the git directory of a worktree whose repository is elsewhere
	Path   string // relative to Root, cleaned, no leading ./
	Rule   string // pattern of the list that matched, for messages
	Reason string // what on the host executes it
	IsDir  bool
	IsLink bool   // the path itself is a symbolic link; its target has a row of its own if it is in the workspace
	File   FileID // what Path was: a backend mounts over this or over nothing

	// Copy is the absolute path inside of a file that the command may change, to which
	// a link in the place of Path leads; "" for Path itself, read-only.
	Copy string
}

// Within returns the absolute path of a protected row of the plan.
func (p Plan) Within(r Protected) string {
	if r.Root != "" {
		return filepath.Join(r.Root, r.Path)
	}
	return filepath.Join(p.Workspace, r.Path)
}

func (x explainer) protected(path string) (Protected, bool) {
	return x.findProtected(path, slices.Concat(x.plan.Protect, x.plan.HardLinks))
}

// findProtected finds the row that path is or lies below.
func (x explainer) findProtected(path string, rows []Protected) (Protected, bool) {
	for _, p := range rows {
		if within(path, x.plan.Within(p)) {
			return p, true
		}
	}
	return Protected{}, false
}

// Reserved is a name in the workspace that is looked after when it appears
// during a run. It is for explanations: the package that knows the list
// decides, and sees more than a name.
type Reserved struct {
	Pattern string // components joined by "/", each as path.Match takes it
	Reason  string // what on the host executes it
	Outcome string // a clause: what becomes of it
	InGit   bool   // only in a git directory
	AtRoot  bool   // only at the top of the workspace
}

// reserved is the first name that a path of the workspace, or a directory that
// it is in, matches.
func (x explainer) reserved(full string) (Reserved, bool) {
	rel, err := filepath.Rel(x.plan.Workspace, full)
	if err != nil || !within(full, x.plan.Workspace) {
		return Reserved{}, false
	}
	parts := strings.Split(strings.ToLower(rel), "/")
	for _, r := range x.names {
		pattern := strings.Split(strings.ToLower(r.Pattern), "/")
		for i := 0; i+len(pattern) <= len(parts); i++ {
			if r.AtRoot && i > 0 {
				break
			}
			if slices.Contains(parts[:i], ".git") == r.InGit && matchAll(pattern, parts[i:]) {
				return r, true
			}
		}
	}
	return Reserved{}, false
}

// matchAll matches each pattern with the name at its place.
func matchAll(patterns, names []string) bool {
	for i, p := range patterns {
		if ok, err := path.Match(p, names[i]); !ok || err != nil {
			return false
		}
	}
	return true
}
