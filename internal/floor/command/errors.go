package command

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Hinter is an error that knows the next command to type.
type Hinter interface{ Hint() string }

// ExitError carries an exit status. What it is about has been printed.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// UsageError is a command line that makes no sense, with the next one to type.
type UsageError struct {
	err  error
	hint string
}

// Usage returns err as an error of the command line.
func Usage(err error, hint string) error { return &UsageError{err, hint} }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// Hint is the next command to type.
func (e *UsageError) Hint() string { return e.hint }

// Report prints an error with its hint, and returns the status that it means.
func (a *App) Report(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(Red, a.Name+": error:"), indent(err.Error()))
	if hint := a.hintFor(err); hint != "" {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(Cyan, a.Name+": hint:"), indent(hint))
	}
	if a.Status != nil {
		return a.Status(err)
	}
	return ExitUsage
}

// indent is a message of several lines, of which only the first begins a line: a name in it
// may hold what looks like another message of ours.
func indent(message string) string {
	return strings.ReplaceAll(text.Safe(message), "\n", "\n    ")
}

// hintFor is the next command to type after an error; "" if there is none.
func (a *App) hintFor(err error) string {
	if a.Hint != nil {
		if hint := a.Hint(err); hint != "" {
			return hint
		}
	}
	var h Hinter
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return "check who may use it: ls -ld " + text.Word(path.Path)
	case errors.Is(err, fs.ErrPermission):
		return "check who may use the path in the message: ls -ld PATH"
	default:
		return ""
	}
}

// OwnArguments marks, as an annotation, a command that has subcommands and takes
// arguments too.
const OwnArguments = "own-arguments"

// CheckArguments makes every wrong number of arguments and every unknown verb
// below cmd an error with a hint.
func CheckArguments(cmd *cobra.Command) {
	if cmd.Example == "" {
		cmd.Example = "  " + cmd.CommandPath()
	}
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	if _, own := cmd.Annotations[OwnArguments]; cmd.HasSubCommands() && !own {
		check = knownVerb
		if cmd.RunE == nil && cmd.Run == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var h Hinter
		if err == nil || errors.As(err, &h) {
			return err
		}
		return Usage(err, "see '"+cmd.CommandPath()+" --help'")
	}
	cmd.SuggestionsMinimumDistance = 2
	for _, sub := range cmd.Commands() {
		CheckArguments(sub)
	}
}

// knownVerb refuses a word that is not a verb of cmd.
func knownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("%q is not a command of %q", text.Line(args[0]), cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return Usage(err, "did you mean '"+cmd.CommandPath()+" "+near[0]+"'?")
	}
	return Usage(err, "see '"+cmd.CommandPath()+" --help'")
}

// Exit returns the error that ends a program with a status. What it is about has
// been printed.
func Exit(code int) error { return &ExitError{code} }
