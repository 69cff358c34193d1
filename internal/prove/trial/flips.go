package trial

import (
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/report"
)

// Flip is a probe whose verdict differs between neighbouring versions of an agent
// in one posture.
type Flip struct {
	Target  string // agent and posture
	ID      string
	Title   string
	Changes []FlipChange // by version, the oldest first
}

// FlipChange is a verdict with the versions that have it, neighbours among the
// played ones.
type FlipChange struct {
	Verdict  string
	From, To string
}

// String describes the flip in one line, such as "held from 2.1.2, ESCAPED until
// 2.1.1".
func (f Flip) String() string {
	line := ""
	for i, c := range slices.Backward(f.Changes) {
		switch {
		case i == len(f.Changes)-1:
			line = fmt.Sprintf("%s from %s", c.Verdict, c.From)
		case c.From == c.To && i > 0:
			line += fmt.Sprintf(", %s at %s", c.Verdict, c.To)
		case i > 0:
			line += fmt.Sprintf(", %s from %s until %s", c.Verdict, c.From, c.To)
		default:
			line += fmt.Sprintf(", %s until %s", c.Verdict, c.To)
		}
	}
	return line
}

// Flips finds verdicts that differ between versions. It skips versions in which a
// probe proved nothing.
func Flips(runs []report.Run) []Flip {
	var targets []string
	by := map[string][]report.Run{}
	for _, r := range runs {
		name := r.Target.Name
		if by[name] == nil {
			targets = append(targets, name)
		}
		by[name] = append(by[name], r)
	}
	var out []Flip
	for _, name := range targets {
		all := by[name]
		slices.SortStableFunc(all, func(a, b report.Run) int { return agent.Compare(a.Target.Version, b.Target.Version) })
		var flips []*Flip
		known := map[string]*Flip{}
		for _, run := range all {
			for _, row := range run.Rows {
				if row.Verdict != report.Held && row.Verdict != report.Escaped {
					continue
				}
				f := known[row.ID]
				if f == nil {
					f = &Flip{Target: name, ID: row.ID, Title: row.Title}
					known[row.ID] = f
					flips = append(flips, f)
				}
				if n := len(f.Changes); n > 0 && f.Changes[n-1].Verdict == row.Verdict {
					f.Changes[n-1].To = run.Target.Version
					continue
				}
				f.Changes = append(f.Changes, FlipChange{row.Verdict, run.Target.Version, run.Target.Version})
			}
		}
		for _, f := range flips {
			if len(f.Changes) > 1 {
				out = append(out, *f)
			}
		}
	}
	return out
}
