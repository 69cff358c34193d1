//go:build linux

package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Files of the directory of a session whose supervisor was killed: what settling found,
// before and after it was reported to the user.
const (
	aftermathFile     = "settled.json"
	aftermathReported = "settled-told.json"
)

// Aftermath is what settling a run found whose supervisor was killed, and so could
// not report it.
type Aftermath struct {
	Session     string                  `json:"session"`
	Settled     time.Time               `json:"settled"`
	Held        int                     `json:"held,omitempty"` // see Outcome
	Kept        string                  `json:"kept,omitempty"`
	Workspaces  []workspace.Name        `json:"workspaces"`
	Quarantined []workspace.Quarantined `json:"quarantined,omitempty"`
	Flagged     []workspace.Flagged     `json:"flagged,omitempty"`
	Warnings    []string                `json:"warnings,omitempty"`
}

// leaveAftermath writes down what settling a session of a dead supervisor found,
// for the next run in the same place, and for the log.
func (s *Session) leaveAftermath(r workspace.Report) error {
	if len(r.Quarantined)+len(r.Flagged)+len(r.Warnings) == 0 {
		return nil
	}
	a := Aftermath{Session: filepath.Base(s.dir), Settled: time.Now().UTC(), Held: s.held, Quarantined: r.Quarantined, Flagged: r.Flagged, Warnings: r.Warnings}
	if s.keep {
		a.Kept = s.quarantine()
	}
	for _, snap := range s.snapshots {
		a.Workspaces = append(a.Workspaces, workspace.Name(snap.Root))
	}
	data, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = writeState(filepath.Join(s.dir, aftermathFile), data)
	}
	if err != nil {
		return fmt.Errorf("recording what a killed run left: %w", err)
	}
	s.keep = true
	return nil
}

// writeState writes a file of a session's directory.
func writeState(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}

// aftermathIn reads what was left in the directory of a session; nil for nothing.
func aftermathIn(dir string) *Aftermath {
	f, err := os.OpenFile(filepath.Join(dir, aftermathFile), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	a := &Aftermath{}
	if json.NewDecoder(f).Decode(a) != nil {
		return nil
	}
	return a
}

// takeAftermath returns what a killed run left in a workspace, to be reported at the
// end of this one; nil for nothing. It is returned once; the log has it from then on.
func takeAftermath(dir, root string) *Aftermath {
	a := aftermathIn(dir)
	if a == nil {
		return nil
	}
	for _, w := range a.Workspaces {
		if concerns(string(w), root) {
			if os.Rename(filepath.Join(dir, aftermathFile), filepath.Join(dir, aftermathReported)) == nil {
				return a
			}
			return nil
		}
	}
	return nil
}
