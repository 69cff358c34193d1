package approvals

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// What of a session's record is shown beside a request.
const (
	storyLines = 12
	storyBytes = 128 << 10 // that are read, from the end
)

// history are the last lines of the records of sessions that ask.
type history struct {
	lines   *lines.Formatter
	logs    string
	changed chan struct{}

	mu   sync.Mutex
	last map[string][]string // by session
	seen map[string]bool     // requests for which they were read
}

func (a *app) newHistory() *history {
	plain := *a.App
	plain.Stdout = io.Discard // no colours
	s := &history{lines: lines.New(&plain), changed: make(chan struct{}, 1), last: map[string][]string{}, seen: map[string]bool{}}
	if r, err := archive.Open(a.App); err == nil {
		s.logs = r.Logs
	}
	return s
}

// recentLines returns the last lines of a session, as far as they were read.
func (s *history) recentLines(session string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lines, ok := s.last[session]; ok {
		return lines
	}
	return []string{"…"}
}

// readForNew reads what happened before requests that are new.
func (s *history) readForNew(requests []consent.Request) {
	fresh := map[string]bool{}
	s.mu.Lock()
	for _, r := range requests {
		if !s.seen[nameOf(r)] {
			s.seen[nameOf(r)] = true
			fresh[r.Session] = true
		}
	}
	s.mu.Unlock()
	for session := range fresh {
		go func() {
			lines := s.read(session)
			s.mu.Lock()
			s.last[session] = lines
			s.mu.Unlock()
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}()
	}
}

// read is the end of a record, an event a line.
func (s *history) read(session string) []string {
	info, err := audit.Find(s.logs, session)
	if err != nil {
		return []string{"the record cannot be found: " + consent.Visible(err.Error())}
	}
	f, err := os.Open(filepath.Clean(info.Path))
	if err != nil {
		return []string{"the record cannot be read: " + consent.Visible(err.Error())}
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size-storyBytes), storyBytes+(64<<10)))
	if err != nil {
		return []string{"the record cannot be read: " + consent.Visible(err.Error())}
	}
	var out []string
	for line := range bytes.Lines(text) {
		if e, ok := parseEvent(line); ok && worthShowing(e) {
			out = append(out, e.Time.Local().Format(time.TimeOnly)+" "+consent.Visible(strings.TrimSpace(s.lines.Verdict(e)+" "+s.lines.Subject(e)+" "+lines.Because(e))))
		}
	}
	return out[max(0, len(out)-storyLines):]
}

// parseEvent returns the event of one line of a record, with the fields that are shown
// here. The first line of the part that was read is cut, and the last one may be.
func parseEvent(line []byte) (event.Event, bool) {
	var r struct {
		Time                                 time.Time
		Action, Object, Verdict, Layer, Rule string
		Error                                string
		Process                              struct {
			Argv []string
			Cwd  string
		}
	}
	if json.Unmarshal(line, &r) != nil || r.Action == "" {
		return event.Event{}, false
	}
	e := event.Event{Time: r.Time, Action: r.Action, Object: r.Object, Layer: r.Layer, Rule: r.Rule, Error: r.Error}
	e.Process.Argv, e.Process.Cwd = r.Process.Argv, r.Process.Cwd
	switch r.Verdict {
	case event.Allowed.String():
		e.Verdict = event.Allowed
	case event.Denied.String():
		e.Verdict = event.Denied
	}
	return e, true
}

// worthShowing reports whether an event is worth a line beside a request.
func worthShowing(e event.Event) bool {
	switch e.Action {
	case event.ProcExec:
		return e.Error == "" // a shell looks in each directory of PATH
	case event.ProcExit, event.ProcSeen, event.FileLookup, event.FileOpen, event.ApprovalRequest:
		return false
	}
	return !strings.HasPrefix(e.Action, "record.")
}
