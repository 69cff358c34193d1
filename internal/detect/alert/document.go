package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/syslog"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Document is an alert as it is sent and kept: what docs/alerts.md describes.
type Document struct {
	Version     int       `json:"version"` // of this format
	ID          string    `json:"id"`      // the same in every copy of this alert
	Time        time.Time `json:"time"`
	Session     string    `json:"session"`
	Rule        string    `json:"rule"`
	Title       string    `json:"title"`
	Severity    string    `json:"severity"`
	Technique   []string  `json:"technique,omitempty"`
	Key         string    `json:"key,omitempty"`
	Count       int       `json:"count"`
	Object      string    `json:"object,omitempty"`
	Process     *Process  `json:"process,omitempty"`
	Events      []uint64  `json:"events,omitempty"`
	Explanation string    `json:"explanation,omitempty"`
}

// Process is the process that asked.
type Process struct {
	PID        int      `json:"pid,omitempty"`
	Exec       uint64   `json:"exec,omitempty"`
	Parent     int      `json:"parent,omitempty"`
	ParentExec uint64   `json:"parent_exec,omitempty"`
	Executable string   `json:"executable,omitempty"`
	SHA256     string   `json:"sha256,omitempty"`
	Cwd        string   `json:"cwd,omitempty"`
	Argv       []string `json:"argv,omitempty"`
}

// Limits of what is sent of an alert. The record has all of it.
const (
	longText = 4096 // bytes of a path or text
	longArgv = 8192 // bytes of all arguments together
	manyArgs = 64
)

func document(a detect.Alert) *Document {
	d := &Document{
		Version: 1, ID: syslog.Field(a.Session, 64) + ":" + strconv.FormatUint(a.N, 10), Time: a.Time.UTC(),
		Session: short(a.Session), Rule: short(a.Rule), Title: short(a.Title), Severity: string(a.Severity), Technique: a.Technique,
		Key: short(a.Key), Count: a.Count, Object: short(a.Object), Events: a.Events, Explanation: short(a.Explanation),
	}
	q := a.Process
	if q.PID == 0 && q.Exec == 0 && q.Executable == "" {
		return d
	}
	d.Process = &Process{
		PID: q.PID, Exec: q.Exec, Parent: q.Parent, ParentExec: q.ParentExec,
		Executable: short(q.Executable), SHA256: short(q.SHA256), Cwd: short(q.Cwd),
	}
	left := longArgv
	for i, arg := range q.Argv {
		if i == manyArgs || left <= 0 {
			d.Process.Argv = append(d.Process.Argv, "…")
			break
		}
		arg = text.Cut(arg, min(left, longText))
		left -= len(arg) + 1
		d.Process.Argv = append(d.Process.Argv, arg)
	}
	return d
}

// encode is the document as JSON in one line.
func (d *Document) encode() []byte {
	body, err := canonical.Marshal(d)
	if err != nil {
		// The only thing in it that JSON cannot hold is a year beyond 9999.
		at := *d
		at.Time = time.Time{}
		body, _ = canonical.Marshal(at)
	}
	return body
}

func decode(body []byte) (*Document, error) {
	d := new(Document)
	if err := json.Unmarshal(body, d); err != nil {
		return nil, &refusal{fmt.Errorf("reading an alert: %w", err)}
	}
	return d, nil
}

func short(s string) string { return text.Cut(s, longText) }

// escape is s in one line that does nothing to a terminal, at most most
// characters of it.
func escape(s string, most int) string { return text.Shorten(text.Exact(s), most) }

// line returns the alert in one line for a terminal: severity, rule, meaning,
// object and process. It has no control characters, whatever is in the alert.
func (d *Document) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)", escape(d.Severity, 16), escape(d.Title, 160), escape(d.Rule, 64))
	if d.Object != "" {
		b.WriteString(": " + escape(d.Object, 240))
	}
	if p := d.Process; p != nil {
		who := "pid " + strconv.Itoa(p.PID)
		if p.Executable != "" {
			who = path.Base(p.Executable) + " " + who
		}
		b.WriteString(", by " + escape(who, 80))
	}
	if d.Count > 1 {
		fmt.Fprintf(&b, ", %d times", d.Count)
	}
	return b.String()
}

// showDelay is how long a program that was refused something has to report it:
// it writes its line in pieces, and an alert would appear in the middle of it.
const showDelay = 10 * time.Millisecond

// terminal shows lines to the user. Of many alerts of one rule in a row it shows
// the first, and how many more there were when another one comes, or the end.
type terminal struct {
	shown time.Time // when the last line was
	show  func(line string)
	last  *Document // shown or counted last; nil for none yet
	more  int       // that were counted since
}

func (t *terminal) send(ctx context.Context, body []byte) error {
	d, err := decode(body)
	if err != nil {
		return err
	}
	if t.last != nil && t.last.Rule == d.Rule && t.last.Severity == d.Severity {
		t.last, t.more = d, t.more+1
		return nil
	}
	if time.Since(t.shown) > showDelay {
		select {
		case <-time.After(showDelay):
		case <-ctx.Done():
		}
	}
	t.close()
	t.show(d.line())
	t.last, t.shown = d, time.Now()
	return nil
}

// close shows what was counted.
func (t *terminal) close() {
	switch {
	case t.more == 1:
		t.show(t.last.line())
	case t.more > 1:
		t.show(fmt.Sprintf("%s, the last of %d more of this rule in a row: 'holdfast alerts' shows each", t.last.line(), t.more))
	}
	t.last, t.more = nil, 0
}
