package alerts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newAlertsRules(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "rules [RULE]",
		Short:   "List the built-in rules, or explain one",
		Example: "  holdfast alerts rules\n  holdfast alerts rules denied-read-shell-connection\n  holdfast alerts rules --json",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var ids []cobra.Completion
			for _, r := range detect.Builtin() {
				ids = append(ids, cobra.CompletionWithDesc(r.ID, r.Title))
			}
			return ids[:len(ids)*(1-min(1, len(args)))], cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			rules := detect.Builtin()
			if len(args) > 0 {
				rules = slices.DeleteFunc(rules, func(r detect.Rule) bool { return r.ID != args[0] })
				if len(rules) == 0 {
					return command.Usage(fmt.Errorf("there is no built-in rule %q", text.Line(args[0])), "list them with: holdfast alerts rules")
				}
			}
			switch {
			case asJSON:
				return command.WriteJSON(a.Stdout, rules)
			case len(args) > 0:
				return a.explainRule(rules[0])
			}
			for _, r := range rules {
				if _, err := fmt.Fprintf(a.Stdout, "%s  %-28s  %s (%s)\n", a.severityText(r.Severity), r.ID, r.Title, strings.Join(r.Technique, " ")); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// explainRule says all about a rule.
func (a *app) explainRule(r detect.Rule) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)\n\n%s\n", r.ID, r.Title, r.Severity, r.Explanation)
	for _, id := range r.Technique {
		fmt.Fprintf(&b, "\nATT&CK %s: %s %s", detect.Attack, id, detect.TechniqueName(id))
	}
	fmt.Fprintf(&b, "\nFalse positives: %s\n", r.FalsePositives)
	if r.Note != "" {
		fmt.Fprintf(&b, "Note: %s\n", r.Note)
	}
	_, err := io.WriteString(a.Stdout, b.String())
	return err
}

func newAlertsTest(a *app) *cobra.Command {
	var asJSON bool
	var own string
	c := &cobra.Command{
		Use:   "test FILE",
		Short: "Run the tests of a file of rules, or look for alerts in a record",
		Long: `Run the tests of a file of rules (*.yaml) or of a directory of them. Any other FILE is
read as the record of a run: its events are checked against the current rules, and
the alerts are shown.`,
		Example: `  holdfast alerts test ~/.config/holdfast/rules/acme.yaml
  holdfast alerts test ~/.local/state/holdfast/log/RUN.jsonl --rules ~/.config/holdfast/rules`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			st, err := os.Stat(args[0])
			if err != nil {
				return err
			}
			if st.IsDir() || strings.HasSuffix(args[0], ".yaml") {
				if own != "" || asJSON {
					return command.Usage(errors.New("--rules and --json are for records"), "leave them out for a file of rules")
				}
				return a.tryRules(args[0])
			}
			return a.replay(ctx, args[0], own, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show the alerts of a record as JSON, one a line")
	c.Flags().Var((*command.TextFlag)(&own), "rules", "FILE or directory of rules to use besides the built-in ones")
	return c
}

// tryRules runs the tests of rules.
func (a *app) tryRules(path string) error {
	rules, err := detect.LoadPath(path)
	if err != nil {
		return err
	}
	failed, err := detect.Try(rules)
	if err != nil {
		return err
	}
	for _, f := range failed {
		fmt.Fprintln(a.Stdout, text.Line(f.String()))
	}
	if len(failed) > 0 {
		a.Note(command.Red, "error", "%s of %s failed", words.Plural(len(failed), "test", "tests"), words.Plural(len(rules), "rule", "rules"))
		return command.Exit(command.ExitFailed)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s, all tests passed\n", words.Plural(len(rules), "rule", "rules"))
	return err
}

// replay compares the events of a record with the rules.
func (a *app) replay(ctx context.Context, path, own string, asJSON bool) error {
	var rules []detect.Rule
	if own != "" {
		var err error
		if rules, err = detect.LoadPath(own); err != nil {
			return err
		}
	}
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return err
	}
	found := 0
	var failure error
	engine, err := detect.New(detect.Config{Rules: rules, Place: detect.Place{Home: host.Home}, Raise: func(one detect.Alert) {
		found++
		failure = errors.Join(failure, a.showAlert(one, asJSON))
	}})
	if err != nil {
		return err
	}
	err = audit.Scan(ctx, path, 1, nil, func(r *audit.Record) error {
		e, err := r.Event()
		if err == nil {
			engine.Observe(e)
		}
		return errors.Join(err, failure)
	})
	bad := false
	if err = archive.WarnDamaged(a.App, audit.Info{Session: path}, err, &bad); err != nil {
		return err
	}
	if err := engine.Err(); err != nil {
		a.Note(command.Yellow, "warning", "a rule could not be evaluated: %s", text.Line(err.Error()))
	}
	if found == 0 && !asJSON {
		a.Note(command.Cyan, "note", "no rule matches")
	}
	if bad {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

func (a *app) showAlert(one detect.Alert, asJSON bool) error {
	if asJSON {
		return command.WriteJSONLine(a.Stdout, one)
	}
	_, err := io.WriteString(a.Stdout, a.alertText(newListedAlert(one, 0)))
	return err
}
