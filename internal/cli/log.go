package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newLogCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "log",
		Short: "Look at the record of runs: what was started, touched, reached and refused",
		Long: `Every run is recorded, outside the boundary, in a log that cannot be altered
unnoticed. SESSION is the name of a run, or the beginning of it; without one the
newest is meant. Text from inside is shown escaped; --json leaves it as data.`,
		Example: `  holdfast log show
  holdfast log query 'verdict == "denied"'
  holdfast log files --written
  holdfast log verify --all`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLogList(a), newLogShow(a), newLogReport(a), newLogFollow(a), newLogQuery(a), newLogTree(a), newLogFiles(a), newLogNet(a),
		newLogVerify(a), newLogBaseline(a), newLogExport(a), newLogPrune(a), newLogKey(a))
	return c
}

// archive is where the records of this user are.
type archive struct{ logs, keys, heads string }

func openArchive(a *command.App) (archive, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return archive{}, err
	}
	return archive{logs: filepath.Join(host.State, "log"), keys: filepath.Join(host.State, "keys"), heads: filepath.Join(host.State, "heads")}, nil
}

// noSession is an error about the name of a session, with the next step.
type noSession struct{ err *audit.FindError }

func (e *noSession) Error() string {
	if e.err.Session == "" {
		return e.err.Error()
	}
	return strings.Replace(e.err.Error(), fmt.Sprintf("%q", e.err.Session), text.Word(e.err.Session), 1)
}
func (e *noSession) Unwrap() error { return e.err }

// Hint names what there is.
func (e *noSession) Hint() string {
	switch {
	case len(e.err.Several) > 0:
		return "type more of it: " + strings.Join(e.err.Several[:min(4, len(e.err.Several))], ", ")
	case e.err.Session == "":
		return "records are made by runs: holdfast run -- CMD"
	}
	return "see what there is with: holdfast log list"
}

// find finds the session that args name, which may be none.
func (r archive) find(args []string) (audit.Info, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" {
			return audit.Info{}, command.Usage(errors.New("the name of the session is empty"), "leave it out to mean the newest")
		}
	}
	info, err := audit.Find(r.logs, name)
	var missing *audit.FindError
	if errors.As(err, &missing) {
		return info, &noSession{missing}
	}
	return info, err
}

// findAll finds the session that args name, or with all every one, the oldest
// first.
func (r archive) findAll(args []string, all bool) ([]audit.Info, error) {
	if !all {
		info, err := r.find(args)
		if err != nil {
			return nil, err
		}
		return []audit.Info{info}, nil
	}
	if len(args) > 0 {
		return nil, command.Usage(errors.New("a session and --all at once"), "leave one of them out")
	}
	infos, err := audit.List(r.logs)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, &noSession{&audit.FindError{}}
	}
	for i, j := 0, len(infos)-1; i < j; i, j = i+1, j-1 {
		infos[i], infos[j] = infos[j], infos[i]
	}
	return infos, nil
}

// completeSessions completes the name of a session at position n of the arguments.
func completeSessions(a *command.App, n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, err := openArchive(a)
		if err != nil || len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		infos, err := audit.List(r.logs)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, i := range infos {
			if strings.HasPrefix(i.Session, begin) {
				names = append(names, cobra.CompletionWithDesc(i.Session, words.Moment(i.Start)))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// ageFlag is a time span: a number of h, m and s as Go writes them, or of days
// and weeks.
type ageFlag time.Duration

func (f *ageFlag) String() string { return "" }

func (f *ageFlag) Type() string { return "DURATION" }

func (f *ageFlag) Set(s string) error {
	for suffix, unit := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		var n int
		if _, err := fmt.Sscanf(s, "%d"+suffix, &n); err == nil && fmt.Sprint(n)+suffix == s && n >= 0 && n < 100_000 {
			*f = ageFlag(time.Duration(n) * unit)
			return nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return errors.New("it is no time span such as 30d, 2w or 12h")
	}
	*f = ageFlag(d)
	return nil
}
