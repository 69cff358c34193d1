//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// BuildAblated builds the program whose controls can be switched off. module is
// the directory of this module's sources; the Go toolchain is needed.
func BuildAblated(ctx context.Context, module, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", out, "./internal/run/ablated")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building Holdfast with controls that can be switched off: %w\n%s", err, b)
	}
	return nil
}

// Ablation selects what is switched off.
type Ablation struct {
	Program  string   // as built by BuildAblated
	Holdfast string   // the product; it reads records
	Controls []string // names of controls, or patterns of path.Match; nil for all
	Whole    bool     // play every row without each control, not only those in the table
	// Runner plays the rows, and those that need a network if it can.
	Runner probe.Runner
	Tool   string

	// Progress is called before each control; may be nil.
	Progress func(done, total int, control string)
}

// Ablate switches off one control at a time and plays the rows that the table
// says it holds, or all of them: the kill matrix. Only rows that were held with
// everything on count.
func Ablate(ctx context.Context, o Ablation) (report.Kill, error) {
	controls, err := ControlsNamed(o.Controls)
	if err != nil {
		return report.Kill{}, err
	}
	begun := time.Now()
	kill := report.Kill{Tool: "holdfast", Version: o.Tool, Started: begun, Host: thisHost()}
	rows, err := o.rows(controls)
	if err != nil {
		return report.Kill{}, err
	}
	held, err := o.baseline(ctx, &kill, controls, rows)
	if err != nil {
		return kill, err
	}
	for i, c := range controls {
		if o.Progress != nil {
			o.Progress(i, len(controls), c.Name)
		}
		k := report.KillControl{Name: c.Name, Omit: c.Omit, Why: c.Why, Excused: !plays(c)}
		if k.Excused && len(c.Rows) > 0 {
			k.Why = strings.TrimPrefix(k.Why+"; not played as "+kill.Host.User+", for whom something else holds "+strings.Join(c.Rows, ", "), "; ")
		}
		if len(c.Omit) > 0 && plays(c) {
			results, _ := o.play(ctx, c.Omit, c.Record, o.rowsWithout(c, rows, held))
			if ctx.Err() != nil {
				return kill, ctx.Err() // an interrupted play proves nothing about the control
			}
			for _, res := range results {
				k.Played = append(k.Played, res.Row.ID)
				switch res.Verdict {
				case probe.Escaped, probe.Unseen:
					k.Escaped = append(k.Escaped, res.Row.ID)
				case probe.Inconclusive:
					k.Unclear = append(k.Unclear, res.Row.ID)
				}
			}
		}
		if len(k.Escaped) > 0 {
			k.As = []string{kill.Host.User}
		}
		kill.Controls = append(kill.Controls, k)
	}
	kill.Took = report.Seconds(time.Since(begun))
	return kill, ctx.Err()
}

// baseline plays rows with everything on and returns those that were held.
func (o Ablation) baseline(ctx context.Context, kill *report.Kill, controls []Control, rows []probe.Row) (map[string]bool, error) {
	held := map[string]bool{}
	for _, record := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(rows), func(r probe.Row) bool { return needsRecord(controls, r) != record })
		results, broken := o.play(ctx, nil, record, some)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if broken != "" {
			return nil, fmt.Errorf("%w: %s", ErrNothingRan, broken)
		}
		for _, res := range results {
			if res.Verdict != probe.Held {
				kill.Unproved = append(kill.Unproved, report.KillUnproved{ID: res.Row.ID, As: kill.Host.User, Verdict: res.Verdict.String(), Reason: res.Reason})
				continue
			}
			held[res.Row.ID] = true
			kill.Rows = append(kill.Rows, report.KillRow{ID: res.Row.ID, Class: res.Row.Class, Title: res.Row.Title, Excused: excuseFor(res.Row)})
		}
	}
	return held, nil
}

// ErrControl is wrapped by errors about a name that no control has.
var ErrControl = errors.New("no such control")

// UnknownControlError lists the controls that an unknown name may mean.
type UnknownControlError struct {
	Name string
	Near []string
}

func (e *UnknownControlError) Error() string { return fmt.Sprintf("no control is called %q", e.Name) }

// Unwrap implements the interface of package errors.
func (e *UnknownControlError) Unwrap() error { return ErrControl }

// ControlsNamed returns the controls with these names, or that match these patterns
// (path.Match, where * also matches a slash); without any it returns all. Each name
// must be that of a control.
func ControlsNamed(names []string) ([]Control, error) {
	all := Controls()
	for _, name := range names {
		if !slices.ContainsFunc(all, func(c Control) bool { return matches(name, c.Name) }) {
			return nil, &UnknownControlError{Name: name, Near: nearControls(all, name)}
		}
	}
	return slices.DeleteFunc(all, func(c Control) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return matches(n, c.Name) })
	}), nil
}

func matches(pattern, name string) bool {
	flat := strings.NewReplacer("/", "\x00")
	ok, err := path.Match(flat.Replace(pattern), flat.Replace(name))
	return pattern == name || ok && err == nil
}

// mostNear is how many controls are suggested for a name.
const mostNear = 5

// nearControls returns the first few controls whose names contain a word of name.
func nearControls(all []Control, name string) []string {
	var out []string
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
	for _, c := range all {
		if len(out) < mostNear && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(c.Name), w) }) {
			out = append(out, c.Name)
		}
	}
	return out
}

// plays reports whether a user with our rights can notice that c is off.
func plays(c Control) bool {
	root := os.Geteuid() == 0
	return c.Root && root || c.User && !root
}

// rows returns all rows to play.
func (o Ablation) rows(controls []Control) ([]probe.Row, error) {
	all := probe.All()
	if o.Whole {
		return slices.DeleteFunc(all, func(r probe.Row) bool { return r.Timed || r.Kind == probe.Control }), nil
	}
	var ids []string
	for _, c := range controls {
		if plays(c) {
			ids = append(ids, c.Rows...)
		}
	}
	slices.Sort(ids)
	return Select(all, slices.Compact(ids))
}

// needsRecord reports whether a control that holds r needs a record.
func needsRecord(controls []Control, r probe.Row) bool {
	return slices.ContainsFunc(controls, func(c Control) bool { return c.Record && slices.Contains(c.Rows, r.ID) })
}

// rowsWithout returns the rows to play without c.
func (o Ablation) rowsWithout(c Control, rows []probe.Row, held map[string]bool) []probe.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r probe.Row) bool {
		return !held[r.ID] || !o.Whole && !slices.Contains(c.Rows, r.ID)
	})
}

// excuseFor returns why no single control can be seen to hold r.
func excuseFor(r probe.Row) string {
	if r.Bare != "" {
		return "it cannot escape without a sandbox either: " + r.Bare
	}
	return ""
}

// play plays rows against the program without some of its controls. broken is the
// reason if the program runs nothing at all, else "".
func (o Ablation) play(ctx context.Context, omit []string, record bool, rows []probe.Row) (results []probe.Result, broken string) {
	if len(rows) == 0 {
		return nil, ""
	}
	t := targets.Holdfast{Path: o.Program}
	if len(omit) > 0 {
		t.Omit = []string{"--omit=" + strings.Join(omit, "+")}
		t.Extra = append(t.Extra, t.Omit...)
	}
	if t.Unrecorded = !record; record {
		t.Extra, t.Log = append(t.Extra, "--record="+"standard"), o.Holdfast
	}
	all := o.Runner.Run(ctx, t, rows)
	if smoke := all[0]; smoke.Verdict != probe.Held {
		return all[1:], smoke.Reason
	}
	return all[1:], ""
}
