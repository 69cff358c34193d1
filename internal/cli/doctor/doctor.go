// Package doctor is holdfast doctor: it has the boundary try each guarantee on this
// machine, and says how to mend what fails. [Command] is the way in. The boundary knows
// what to try.
package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast doctor.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Test what this machine can enforce, and say how to mend what it cannot",
		Long: `Test each guarantee on this machine by doing what a run does, and say exactly how
to mend what fails. The exit status is 1 when a run with the default profile
could not start.`,
		Example: `  holdfast doctor
  holdfast doctor --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

// diagnosis is what doctor found out.
type diagnosis struct {
	Backend  string             `json:"backend"`
	Findings []boundary.Finding `json:"findings"`
	Runs     bool               `json:"runs"` // whether the default profile could run
}

func (a *app) doctor(cmd *cobra.Command, asJSON bool) error {
	if sys.Confined() {
		return command.Usage(errors.New("this is inside a boundary, where nothing can be tested"), "run 'holdfast doctor' outside, where 'holdfast run' is started")
	}
	backend, err := backend.New()
	if err != nil {
		return err
	}
	d := diagnosis{Backend: backend.Name(), Findings: backend.Check(cmd.Context())}
	d.Runs = !slices.ContainsFunc(d.Findings, func(f boundary.Finding) bool { return !f.Kept && f.Guarantee != policy.CopyLayers })
	if asJSON {
		err = command.WriteJSON(a.Stdout, d)
	} else {
		err = a.printDiagnosis(d)
	}
	if err == nil && !d.Runs {
		err = command.Exit(command.ExitFailed)
	}
	return err
}

func (a *app) printDiagnosis(d diagnosis) error {
	var b strings.Builder
	for _, f := range d.Findings {
		word := "ok"
		if !f.Kept {
			word = "FAILS"
		}
		fmt.Fprintf(&b, "%-6s %-17s %s\n", word, f.Guarantee, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(&b, "       mend: %s\n", strings.ReplaceAll(f.Mend, "\n", "\n             "))
		}
	}
	if d.Runs {
		b.WriteString("\nholdfast run works here with the default profile.\n")
	} else {
		b.WriteString("\nholdfast run refuses to start here until what fails is mended or accepted by name with --without.\n")
	}
	_, err := fmt.Fprint(a.Stdout, b.String())
	return err
}
