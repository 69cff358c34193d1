// Package cli is what a person meets: commands, flags, texts, hints and exit
// codes. It is the only package that prints or decides how the program ends.
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Exit codes of Holdfast itself; docs/formats/exit-codes.md is their contract.
const (
	exitOK            = 0
	exitFailed        = 1   // doctor: the default profile cannot run; run: output was lost
	exitNotProved     = 2   // prove: nothing was proved
	exitBroken        = 124 // run: Holdfast failed after the command had begun
	exitUsage         = 125 // Holdfast could not do what was asked; nothing was started
	exitNotExecutable = 126
	exitNotFound      = 127
)

// app is the world of a command: nothing reads or prints past it.
type app struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    []string
	Dir    string
}

// exitError carries an exit status. Its error, if any, has been printed.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// hinter is an error that knows the next command to type.
type hinter interface{ Hint() string }

// Main runs one command line and returns the exit status.
func Main(args []string) int {
	if status, is := actAsProber(); is {
		return status
	}
	if actAsHook(args) {
		return exitOK
	}
	if most, few := sys.FewProcesses(); few {
		fmt.Fprintf(os.Stderr, "holdfast: error: this user may have %d processes and threads here, which is too few to start\nholdfast: hint: ulimit -u 4096\n", most)
		return exitUsage
	}
	// What a start needs fits into 16 MiB: no collection before that.
	debug.SetGCPercent(400)
	// What the inside can make the supervisor hold is bounded, but not small.
	debug.SetMemoryLimit(256 << 20)
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "holdfast: error: the working directory cannot be found: %v\nholdfast: hint: change to a directory that exists\n", err)
		return exitUsage
	}
	a := &app{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ(), Dir: dir}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	status := a.report(err)
	if status == exitUsage && proves(cmd) {
		return exitNotProved
	}
	return status
}

// proves reports whether cmd is prove or one of its verbs, whose exit codes are
// those of a test runner.
func proves(cmd *cobra.Command) bool {
	return cmd != nil && (cmd.Name() == "prove" || cmd.HasParent() && proves(cmd.Parent()))
}

// report prints an error with its hint and says which status it means.
func (a *app) report(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(red, "holdfast: error:"), printable(err.Error()))
	if hint := hintFor(err); hint != "" {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(cyan, "holdfast: hint:"), printable(hint))
	}
	return statusOf(err)
}

// statusOf is the exit status that an error means.
func statusOf(err error) int {
	switch {
	case errors.Is(err, boundary.ErrNotFound):
		return exitNotFound
	case errors.Is(err, boundary.ErrNotExecutable):
		return exitNotExecutable
	case hadBegun(err):
		return exitBroken
	default:
		return exitUsage
	}
}

// hintFor is the next command to type after an error; "" when there is none.
func hintFor(err error) string {
	if hint := boundary.Exhausted(err); hint != "" {
		return hint
	}
	var h hinter
	if errors.As(err, &h) && h.Hint() != "" {
		return h.Hint()
	}
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return "look at who may use it: ls -ld " + path.Path
	case errors.Is(err, fs.ErrPermission):
		return "look at who may use what the message names: ls -ld PATH"
	default:
		return ""
	}
}

// usageError is a command line that makes no sense.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
func (e *usageError) Hint() string  { return e.hint }

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Run AI coding agents inside a boundary that holds",
		Long: `Holdfast runs a command, and everything it starts, inside a boundary that
holds when the command is hostile: no home, no credentials, no network but what
you name, no process of yours, and nothing in the workspace that you would later
execute.`,
		Example: `  holdfast run -- npm test
  holdfast run --ro ~/data -- python3 train.py
  holdfast why ~/.ssh/id_ed25519
  holdfast doctor`,
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("holdfast {{.Version}}\n")
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err, "see '" + cmd.CommandPath() + " --help'"}
	})
	root.AddCommand(newRunCommand(a), newPolicyCommand(a), newGrantCommand(a), newLogCommand(a), newAlertsCommand(a), newHooksCommand(a), newWhyCommand(a), newDoctorCommand(a), newVersionCommand(a), newReferenceCommand(a, "holdfast", topics()), newModelCommand(a))
	root.AddCommand(linuxCommands(a)...)
	root.AddCommand(hiddenCommands()...)
	root.InitDefaultCompletionCmd()
	hintArgs(root)
	return root
}

// ownArguments marks a command that has subcommands and takes arguments too.
const ownArguments = "own-arguments"

// hintArgs makes every wrong number of arguments and every unknown verb an error
// with a hint.
func hintArgs(cmd *cobra.Command) {
	if cmd.Example == "" {
		cmd.Example = "  " + cmd.CommandPath()
	}
	check := cmd.Args
	if check == nil {
		check = cobra.ArbitraryArgs
	}
	if cmd.HasSubCommands() && cmd.Annotations[ownArguments] == "" {
		check = func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := fmt.Errorf("%q is no command of %q", oneLine(args[0]), cmd.CommandPath())
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				return &usageError{err, "did you mean '" + cmd.CommandPath() + " " + near[0] + "'?"}
			}
			return &usageError{err, "see '" + cmd.CommandPath() + " --help'"}
		}
		if cmd.RunE == nil && cmd.Run == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		var h hinter
		if err == nil || errors.As(err, &h) {
			return err
		}
		return &usageError{err, "see '" + cmd.CommandPath() + " --help'"}
	}
	cmd.SuggestionsMinimumDistance = 2
	for _, sub := range cmd.Commands() {
		hintArgs(sub)
	}
}

// Colours, where a person sees them.
const (
	red    = "31"
	yellow = "33"
	cyan   = "36"
)

// paint colours s when stderr is a terminal and NO_COLOR is not set.
func (a *app) paint(colour, s string) string {
	to := a.Stderr
	if p, ok := to.(*patient); ok {
		to = p.to
	}
	f, ok := to.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || a.lookup("NO_COLOR") != "" || a.lookup("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func (a *app) lookup(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// printable makes visible what acts, hides or could reorder text: names come from
// files that an agent wrote.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && !hides(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			fmt.Fprintf(&b, "\\U%08x", r)
		}
	}
	return b.String()
}

// oneLine is printable for a name: it cannot begin a line of its own either.
func oneLine(s string) string {
	return printable(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s))
}

// hides says whether r is invisible although Unicode calls it a letter or a mark.
// What reorders its neighbours (UAX #9) is none of the two.
func hides(r rune) bool {
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}
