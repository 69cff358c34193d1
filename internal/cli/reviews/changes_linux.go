package reviews

import (
	"context"
	"path"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/incident"
	"holdfast.dev/holdfast/internal/review"
)

// Changes is what is kept of the changes of a run; nil where nothing is.
func Changes(ctx context.Context, world *command.App, session string) (*incident.Changes, error) {
	a := &app{world}
	all, host, err := a.reviews()
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		if r.Session != session || r.Running() || !r.Waits() && !r.Direct() {
			continue
		}
		v := &openedReview{a: a, Reviewed: r, host: host}
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
