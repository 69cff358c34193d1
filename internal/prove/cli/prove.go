//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// prover holds the command line of prove.
type prover struct {
	target, command, version string // which target; a custom command line, and the one that prints its version
	selection                harness.Selection
	format                   report.Format
	output                   string
	baseline, against        string
	except                   []string // rows that may prove nothing even if strict
	strict, verbose, list    bool
	unconfined               bool // rows may run as root without any sandbox
	jobs                     int
	world                    string // a name of harness.Worlds, or all
	dir, prober              string
	agent                    agentTarget
}

func newProveCommand(a *app) *cobra.Command {
	var p prover
	cmd := &cobra.Command{
		Use:   "prove",
		Short: "Run the escape matrix against Holdfast, or against another sandbox",
		Long: `Play the rows of the escape matrix against a target: each tries one way out, and
the verdict is given from outside, by what was changed, reached or leaked. held is
a row that was denied, ESCAPED one that got through, unseen one that was denied
without a trace in the record, residual one that is known and documented to get
through, and inconclusive one that proved nothing.

The probes aim at nothing but what prove makes for them below the home: a
workspace, a home with dummy credentials, files, listeners and processes.

The exit status is 0 when nothing escaped or was unseen, 1 when something did or
was, and 2 when nothing could be proved. With --strict inconclusive rows fail too.`,
		Example: `  holdfast prove
  holdfast prove --core --quick
  holdfast prove --target bwrap --class git
  holdfast prove --target-cmd 'firejail --quiet --private={W} -- {}' --format html -o firejail.html
  holdfast prove --baseline save; holdfast prove --against prove-holdfast.json
  holdfast prove --agent claude --agent-version latest --posture all
  holdfast prove --agent codex --inside holdfast`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := command.UntilHangup(cmd)
			defer stop()
			if err := p.fits(cmd.Flags()); err != nil {
				return err
			}
			return proveHint(a.prove(ctx, p))
		},
	}
	targetFlags(cmd, &p)
	commandFlags(cmd, &p)
	playFlags(cmd, &p)
	placeFlags(cmd, &p, 0)
	agentFlags(cmd, &p.agent)
	f := cmd.Flags()
	formatFlag(cmd, &p, report.RunFormats)
	f.VarP((*command.TextFlag)(&p.output), "output", "o", "FILE to write the report to")
	f.Var((*command.TextFlag)(&p.baseline), "baseline", "'save' the results for --against, to prove-TARGET.json or to the FILE of save=FILE")
	f.Var((*command.TextFlag)(&p.against), "against", "FILE: report what has become weaker than in this baseline, or fails differently")
	f.BoolVar(&p.strict, "strict", false, "rows that proved nothing fail too")
	f.StringArrayVar(&p.except, "except", nil, "with --strict: the row with this ID, or that match this pattern, may prove nothing (repeatable)")
	f.BoolVarP(&p.verbose, "verbose", "v", false, "print everything that was seen of each row")
	f.BoolVar(&p.list, "list", false, "print the rows that would be played, and play none")
	cmd.AddCommand(append(workers(), newProveMatrix(a), newProveAblate(a), newProveExposure(a), newProveWatch(a), newRowsCommand(a), newReferenceCommand(a))...)
	return cmd
}

// targetFlags select the target and where it is played; matrix and watch name theirs as
// arguments.
func targetFlags(cmd *cobra.Command, p *prover) {
	worldFlag(cmd, p)
	p.target = "holdfast"
	cmd.Flags().Var((*command.TextFlag)(&p.target), "target", "TARGET: "+strings.Join(targets.Names(), ", "))
	cmd.RegisterFlagCompletionFunc("target", cobra.FixedCompletions(targets.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// commandFlags describe a sandbox that has no built-in name.
func commandFlags(cmd *cobra.Command, p *prover) {
	f := cmd.Flags()
	f.Var((*command.TextFlag)(&p.command), "target-cmd", "the command line 'PROG --flags -- {}' of another sandbox; {} is the command, {W} the workspace, {H} the home")
	f.Var((*command.TextFlag)(&p.version), "target-version", "the command line that prints its version")
}

// rowFlags select rows.
func rowFlags(cmd *cobra.Command, p *prover) {
	f := cmd.Flags()
	f.StringArrayVar(&p.selection.Classes, "class", nil, "only rows of this CLASS, such as exec.git, git or fs (repeatable)")
	f.StringArrayVar(&p.selection.IDs, "id", nil, "only the row with this ID, or rows that match a pattern such as 'LNK-*' (repeatable)")
	f.BoolVar(&p.selection.Core, "core", false, "only the headline cases")
	f.BoolVar(&p.selection.Quick, "quick", false, "leave out races and floods, which are slow by design")
}

// playFlags select the rows to play, and whether root may play them without any
// sandbox.
func playFlags(cmd *cobra.Command, p *prover) {
	rowFlags(cmd, p)
	cmd.Flags().BoolVar(&p.unconfined, "unconfined-root", false, "as root, play rows without any sandbox: for a machine that may be lost")
}

// worldFlag selects the world in which rows are played.
func worldFlag(cmd *cobra.Command, p *prover) {
	cmd.Flags().Var((*command.TextFlag)(&p.world), "world", "WORLD to play in: "+strings.Join(harness.WorldNames(), ", ")+"; or all, side by side (default "+harness.DefaultWorld+")")
	cmd.RegisterFlagCompletionFunc("world", cobra.FixedCompletions(append(harness.WorldNames(), "all"), cobra.ShellCompDirectiveNoFileComp))
}

// placeFlags select where rows are played, with which prober, and how many at a
// time: 0 for as many as the machine has room for.
func placeFlags(cmd *cobra.Command, p *prover, jobs int) {
	f := cmd.Flags()
	usage := "rows to play at a time"
	if jobs == 0 {
		usage += " (default: by the machine)"
	}
	f.IntVar(&p.jobs, "jobs", jobs, usage)
	f.Var((*command.TextFlag)(&p.dir), "dir", "DIR below which the workspaces are made, your own and no one else's (default: the home)")
	f.Var((*command.TextFlag)(&p.prober), "prober", "FILE: a static program to run inside, in place of the one that this binary carries")
}

// formatFlag adds the flag for the format of a report.
func formatFlag(cmd *cobra.Command, p *prover, formats []report.Format) {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	p.format = formats[0]
	cmd.Flags().Var(&formatValue{&p.format, formats}, "format", "FORMAT: "+strings.Join(names, ", "))
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

type formatValue struct {
	format *report.Format
	of     []report.Format
}

func (v *formatValue) String() string { return "" }
func (v *formatValue) Type() string   { return "FORMAT" }

func (v *formatValue) Set(name string) (err error) {
	*v.format, err = report.ParseFormat(name, v.of)
	return err
}

// proveHint adds the next command to type to an error of the harness.
func proveHint(err error) error {
	var says command.Hinter
	switch {
	case errors.Is(err, context.Canceled):
		return command.Usage(errors.New("interrupted before all rows were played, so nothing is reported"),
			"play fewer rows: --core --quick, or those of --class and --id")

	case errors.As(err, &says) && says.Hint() != "":
		return err
	case errors.Is(err, harness.ErrSelection):
		return command.Usage(err, "see the rows with: holdfast prove --list")
	case errors.Is(err, harness.ErrUnsafe):
		return command.Usage(err, "name a directory of your own, on this machine, with --dir")
	case errors.Is(err, harness.ErrChanged):
		return command.Usage(err, "play it again when its update is over; holdfast prove watch does this itself")
	case errors.Is(err, harness.ErrNothingRan):
		return command.Usage(err, "run the target by hand with a command such as /bin/true; for Holdfast: holdfast doctor")
	}
	return err
}

func (a *app) prove(ctx context.Context, p prover) error {
	if p.agent.name != "" {
		return a.proveAgent(ctx, p)
	}
	if p.list {
		return a.listRows(p)
	}
	if err := harness.Known(probe.All(), p.except); err != nil {
		return err
	}
	return a.playAndReport(p, func() ([]report.Run, error) {
		target, err := a.proveTarget(p)
		if err != nil {
			return nil, err
		}
		return a.playIn(ctx, p, target)
	})
}

// play plays the selection of p against its target.
func (a *app) play(ctx context.Context, p prover) (report.Run, error) {
	target, err := a.proveTarget(p)
	if err != nil {
		return report.Run{}, err
	}
	return a.playOn(ctx, p, target)
}

// playOn plays rows against a target in one world.
func (a *app) playOn(ctx context.Context, p prover, target probe.Target) (report.Run, error) {
	runs, err := a.playIn(ctx, p, target)
	if err != nil {
		return report.Run{}, err
	}
	return runs[0], nil
}

// playIn plays rows against a target, one world after the other, and shows
// progress on a terminal.
func (a *app) playIn(ctx context.Context, p prover, target probe.Target) (runs []report.Run, err error) {
	worlds, err := harness.WorldsNamed(cmp.Or(p.world, harness.DefaultWorld))
	if err != nil {
		return nil, command.Usage(err, "leave --world out for the usual one, or take all")
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	place, err := a.provePlace(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	for _, world := range worlds {
		name := target.Name()
		if p.world != "" {
			name += " in the world " + world.Name
		}
		show := a.progress(name)
		run, err := harness.Prove(ctx, harness.Options{
			Target: target, Select: p.selection, Workers: p.jobs, Place: place, Tool: command.Version(), Strict: p.strict, Progress: show.row,
			Worker: []string{exe, harness.WorkerCommand}, World: world, Machine: []string{exe, harness.MachineCommand}, Again: p.rerunCommand(false),
		})
		show.end()
		if errors.Is(err, harness.ErrMeaningless) && len(worlds) > 1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func (a *app) proveTarget(p prover) (probe.Target, error) {
	if p.command != "" {
		return targets.Command(p.command, p.version)
	}
	if p.target == "none" && os.Geteuid() == 0 && !p.unconfined {
		return nil, command.Usage(errors.New("without a sandbox the probes would have all of root's rights; they are made to do no harm, but nothing would confine them"),
			"play them as another user, or on a machine that may be lost with --unconfined-root")

	}
	o := targets.Options{}
	if p.target == "holdfast" {
		var err error
		if o.Holdfast, err = a.holdfast(); err != nil {
			return nil, err
		}
	}
	return targets.Named(p.target, o)
}

// holdfast returns the program of Holdfast, which is a target like the others.
func (a *app) holdfast() (string, error) {
	return command.Installed("holdfast", a.Lookup("PATH"), a.Dir)
}

// provePlace makes the place to probe in: below HOME, or below the home of the
// account if HOME is a directory that a sandbox would hide.
func (a *app) provePlace(p prover) (*harness.Place, error) {
	if p.jobs < 0 {
		return nil, command.Usage(fmt.Errorf("--jobs %d is negative", p.jobs), "leave it out, or write --jobs 1 to play one row at a time")
	}
	dir := p.dir
	if dir == "" {
		dir = a.Lookup("HOME")
		if u, err := user.Current(); err == nil && (dir == "" || harness.Private(dir)) {
			dir = u.HomeDir
		}
	}
	return harness.NewPlace(dir, p.prober)
}

// progress is the line on a terminal that shows the progress of a run.
type progress struct {
	a      *app
	target string
	shown  bool
	worst  map[probe.Verdict]int
}

func (a *app) progress(target string) *progress {
	return &progress{a: a, target: target, worst: map[probe.Verdict]int{}}
}

func (p *progress) row(done, total int, r probe.Result) {
	p.worst[r.Verdict]++
	if f, ok := p.terminal(); ok {
		p.shown = true
		fmt.Fprintf(f, "\r\x1b[K%s: %d of %d rows, %d escaped, %d unseen, %d inconclusive; %s", p.target, done, total,
			p.worst[probe.Escaped], p.worst[probe.Unseen], p.worst[probe.Inconclusive], r.Row.ID)
	}
}

// terminal returns where progress is shown, if that is a terminal.
func (p *progress) terminal() (*os.File, bool) {
	f, ok := p.a.Stderr.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd())) && p.a.Lookup("TERM") != "dumb"
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.a.Stderr, "\r\x1b[K")
	}
}
