package summary

import (
	"fmt"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

// consents says after a run what rules of consent were about, a line each.
func (a *app) consents(all []consent.Outcome) {
	for i, c := range all {
		if i == summaryLines {
			a.Note(command.Yellow, "asked", "and %d more, in the record of the run", len(all)-i)
			return
		}
		colour, kind := command.Yellow, "denied"
		switch {
		case c.Allowed:
			colour, kind = command.Cyan, "approved"
		case !c.Denied():
			kind = "ignored" // the request waited on
		}
		line := c.What + " (" + c.Why()
		if c.Count > 1 {
			line += fmt.Sprintf(", %d times", c.Count)
		}
		if c.Rule != "" {
			line += "; " + c.Rule
		}
		a.Note(colour, kind, "%s)", text.Line(line))
	}
}
