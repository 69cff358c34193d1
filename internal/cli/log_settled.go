package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/text"
)

// settledAfter is what settling found after the supervisor of a session was
// killed: the record itself was broken off before.
type settledAfter struct {
	Quarantined []struct {
		Path   string `json:"path"`
		Held   string `json:"held"`
		Reason string `json:"reason"`
	} `json:"quarantined,omitempty"`
	Flagged []struct {
		Path   string `json:"path"`
		Change string `json:"change"`
		Reason string `json:"reason"`
	} `json:"flagged,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// settledOf reads what was found after a session; nil for nothing.
func (r archive) settledOf(session string) *settledAfter {
	for _, name := range []string{"settled.json", "settled-told.json"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(r.logs), "sessions", filepath.Base(session), name))
		if err != nil {
			continue
		}
		s := &settledAfter{}
		if json.Unmarshal(data, s) == nil {
			return s
		}
	}
	return nil
}

// writeSettled tells it.
func writeSettled(w io.Writer, s *settledAfter) {
	if s == nil {
		return
	}
	fmt.Fprintln(w, "\nThe supervisor was killed; what the run left was looked through afterwards:")
	for _, q := range s.Quarantined {
		fmt.Fprintf(w, "  held back  %s (%s)\n             now at %s\n", text.Line(q.Path), text.Safe(q.Reason), text.Line(q.Held))
	}
	for _, f := range s.Flagged {
		fmt.Fprintf(w, "  %-9s  %s (%s)\n", text.Safe(f.Change), text.Line(f.Path), text.Safe(f.Reason))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "  warning    %s\n", text.Line(warning))
	}
}
