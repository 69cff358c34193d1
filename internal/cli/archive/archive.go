// Package archive finds the records of this user: [Open] says where they are,
// [Archive.Find] finds the session that a command line names, and
// [Archive.ReadVerified] returns how far its record can be trusted. It shows no event
// and knows no verb.
package archive

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Archive is where the records of this user are.
type Archive struct{ Logs, Keys, Heads string }

// Open finds the places of the records; it reads none.
func Open(a *command.App) (Archive, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return Archive{}, err
	}
	return Archive{Logs: filepath.Join(host.State, "log"), Keys: filepath.Join(host.State, "keys"), Heads: filepath.Join(host.State, "heads")}, nil
}

// MissingError is an error about the name of a session, with the next step.
type MissingError struct{ Err *audit.FindError }

func (e *MissingError) Error() string {
	if e.Err.Session == "" {
		return e.Err.Error()
	}
	return strings.Replace(e.Err.Error(), fmt.Sprintf("%q", e.Err.Session), text.Word(e.Err.Session), 1)
}
func (e *MissingError) Unwrap() error { return e.Err }

// Hint names what there is.
func (e *MissingError) Hint() string {
	switch {
	case len(e.Err.Several) > 0:
		return "type more of it: " + strings.Join(e.Err.Several[:min(4, len(e.Err.Several))], ", ")
	case e.Err.Session == "":
		return "records are made by runs: holdfast run -- CMD"
	}
	return "list them with: holdfast log list"
}

// Find finds the session that args name, which may be none.
func (r Archive) Find(args []string) (audit.Info, error) {
	name := ""
	if len(args) > 0 {
		if name = args[0]; name == "" {
			return audit.Info{}, command.Usage(errors.New("the name of the session is empty"), "leave it out for the newest session")
		}
	}
	info, err := audit.Find(r.Logs, name)
	var missing *audit.FindError
	if errors.As(err, &missing) {
		return info, &MissingError{missing}
	}
	return info, err
}

// FindAll finds the session that args name, or with all every one, the oldest
// first.
func (r Archive) FindAll(args []string, all bool) ([]audit.Info, error) {
	if !all {
		info, err := r.Find(args)
		if err != nil {
			return nil, err
		}
		return []audit.Info{info}, nil
	}
	if len(args) > 0 {
		return nil, command.Usage(errors.New("both a session and --all are given"), "leave one of them out")
	}
	infos, err := audit.List(r.Logs)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, &MissingError{&audit.FindError{}}
	}
	slices.Reverse(infos)
	return infos, nil
}

// CompleteSessions completes the name of a session at position n of the arguments.
func CompleteSessions(a *command.App, n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		r, err := Open(a)
		if err != nil || len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		infos, err := audit.List(r.Logs)
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

// ExpectedSession returns the session that a log must belong to according to its path;
// "" for a file elsewhere, which may have any name.
func (r Archive) ExpectedSession(info audit.Info) string {
	if filepath.Dir(info.Path) != filepath.Clean(r.Logs) {
		return ""
	}
	return info.Session
}

// WarnDamaged warns of a record with invalid lines: the others were read.
func WarnDamaged(a *command.App, info audit.Info, err error, bad *bool) error {
	var damage *audit.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	*bad = true
	a.Note(command.Yellow, "warning", "the record of %s is damaged: %s", text.Line(info.Session), text.Line(damage.Error()))
	return nil
}

// PruneExposed forgets which trees old runs could write to, as pruning forgets runs.
func (r Archive) PruneExposed() error {
	return policy.PruneExposed(filepath.Dir(r.Logs), policy.MaxExposed)
}
