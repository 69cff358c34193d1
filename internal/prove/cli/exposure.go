//go:build linux

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/exposure"
)

// exposureFlags are the flags of prove exposure.
type exposureFlags struct {
	plan   policyFlags
	as     string
	format string
	fail   levelFlag
	become string // UID:GID:GROUP,…: the user that the child of --as becomes
}

// newProveExposure returns the command that reports what an account exposes to an
// agent.
func newProveExposure(a *app) *cobra.Command {
	f := exposureFlags{format: "text"}
	c := &cobra.Command{
		Use:   "exposure [flags]",
		Short: "Show what this account, a clean user and a CI runner hand to an agent",
		Long: `List what an agent gets that is started from this account: credentials, variables,
sockets, rights that amount to root's, places to plant something, neighbours. Beside
it are what a new account and hosted CI runners hand over, and what is left of it
inside Holdfast under the effective policy.

It changes nothing, connects to nothing but your own ssh agent, and shows no secret.
The policy flags are those of run.`,
		Example: `  holdfast prove exposure
  holdfast prove exposure --format html > exposure.html
  sudo holdfast prove exposure --as builder --workspace /srv/build
  holdfast prove exposure --fail-on high`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			c.SetContext(ctx)
			r, err := a.exposure(c, f)
			if err != nil {
				return err
			}
			if err := a.writeExposure(r, f.format); err != nil {
				return err
			}
			if f.fail != "" && r.Most(exposure.Here).Rank() >= exposure.Level(f.fail).Rank() {
				return command.Exit(exitFound)
			}
			return nil
		},
	}
	f.plan.bind(c)
	c.Flags().Var((*command.TextFlag)(&f.as), "as", "inspect the account of USER (needs root)")
	c.Flags().Var(&oneOfFlag{&f.format, exposureFormats}, "format", "FORMAT of the report: "+strings.Join(exposureFormats, ", "))
	c.Flags().Var(&f.fail, "fail-on", "end with status 1 when the account hands over something of this LEVEL or above: "+levelWords())
	c.Flags().StringVar(&f.become, "become", "", "turn into UID:GID:GROUPS first")
	c.Flags().MarkHidden("become")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exposureFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

var exposureFormats = []string{"text", "json", "html"}

// writeExposure prints a report.
func (a *app) writeExposure(r exposure.Report, format string) error {
	switch format {
	case "json":
		return exposure.JSON(a.Stdout, r)
	case "html":
		return exposure.HTML(a.Stdout, r)
	}
	return exposure.Text(a.Stdout, r, func(level exposure.Level, text string) string {
		switch level {
		case exposure.High:
			return a.Tint(command.Red, text)
		case exposure.Medium:
			return a.Tint(command.Yellow, text)
		case exposure.Low:
			return a.Tint(command.Cyan, text)
		}
		return text
	}, 0)
}

func levelWords() string {
	var words []string
	for _, l := range exposure.Levels {
		words = append(words, string(l))
	}
	return strings.Join(words, ", ")
}

// levelFlag is a level of exposure.
type levelFlag exposure.Level

func (f *levelFlag) String() string { return string(*f) }
func (f *levelFlag) Type() string   { return "LEVEL" }
func (f *levelFlag) Set(s string) error {
	if exposure.Level(s).Rank() == 0 {
		return fmt.Errorf("it must be one of %s", levelWords())
	}
	*f = levelFlag(s)
	return nil
}

// oneOfFlag is one of several formats.
type oneOfFlag struct {
	value *string
	known []string
}

func (f *oneOfFlag) String() string {
	if f.value == nil {
		return ""
	}
	return *f.value
}
func (f *oneOfFlag) Type() string { return "FORMAT" }
func (f *oneOfFlag) Set(s string) error {
	for _, k := range f.known {
		if k == s {
			*f.value = s
			return nil
		}
	}
	return fmt.Errorf("it must be one of %s", strings.Join(f.known, ", "))
}
