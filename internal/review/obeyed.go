//go:build linux

package review

import (
	"context"
	"slices"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// obey flags what the host would execute or obey although the list does not name
// it, because something else in the workspace, before the run or after it, or the
// user's own configuration leads there.
func (s *Set) obey(ctx context.Context) error {
	obeyed, err := workspace.FindObeyed(ctx, s.Source.Workspace, s.Source.Dir+"/"+workspace.UpperDir, s.Source.Rules, s.Source.Obey...)
	if err != nil {
		return err
	}
	for _, c := range s.Changes {
		for _, p := range []workspace.Name{c.Path, c.From} {
			c.obey(obeyed.Rule(string(p)))
		}
		if c.Type == Link || c.Kind == TypeChanged {
			c.obey(obeyed.Above(string(c.Path)))
		}
	}
	return nil
}

// obey flags c with a rule that leads to it, unless the list says the same.
func (c *Change) obey(r *workspace.Rule) {
	if r == nil || slices.ContainsFunc(c.Flags, func(f Flag) bool { return f.Rule == r.Pattern }) {
		return
	}
	c.raise(r.Pattern, "what %s names or leads to: %s", r.Pattern, r.Reason)
}
