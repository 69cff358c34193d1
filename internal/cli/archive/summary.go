package archive

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Summary is a record as list shows it.
type Summary struct {
	Session   string    `json:"session"`
	Path      string    `json:"path"`
	Begin     time.Time `json:"begin"`
	Last      time.Time `json:"last,omitzero"` // of the last record that could be read
	Size      int64     `json:"size"`
	State     string    `json:"state"` // running, ended or broken off
	Status    string    `json:"status,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Command   []string  `json:"command,omitempty"`
	HeldBack  int       `json:"held_back,omitempty"` // files, when the supervisor was killed and the run settled afterwards
}

// summaryBytes is how much of the beginning and the end of a log list reads.
const summaryBytes = 64 << 10

// Summarize returns what the beginning and the end of a log say. What cannot be read is
// left out: log verify reports that.
func Summarize(info audit.Info) Summary {
	l := Summary{Session: info.Session, Path: info.Path, Begin: info.Start.UTC(), Size: info.Size, State: "broken off"}
	if info.Open {
		l.State = "running"
	}
	f, err := os.Open(info.Path)
	if err != nil {
		return l
	}
	defer f.Close()
	for _, from := range []int64{0, max(0, info.Size-summaryBytes)} {
		part, err := io.ReadAll(io.NewSectionReader(f, from, summaryBytes))
		if err != nil {
			return l
		}
		for line := range bytes.Lines(part) {
			l.addLine(line)
		}
	}
	return l
}

func (l *Summary) addLine(line []byte) {
	var r struct {
		Time    time.Time
		Action  string
		Object  string
		Process struct{ Argv []string }
		Detail  map[string]string
	}
	if json.Unmarshal(line, &r) != nil { // the first of the end is not whole
		return
	}
	if r.Time.After(l.Last) {
		l.Last = r.Time
	}
	switch r.Action {
	case event.SessionStart:
		l.Workspace = r.Object
	case event.ProcExec:
		if l.Command == nil {
			l.Command = r.Process.Argv
		}
	case event.SessionEnd:
		l.State, l.Status = "ended", r.Detail["status"]
	}
}
