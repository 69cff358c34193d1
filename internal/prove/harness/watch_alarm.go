//go:build linux

package harness

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/prove/report"
)

// ErrNoHoldfast means that there is no holdfast to record with.
var ErrNoHoldfast = errors.New("holdfast was not found")

// relayTime limits how long holdfast may take to answer, and to end.
const relayTime = time.Minute

// WatchAlarmOptions say how a watch records, and where its alerts go.
type WatchAlarmOptions struct {
	Program string // holdfast: a path, or a name in PATH
	Policy  string // file that says where alerts go; "" for the user's own
	Dir     string // working directory
	Env     []string
	Stderr  io.Writer // gets what is shown on the terminal
}

// WatchAlarm has holdfast keep the log of a watch and send its alerts. A nil
// WatchAlarm records nothing.
type WatchAlarm struct {
	relay   *exec.Cmd
	in      io.WriteCloser
	out     *os.File
	answers *bufio.Reader
	count   map[string]int // of alerts, by rule and program
}

// NewWatchAlarm starts 'holdfast alerts relay' and returns when its log is open.
// If there is no such program the error is ErrNoHoldfast.
func NewWatchAlarm(o WatchAlarmOptions) (*WatchAlarm, error) {
	program, err := exec.LookPath(o.Program)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoHoldfast, err)
	}
	args := []string{"alerts", "relay", "--for", "prove watch"}
	if o.Policy != "" {
		args = append(args, "--policy", o.Policy)
	}
	a := &WatchAlarm{relay: exec.Command(program, args...), count: map[string]int{}}
	a.relay.Dir, a.relay.Env, a.relay.Stderr = o.Dir, o.Env, o.Stderr
	a.relay.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // Ctrl-C ends the watch, which ends the log
	if a.in, err = a.relay.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting holdfast alerts relay: %w", err)
	}
	var answers *os.File
	if a.out, answers, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("starting holdfast alerts relay: %w", err)
	}
	a.relay.Stdout, a.answers = answers, bufio.NewReader(a.out)
	err = a.relay.Start()
	answers.Close()
	if err != nil {
		a.out.Close()
		return nil, fmt.Errorf("starting holdfast alerts relay: %w", err)
	}
	if ready, err := a.answer(); err != nil || !ready.Ready {
		return nil, errors.Join(errors.New("holdfast alerts relay does not record"), err, a.Close())
	}
	return a, nil
}

// relayAnswer is a line written by holdfast alerts relay.
type relayAnswer struct {
	Ready    bool   `json:"ready"`
	Session  string `json:"session"`
	Recorded bool   `json:"recorded"`
	Error    string `json:"error"`
}

// answer reads a line from the relay.
func (a *WatchAlarm) answer() (relayAnswer, error) {
	var r relayAnswer
	a.out.SetReadDeadline(time.Now().Add(relayTime))
	line, err := a.answers.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		return r, fmt.Errorf("reading the answer of holdfast alerts relay: %w", err)
	}
	return r, nil
}

// relayedAlert is a line that holdfast alerts relay reads:
// docs/formats/alert-relay.schema.json.
type relayedAlert struct {
	Rule        string   `json:"rule"`
	Severity    string   `json:"severity"`
	Title       string   `json:"title"`
	Technique   []string `json:"technique"`
	Key         string   `json:"key"`
	Count       int      `json:"count"`
	Object      string   `json:"object"`
	Explanation string   `json:"explanation"`
}

// alertMeanings maps the kinds of a WatchEvent to alerts. The other kinds are not
// alerts.
var alertMeanings = map[string]struct{ severity, title, explanation string }{
	WatchWeaker:    {"high", "a target holds less than before", "Its program changed, and rows of the escape matrix that were held no longer are: %s."},
	WatchDifferent: {"medium", "a target fails differently than before", "Its program changed. It holds as much as before, but something else holds it: %s."},
	WatchGone:      {"medium", "a watched program is gone", "It is no longer at its path, and no update has put it back."},
	WatchUnsteady:  {"medium", "a watched program changes all the time", "It never stays unchanged long enough to be tested."},
	WatchUntested:  {"medium", "a watched program changed without an announcement", "It is not known whether it still holds what it held: it was not, or could not be, tested%s."},
	WatchBlind:     {"low", "the kernel does not report changes of watched programs", "Changes are noticed by the timer alone%s."},
}

// Raise records an event of a watch, and sends an alert if it is one. It returns
// an error if the event could not be recorded.
func (a *WatchAlarm) Raise(e WatchEvent) error {
	m, ok := alertMeanings[e.Kind]
	if a == nil || !ok {
		return nil
	}
	rule := "prove-" + strings.ReplaceAll(e.Kind, " ", "-")
	a.count[rule+e.Name]++
	explanation := m.explanation
	if strings.Contains(explanation, "%s") {
		explanation = fmt.Sprintf(explanation, eventCause(e))
	}
	line, err := json.Marshal(relayedAlert{
		Rule: rule, Severity: m.severity, Title: m.title, Technique: []string{"T1195.002"},
		Key: atMost(e.Name, 256), Count: a.count[rule+e.Name], Object: atMost(e.Path, 4096), Explanation: atMost(explanation, 4096),
	})
	if err == nil {
		_, err = a.in.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("recording what was noticed: %w", err)
	}
	switch r, err := a.answer(); {
	case err != nil:
		return fmt.Errorf("recording what was noticed: %w", err)
	case !r.Recorded:
		return fmt.Errorf("recording what was noticed: %s", r.Error)
	}
	return nil
}

// atMost returns s as valid UTF-8 for JSON, with at most n characters.
func atMost(s string, n int) string {
	runes := []rune(strings.ToValidUTF8(s, "\ufffd"))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n-1]) + "…"
}

// eventCause returns what an event is based on: rows, or an error.
func eventCause(e WatchEvent) string {
	if e.Err != nil {
		return ": " + e.Err.Error()
	}
	var rows []string
	for _, list := range [][]report.Change{e.Changes.Weakened, e.Changes.Changed, e.Changes.Vanished} {
		for _, c := range list {
			if len(rows) == 12 {
				return strings.Join(rows, ", ") + " and more"
			}
			text := c.ID
			if c.Was != c.Is {
				text += " (" + c.Was + ", now " + c.Is + ")"
			}
			rows = append(rows, text)
		}
	}
	return strings.Join(rows, ", ")
}

// Close ends the log, which waits a little for alerts in progress.
func (a *WatchAlarm) Close() error {
	if a == nil {
		return nil
	}
	a.in.Close()
	late := time.AfterFunc(relayTime, func() { a.relay.Process.Kill() })
	err := a.relay.Wait()
	late.Stop()
	a.out.Close()
	if err != nil {
		return fmt.Errorf("ending holdfast alerts relay: %w", err)
	}
	return nil
}
