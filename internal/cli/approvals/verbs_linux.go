package approvals

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
)

// allowFlags say how far an approval goes.
type allowFlags struct {
	once, session, directory bool
	span                     time.Duration
	uses                     int
	reason                   string
}

func newApproveAllow(a *app) *cobra.Command {
	var f allowFlags
	c := &cobra.Command{
		Use:   "allow ID [--once|--session|--for DURATION]",
		Short: "Allow what a request asks",
		Long: `Allow what a request asks. By default it is allowed once: exactly what waits; the
same again is asked again. With --session or --for the same is allowed until the
run ends or the time is over: the same program with the same content and arguments
in the same directory, the same file, the same destination. --uses limits how often.`,
		Example: `  holdfast approve allow k7m2
  holdfast approve allow k7m2 --session --reason "pushes to the staging remote"
  holdfast approve allow k7m2 --for 10m --uses 3
  holdfast approve allow k7m2 --session --directory`,
		Args:              oneName("request"),
		ValidArgsFunction: a.completeRequests,
		RunE:              func(c *cobra.Command, args []string) error { return a.allow(c, args[0], f) },
	}
	c.Flags().BoolVar(&f.once, "once", false, "exactly this one time (default)")
	c.Flags().BoolVar(&f.session, "session", false, "the same until the run ends")
	c.Flags().Var((*spanFlag)(&f.span), "for", "the same for DURATION, such as 10m, up to "+words.Span(consent.Longest))
	c.Flags().BoolVar(&f.directory, "directory", false, "of a file: everything in its directory")
	c.Flags().Var((*usesFlag)(&f.uses), "uses", "N times at most, with --session or --for")
	c.Flags().StringVar(&f.reason, "reason", "", "TEXT for the record")
	return c
}

// answer completes an answer with what the flags say.
func (f allowFlags) answer(n consent.Answer) (consent.Answer, error) {
	n.Allow, n.Scope, n.Directory, n.Uses, n.Reason = true, consent.Once, f.directory, f.uses, f.reason
	switch {
	case f.session && f.span > 0 || f.once && (f.session || f.span > 0):
		return n, command.Usage(errors.New("more than one of --once, --session and --for is given"), "leave all but one out")
	case f.session:
		n.Scope = consent.Session
	case f.span > 0:
		n.Scope, n.For = consent.For, f.span
	case f.uses > 1 || f.directory:
		return n, command.Usage(errors.New("--uses and --directory do not apply to what is allowed once"), "say how long the approval holds, with --session or --for")
	}
	return n, nil
}

func (a *app) allow(c *cobra.Command, name string, f allowFlags) error {
	n, err := f.answer(consent.Answer{})
	if err != nil {
		return err
	}
	return a.decide(c, name, n)
}

func newApproveDeny(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:               "deny ID",
		Short:             "Deny what a request asks",
		Long:              "Deny what a request asks. The program is refused as it is by the boundary; the reason\nis recorded.",
		Example:           `  holdfast approve deny k7m2 --reason "not on a Friday"`,
		Args:              oneName("request"),
		ValidArgsFunction: a.completeRequests,
		RunE: func(c *cobra.Command, args []string) error {
			return a.decide(c, args[0], consent.Answer{Reason: reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "TEXT for the record")
	return c
}

// decide answers the request of a name as n says.
func (a *app) decide(c *cobra.Command, name string, n consent.Answer) error {
	ctx, stop := command.Interruptible(c)
	defer stop()
	p, err := a.approver("command")
	if err != nil {
		return err
	}
	r, err := findRequest(ctx, p.state, name)
	if err != nil {
		return err
	}
	full := r.Answer()
	full.Allow, full.Scope, full.For, full.Directory, full.Uses, full.Reason = n.Allow, n.Scope, n.For, n.Directory, n.Uses, n.Reason
	if err := p.answer(ctx, full); err != nil {
		return fmt.Errorf("answering %s: %w", r.ID, err)
	}
	what := "denied"
	if n.Allow {
		what = "allowed " + scopeText(n.Scope, n.For)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s: %s\n", r.ID, what)
	return err
}

// scopeText is how far an approval goes, in words.
func scopeText(s consent.Scope, span time.Duration) string {
	switch s {
	case consent.Session:
		return "until the run ends"
	case consent.For:
		return "for " + words.Span(span)
	}
	return "once"
}

func newApproveRevoke(a *app) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "revoke GRANT",
		Short:   "Take an approval back",
		Long:    "Take an approval back: what it covered is asked again. What it already allowed stays done.",
		Example: "  holdfast approve grants\n  holdfast approve revoke m3xq",
		Args:    oneName("approval"),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			p, err := a.approver("command")
			if err != nil {
				return err
			}
			g, err := findGrant(ctx, p.state, args[0])
			if err != nil {
				return err
			}
			if err := p.revoke(ctx, g.Session, g.ID, reason); err != nil {
				return fmt.Errorf("taking %s back: %w", g.ID, err)
			}
			_, err = fmt.Fprintf(a.Stdout, "%s: taken back\n", g.ID)
			return err
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "TEXT for the record")
	return c
}

// spanFlag is a time that an approval holds.
type spanFlag time.Duration

func (f *spanFlag) String() string { return "" }

func (f *spanFlag) Type() string { return "DURATION" }

func (f *spanFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second || d > consent.Longest || d%time.Second != 0 {
		return fmt.Errorf("it is not a duration from 1s to %s in whole seconds, such as 10m", words.Span(consent.Longest))
	}
	*f = spanFlag(d)
	return nil
}

// usesFlag is how often an approval may be used.
type usesFlag int

func (f *usesFlag) String() string { return "" }

func (f *usesFlag) Type() string { return "N" }

func (f *usesFlag) Set(s string) error {
	var n command.CountFlag
	if n.Set(s) != nil || n < 1 {
		return errors.New("it must be a whole number above 0")
	}
	*f = usesFlag(n)
	return nil
}
