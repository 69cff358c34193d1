//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/trial"
)

// scriptSeen is the result of a script in a column.
type scriptSeen struct {
	Agent   string           `json:"agent"`
	Version string           `json:"version"`
	Posture string           `json:"posture"`
	Inside  string           `json:"inside,omitempty"`
	Steps   []trial.StepSeen `json:"steps"`
}

// proveScript plays a script of the user in each column and prints what was seen
// of each step. There is no verdict: the expected result is unknown.
func (a *app) proveScript(ctx context.Context, p prover, columns []agentColumn) error {
	if p.format != report.FormatText && p.format != report.FormatJSON {
		return command.Usage(fmt.Errorf("format %s cannot show a script", p.format), "use text or json")
	}
	if err := checkWritable(p.output); err != nil {
		return err
	}
	data, err := os.ReadFile(p.agent.script)
	if err != nil {
		return err
	}
	scripts, err := model.Load(data, p.agent.script)
	if err != nil {
		return err
	}
	if len(scripts) == 0 || len(scripts[0].Steps) == 0 {
		return command.Usage(fmt.Errorf("%s has no steps", p.agent.script), "see docs/formats/model-script.md")
	}
	var all []scriptSeen
	for _, c := range columns {
		o, place, err := a.trialOptions(p, c)
		if err != nil {
			return err
		}
		steps, err := trial.Script(ctx, c.Column, o, scripts)
		if err = errors.Join(err, place.Close()); err != nil {
			return err
		}
		all = append(all, scriptSeen{c.agent, c.Version, c.Posture, c.Inside, steps})
	}
	return a.proveOutput(p, func(w io.Writer, _ report.TextOptions) error {
		if p.format == report.FormatJSON {
			return command.WriteJSON(w, all)
		}
		return writeScript(w, all)
	})
}

func writeScript(w io.Writer, all []scriptSeen) error {
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s %s, %s %s\n", s.Agent, s.Version, s.Posture, s.Inside)
		for _, step := range s.Steps {
			fmt.Fprintf(&b, "  step %d  %s\n", step.Step, step.Op)
			for _, line := range [][2]string{{"seen", strings.Join(step.Seen, "; ")}, {"layer", step.Layer}, {"missing", step.Missing}, {"answer", text.Line(step.Result)}, {"record", strings.Join(step.Record, "; ")}} {
				if line[1] != "" {
					fmt.Fprintf(&b, "    %-8s %s\n", line[0], text.Safe(line[1]))
				}
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
