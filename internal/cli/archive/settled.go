package archive

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Settled is what settling found after the supervisor of a session was
// killed: the record itself was broken off before.
type Settled struct {
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

// SettledAfter reads what was found after a session; nil for nothing.
func (r Archive) SettledAfter(session string) *Settled {
	for _, name := range []string{"settled.json", "settled-told.json"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(r.Logs), "sessions", filepath.Base(session), name))
		if err != nil {
			continue
		}
		s := &Settled{}
		if json.Unmarshal(data, s) == nil {
			return s
		}
	}
	return nil
}

// WriteSettled writes for a person what settling found.
func WriteSettled(w io.Writer, s *Settled) {
	if s == nil {
		return
	}
	fmt.Fprintln(w, "\nThe supervisor was killed; what the run left was examined afterwards:")
	for _, q := range s.Quarantined {
		fmt.Fprintf(w, "  held back  %s (%s)\n             now at %s\n", text.Line(q.Path), text.Line(q.Reason), text.Line(q.Held))
	}
	for _, f := range s.Flagged {
		fmt.Fprintf(w, "  %-9s  %s (%s)\n", text.Safe(f.Change), text.Line(f.Path), text.Line(f.Reason))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "  warning    %s\n", text.Line(warning))
	}
}
