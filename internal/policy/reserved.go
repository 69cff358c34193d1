package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Reserved is a name in the workspace that is looked after when it appears
// during a run. It is for explanations: the package that knows the list
// decides, and sees more than a name.
type Reserved struct {
	Pattern string // components joined by "/", each as path.Match takes it
	Reason  string // what on the host executes it
	Fate    string // a clause: what becomes of it
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
