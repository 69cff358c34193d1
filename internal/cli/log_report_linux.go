package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/incident"
	"holdfast.dev/holdfast/internal/review"
)

// matrixRows are the rows of the escape matrix with what must be seen of each, as
// the examiner lists them; nil where it is not installed.
func matrixRows(ctx context.Context) ([]incident.Row, error) {
	path, err := command.Beside(examiner)
	if err != nil {
		return nil, nil
	}
	printed, err := exec.CommandContext(ctx, path, "rows", "--record").Output()
	if err != nil {
		return nil, fmt.Errorf("asking %s for its rows: %w", path, err)
	}
	var listed []struct {
		ID, Class string
		Core      bool
		Rules     []string
		Denied    []incident.Attempt
	}
	if err := json.Unmarshal(printed, &listed); err != nil {
		return nil, fmt.Errorf("reading the rows of %s: %w", path, err)
	}
	rows := make([]incident.Row, len(listed))
	for i, r := range listed {
		rows[i] = incident.Row{ID: r.ID, Class: r.Class, Core: r.Core, Rules: r.Rules, Attempts: r.Denied}
	}
	return rows, nil
}

// executesHere says why a host executes a file, by the list of names that a run
// protects and lists by. Git's own files that are judged by what they say are held
// back where they can do harm, and are ordinary otherwise.
func executesHere() func(string) string {
	rules := workspace.DefaultRules()
	return func(name string) string {
		rule := rules.Find(name)
		if rule == nil || rule.Judged || rule.Tier != workspace.Deny && rule.Tier != workspace.Flag {
			return ""
		}
		return rule.Reason
	}
}

// changesOf is what is kept of the changes of a run; nil where nothing is.
func (a *app) changesOf(ctx context.Context, session string) (*incident.Changes, error) {
	all, host, err := a.reviews()
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.Session != session || r.Running() || !r.Waits() && !r.Direct() {
			continue
		}
		v := &reviewing{a: a, Reviewed: r, host: host}
		if err := v.read(ctx); err != nil {
			return nil, err
		}
		defer v.set.Close()
		c := &incident.Changes{}
		if v.direct != nil {
			c.Whole = v.direct.Cut == 0 && v.direct.Unsure == ""
			for _, d := range v.direct.Changes {
				if d.Flag != nil {
					c.Flags = append(c.Flags, incident.Flagged{Path: string(d.Path), Change: string(d.Kind), Reason: d.Flag.Reason, Held: string(d.Held)})
				}
			}
			return c, nil
		}
		for _, change := range v.set.Changes {
			if change.Applied || change.Decision == review.Reject {
				continue
			}
			c.Waits++
			if change.Flagged() {
				c.Flags = append(c.Flags, incident.Flagged{Path: path.Join(string(v.Workspace), string(change.Path)), Change: change.Kind.String(), Reason: change.Flags[0].Reason})
			}
		}
		return c, nil
	}
	return nil, nil
}
