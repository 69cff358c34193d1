package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

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

// placed is the session that a log must be of by the place where it stands; none
// for a file elsewhere, which may have any name.
func (r archive) placed(info audit.Info) string {
	if filepath.Dir(info.Path) != filepath.Clean(r.logs) {
		return ""
	}
	return info.Session
}

// warnDamaged warns of a record of which lines are none: the others were read.
func warnDamaged(a *command.App, info audit.Info, err error, bad *bool) error {
	var damage *audit.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	*bad = true
	a.Note(command.Yellow, "warning", "the record of %s is damaged: %s", text.Line(info.Session), text.Line(damage.Error()))
	return nil
}
