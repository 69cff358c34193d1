package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// row is the result of an action.
type row struct {
	action
	status  string   // how the run ended
	failed  string   // the failure that the action reported; "" for none
	refused int      // denied events
	alerts  []string // RULE (SEVERITY), without those of severity info
	reason  string   // from reasons.txt; "" for none
}

// play runs an action in a new workspace and home below dir, which it removes
// afterwards. After an error nothing is known about the action.
func (o options) play(ctx context.Context, dir string, a action) (row, error) {
	r := row{action: a}
	if a.not != "" {
		r.status = "not run: " + a.not
		return r, nil
	}
	w, err := newWorld(o.holdfast, dir)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	args := []string{"run", "--time", o.limit.String()}
	for _, path := range a.show {
		args = append(args, "--ro", path)
	}
	limited, cancel := context.WithTimeout(ctx, o.limit+time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	c := w.command(limited, append(append(args, "--"), a.argv...)...)
	c.Stderr = &stderr
	err = c.Run()
	r.parseReport(stderr.String())
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err == nil:
		r.status = "status 0"
	case errors.As(err, &exit):
		r.status = fmt.Sprintf("status %d", exit.ExitCode())
	default:
		return r, err
	}
	if exit != nil && exit.ExitCode() == 125 {
		return r, fmt.Errorf("holdfast did not start it: %s", stderr.String())
	}
	return r, w.readRecord(ctx, &r)
}

// world is a workspace and a home.
type world struct {
	program, workspace string
	env                []string
}

func newWorld(program, dir string) (world, error) {
	home := filepath.Join(dir, "home")
	w := world{program: program, workspace: filepath.Join(home, "src", "project")}
	if err := os.MkdirAll(w.workspace, 0o700); err != nil {
		return w, err
	}
	w.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "USER=you", "LOGNAME=you"}
	return w, nil
}

func (w world) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, w.program, args...)
	c.Dir, c.Env = w.workspace, w.env
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	return c
}

func (w world) holdfast(ctx context.Context, args ...string) ([]byte, error) {
	return w.command(ctx, args...).Output()
}

// readRecord reads from the record what is known about the run.
func (w world) readRecord(ctx context.Context, r *row) error {
	out, err := w.holdfast(ctx, "log", "query", `verdict == "denied"`, "--count")
	if err != nil {
		return fmt.Errorf("counting refusals: %w", err)
	}
	if _, err := fmt.Sscan(string(out), &r.refused); err != nil {
		return fmt.Errorf("counting refusals: %w", err)
	}
	if out, err = w.holdfast(ctx, "alerts", "--severity", "low", "--json"); err != nil {
		return fmt.Errorf("reading alerts: %w", err)
	}
	seen := map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var one struct{ Rule, Severity string }
		if err := d.Decode(&one); err != nil {
			return fmt.Errorf("reading alerts: %w", err)
		}
		if text := one.Rule + " (" + one.Severity + ")"; !seen[text] {
			seen[text] = true
			r.alerts = append(r.alerts, text)
		}
	}
	return nil
}

// reports matches the event generator's message at the end of an action that was
// skipped or failed, with the reason. Its exit status does not show this.
var reports = regexp.MustCompile(`action (skipped|error) .*\b(?:reason|error)="?([^"\n]*)`)

// colours are the terminal colours of that message.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// parseReport evaluates what the action reports about itself.
func (r *row) parseReport(text string) {
	m := reports.FindStringSubmatch(colours.ReplaceAllString(text, ""))
	switch {
	case m == nil:
	case m[1] == "skipped":
		r.not = "it passes itself over: " + m[2]
	default:
		r.failed = m[2]
	}
}

// silenceReason says why the action raised nothing; "" if that is unknown. An action that
// could not be done needs no line in reasons.txt.
func (r row) silenceReason() string {
	switch {
	case r.reason != "":
		return r.reason
	case r.not != "":
		return upper(r.not) + "."
	case r.status == "status 127": // sh(1) did not find a program
		return notHere
	}
	return ""
}

// notHere is why an action did not happen if its shell did not find a program.
const notHere = "A program that it needs is not here."

// upper capitalises the first letter.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// outcome is what happened, for a table cell.
func (r row) outcome() string {
	parts := []string{r.status}
	if r.not != "" && !strings.Contains(r.status, r.not) {
		parts = append(parts, r.not)
	}
	if r.failed != "" {
		parts = append(parts, r.failed)
	}
	if r.refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused", r.refused))
	}
	return strings.Join(parts, ", ")
}
