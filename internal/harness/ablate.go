//go:build linux

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/probe/targets"
	"holdfast.dev/holdfast/internal/report"
)

// BuildAblated builds the program whose controls can be switched off. module is
// the directory of this module's sources; it needs the Go toolchain.
func BuildAblated(ctx context.Context, module, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", out, "./internal/harness/ablated")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building Holdfast with controls that can be switched off: %w\n%s", err, b)
	}
	return nil
}

// Ablation says what is to be switched off.
type Ablation struct {
	Program  string   // as BuildAblated builds it
	Holdfast string   // the product, which reads records
	Controls []string // names of controls, or parts of them; nil for all
	Whole    bool     // play every row without each control, not only those that the table names
	Network  bool     // the controls of the network, and not the others; Runner has one then
	Runner   probe.Runner
	Tool     string

	// Progress is called before each control; may be nil.
	Progress func(done, total int, control string)
}

// Ablate switches one control off after the other and plays the rows that the
// table says it holds, or all of them: the kill matrix. Rows count that were
// held with everything on.
func Ablate(ctx context.Context, o Ablation) (report.Kill, error) {
	controls, err := o.controls()
	if err != nil {
		return report.Kill{}, err
	}
	begun := time.Now()
	kill := report.Kill{Tool: "holdfast", Version: o.Tool, Started: begun, Host: thisHost()}
	rows, err := o.rows(controls)
	if err != nil {
		return report.Kill{}, err
	}
	held := map[string]bool{}
	for _, record := range []bool{false, true} {
		some := slices.DeleteFunc(slices.Clone(rows), func(r probe.Row) bool { return recorded(controls, r) != record })
		for _, res := range o.play(ctx, nil, record, some) {
			if res.Verdict == probe.Held {
				held[res.Row.ID] = true
				kill.Rows = append(kill.Rows, report.KillRow{ID: res.Row.ID, Class: res.Row.Class, Title: res.Row.Title, Excused: excused(res.Row)})
			}
		}
	}
	for i, c := range controls {
		if o.Progress != nil {
			o.Progress(i, len(controls), c.Name)
		}
		k := report.KillControl{Name: c.Name, Omit: c.Omit, Why: c.Why, Excused: !plays(c)}
		if k.Excused && len(c.Rows) > 0 {
			k.Why = strings.TrimPrefix(k.Why+"; not played with the rights of this run, with which something else holds "+strings.Join(c.Rows, ", "), "; ")
		}
		if len(c.Omit) > 0 && plays(c) {
			for _, res := range o.play(ctx, c.Omit, c.Record, o.of(c, rows, held)) {
				k.Played = append(k.Played, res.Row.ID)
				switch res.Verdict {
				case probe.Escaped, probe.Unseen:
					k.Escaped = append(k.Escaped, res.Row.ID)
				case probe.Inconclusive:
					k.Unclear = append(k.Unclear, res.Row.ID)
				}
			}
		}
		kill.Controls = append(kill.Controls, k)
		if ctx.Err() != nil {
			return kill, ctx.Err()
		}
	}
	kill.Took = report.Seconds(time.Since(begun))
	return kill, nil
}

// controls are those that o names.
func (o Ablation) controls() ([]Control, error) {
	all := slices.DeleteFunc(Controls(), func(c Control) bool { return c.Network != o.Network })
	if len(o.Controls) == 0 {
		return all, nil
	}
	named := func(c Control) bool {
		return slices.ContainsFunc(o.Controls, func(n string) bool { return strings.Contains(c.Name, n) })
	}
	some := slices.DeleteFunc(all, func(c Control) bool { return !named(c) })
	if len(some) == 0 {
		return nil, fmt.Errorf("%w: no control is called %q", ErrSelection, strings.Join(o.Controls, ", "))
	}
	return some, nil
}

// plays says whether somebody with our rights can tell that c is off.
func plays(c Control) bool {
	root := os.Geteuid() == 0
	return c.Root && root || c.User && !root
}

// rows are all that are played.
func (o Ablation) rows(controls []Control) ([]probe.Row, error) {
	all := slices.DeleteFunc(probe.All(), func(r probe.Row) bool { return slices.Contains(r.Needs, "network") != o.Network })
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

// recorded says that a control which holds r needs a record.
func recorded(controls []Control, r probe.Row) bool {
	return slices.ContainsFunc(controls, func(c Control) bool { return c.Record && slices.Contains(c.Rows, r.ID) })
}

// of are the rows that are played without c.
func (o Ablation) of(c Control, rows []probe.Row, held map[string]bool) []probe.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r probe.Row) bool {
		return !held[r.ID] || !o.Whole && !slices.Contains(c.Rows, r.ID)
	})
}

// excused says why no single control can be seen to hold r.
func excused(r probe.Row) string {
	if r.Bare != "" {
		return "it cannot escape without a sandbox either: " + r.Bare
	}
	return ""
}

// play plays rows against the program without some of its controls.
func (o Ablation) play(ctx context.Context, omit []string, record bool, rows []probe.Row) []probe.Result {
	if len(rows) == 0 {
		return nil
	}
	t := targets.Holdfast{Path: o.Program}
	if len(omit) > 0 {
		t.Omit = []string{"--omit=" + strings.Join(omit, "+")}
		t.Extra = append(t.Extra, t.Omit...)
	}
	if t.Unrecorded = !record; record {
		t.Extra, t.Log = append(t.Extra, "--record="+string(policy.RecordStandard)), o.Holdfast
	}
	return o.Runner.Run(ctx, t, rows)[1:]
}
