package cli

import (
	"errors"
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/run"
)

// asks says that something waits, where that cannot spoil what the command
// draws: on a terminal in raw mode the command may have the whole screen.
func (a *app) asks(s run.Streams) func(id, what string) {
	if s.InTerminal && s.ErrTerminal {
		return nil
	}
	return func(id, what string) {
		fmt.Fprintf(a.Stderr, "%s %s %s (holdfast approve)\n", a.Paint(command.Yellow, "holdfast: asks:"), id, consent.Visible(what))
	}
}

// consents says after a run what rules of consent were about, a line each.
func (a *app) consents(all []consent.Outcome) {
	for i, c := range all {
		if i == summaryLines {
			fmt.Fprintf(a.Stderr, "%s and %d more, in the record of the run\n", a.Paint(command.Yellow, "holdfast: asked:"), len(all)-i)
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
		fmt.Fprintf(a.Stderr, "%s %s)\n", a.Paint(colour, "holdfast: "+kind+":"), text.Line(line))
	}
}

// deniedError is a command that was not executed because it was denied.
type deniedError struct{ err error }

func (e *deniedError) Error() string { return "the command was denied, and nothing was executed" }
func (e *deniedError) Unwrap() error { return e.err }

// Hint is where it is said who denied it, and by which rule.
func (e *deniedError) Hint() string {
	return "see what was asked: holdfast log query 'action.startsWith(\"approval.\")'"
}

// deniedCommand tells a command that was denied from one that cannot be executed.
func deniedCommand(r run.Result, err error) error {
	if errors.Is(err, boundary.ErrNotExecutable) && slices.ContainsFunc(r.Asked, consent.Outcome.Denied) {
		return &deniedError{err}
	}
	return err
}
