package policies

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// Why makes the verb holdfast why.
func Why(world *command.App) *cobra.Command {
	a := &app{world}
	c := explainCommand(a, policy.ExplainPath)
	c.Use = "why [flags] PATH…"
	c.Short = "Say whether a path could be read, written or executed inside, and by which rule"
	c.Long = `Say of each path whether a command inside could read, write or execute it, which rule decides
(file:line), and what to add to allow it. Nothing is started. The flags are those of run.`
	c.Example = "  holdfast why ~/.ssh/id_ed25519\n  holdfast why --profile ci ./build --json"
	return c
}

type explainer func(policy.Plan, policy.Host, []policy.Reserved, string) (policy.Answer, error)

// explainCommand is what why and policy explain share.
func explainCommand(a *app, explain explainer) *cobra.Command {
	var flags plans.Flags
	var asJSON bool
	c := &cobra.Command{
		Args: needsQuery,
		RunE: func(c *cobra.Command, queries []string) error {
			options, err := flags.Options(a.App)
			if err != nil {
				return err
			}
			_, plan, err := plans.Compile(options)
			if err != nil {
				return err
			}
			names, err := plans.Protect(c, &plan)
			if err != nil {
				return err
			}
			answers := make([]policy.Answer, len(queries))
			for i, q := range queries {
				if answers[i], err = explain(plan, options.Host, names, q); err != nil {
					return err
				}
			}
			if asJSON {
				return command.WriteJSON(a.Stdout, answers)
			}
			for i, answer := range answers {
				if i > 0 {
					fmt.Fprintln(a.Stdout)
				}
				writeAnswer(a.Stdout, answer)
			}
			return nil
		},
	}
	flags.Bind(c)
	c.Flags().BoolVar(&asJSON, "json", false, "answer as JSON")
	return c
}

// needsQuery refuses a command line that asks about nothing.
func needsQuery(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usage(errors.New("no argument given"), "see '"+c.CommandPath()+" --help'")
	}
	return nil
}

func writeAnswer(w io.Writer, a policy.Answer) {
	title := text.Safe(a.Query)
	if a.Resolved != "" && a.Resolved != a.Query {
		title += " → " + text.Safe(a.Resolved)
	}
	fmt.Fprintln(w, title)
	for _, v := range []struct {
		verb string
		*policy.Verdict
	}{{"read", a.Read}, {"write", a.Write}, {"execute", a.Execute}, {"connect", a.Connect}} {
		if v.Verdict == nil {
			continue
		}
		word := "denied "
		if v.Allowed {
			word = "allowed"
		}
		rule := ""
		if v.Rule != "" {
			rule = "  [" + text.Safe(v.Rule) + "]"
		}
		fmt.Fprintf(w, "  %-8s %s  %s%s\n", v.verb, word, text.Safe(v.Why), rule)
		if v.Add != "" && v.verb != "execute" {
			fmt.Fprintf(w, "  %-8s to allow: %s\n", "", text.Safe(v.Add))
		}
	}
}
