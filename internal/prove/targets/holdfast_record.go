//go:build linux

package targets

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// stateOfHoldfast is where it keeps its records; see the documentation of the
// verb log.
const stateOfHoldfast = "H/.local/state/holdfast"

// Logs implements [probe.Recorder].
func (Holdfast) Logs(w *probe.World) []string {
	logs, _ := filepath.Glob(w.Path(stateOfHoldfast + "/log/2*.jsonl"))
	return logs
}

// Record implements [probe.Recorder].
func (h Holdfast) Record(w *probe.World) (probe.Record, error) {
	rec := probe.Record{Path: lastBegun(h.Logs(w))}
	_ = filepath.WalkDir(w.Path(stateOfHoldfast), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				rec.Size += info.Size()
			}
		}
		return nil
	})
	if rec.Path == "" {
		rec.Why = "there is no record"
		return rec, nil
	}
	session := sessionOf(rec.Path)
	said, err := h.log(w, "verify", session)
	if err != nil {
		return rec, err
	}
	rec.Verdict, rec.Why, _ = strings.Cut(strings.TrimSpace(string(said)), " ")
	if st, err := os.Stat(rec.Path); err == nil && st.Size() < 1<<20 {
		rec.Shown, err = h.log(w, "show", session)
		return rec, err
	}
	return rec, nil
}

func sessionOf(path string) string { return strings.TrimSuffix(filepath.Base(path), ".jsonl") }

// Story implements [probe.Recorder].
func (h Holdfast) Story(w *probe.World) ([]byte, error) {
	return h.log(w, "show", "--json", sessionOf(lastBegun(h.Logs(w))))
}

// lastBegun is the record that was started last, "" for none: of two overlapping
// runs the row is about the later one, whichever ended last.
func lastBegun(logs []string) (last string) {
	var latest time.Time
	for _, path := range logs {
		if begun := begin(path); last == "" || begun.After(latest) {
			last, latest = path, begun
		}
	}
	return last
}

// begin is the time on the first line of a record; zero if it has none.
func begin(path string) time.Time {
	var first struct{ Time time.Time }
	if f, err := os.Open(path); err == nil {
		defer f.Close()
		_ = json.NewDecoder(f).Decode(&first) // the reader of the record reports that it is unreadable
	}
	return first.Time
}

// log queries the records. An exit status that is not 0 is no error if there is
// output: it is the result of verify.
func (h Holdfast) log(w *probe.World, args ...string) ([]byte, error) {
	c := exec.Command(h.Reader(), append([]string{"log"}, args...)...)
	c.Env = []string{"HOME=" + w.Home(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm"}
	c.Dir = w.O
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if len(out) == 0 {
			return nil, fmt.Errorf("log %s: %s", args[0], firstLine(exit.Stderr))
		}
		err = nil
	}
	return out, err
}

// Reader implements [probe.Recorder].
func (h Holdfast) Reader() string { return cmp.Or(h.Log, h.Path) }

// Recording implements [probe.Recorder].
func (h Holdfast) Recording(level string) probe.Target { return h.With("--record", level) }
