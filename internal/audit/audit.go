// Package audit keeps what was attempted and decided, outside the boundary. Today
// that is a file of events for each run; what makes it evident that one was
// altered is a later capability.
package audit

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/event"
)

// What is kept at most: the inside decides how much there is to record.
const (
	MaxBytes = 256 << 20 // of one run, but for its beginning and end; then nothing more is recorded, and so nothing more happens that needs a record
	MaxTotal = 1 << 30   // of all runs that have ended; the oldest go first
	MaxRuns  = 200       // likewise
)

const suffix = ".jsonl"

// Log is the record of one run: an event a line, as JSON.
type Log struct {
	path string

	mu   sync.Mutex // guards what follows
	file *os.File
	size int64
	max  int64
}

// Create begins the record of a run in dir, which is made when it is missing,
// readable by the user alone.
func Create(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for records: %w", err)
	}
	name := time.Now().UTC().Format("20060102T150405.000") + "-" + strings.ToLower(rand.Text()[:8]) + suffix
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("beginning the record of the run: %w", err)
	}
	return &Log{path: f.Name(), file: f, max: MaxBytes}, nil
}

// prune removes the oldest records above MaxRuns and MaxTotal: names begin with
// their time.
func prune(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return fmt.Errorf("looking for old records: %w", err)
	}
	runs, total := 0, int64(0)
	for _, e := range slices.Backward(entries) {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if st, err := e.Info(); err == nil {
			total += st.Size()
		}
		if runs++; runs <= MaxRuns && total <= MaxTotal {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old record: %w", err)
		}
	}
	return nil
}

// Path is where the record is.
func (l *Log) Path() string { return l.path }

// Emit records an event. An error means that it is not recorded.
func (l *Log) Emit(e event.Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("recording an event: %w", err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(line)) > l.max && !strings.HasPrefix(e.Action, "session.") {
		return fmt.Errorf("recording an event: the record of this run has %d MiB already", l.max>>20)
	}
	n, err := l.file.Write(line)
	l.size += int64(n)
	if err != nil {
		return fmt.Errorf("recording an event: %w", err)
	}
	return nil
}

// Close ends the record, and removes old ones: here, where nobody waits for the
// start of a command.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("ending the record of the run: %w", err)
	}
	return prune(filepath.Dir(l.path))
}
