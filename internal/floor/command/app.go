// Package command is what the command lines of our programs have in common:
// streams, errors that name the next command, colours, exit codes, the version,
// and contexts that end with a signal. It knows no verb.
//
// [App] is the way in: a program makes one from its process ([New]), hands it to
// its verbs, and ends with the status of [App.Report].
package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Exit codes that programs share; docs/formats/exit-codes.md is their contract.
const (
	ExitOK     = 0
	ExitFailed = 1   // it was done, and the answer is no, or something is left to do
	ExitUsage  = 125 // what was asked could not be done; nothing was started
)

// App is the world of a command: no verb reads or prints past it.
type App struct {
	Name   string // of the program, which begins its messages
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Env    []string
	Dir    string // working directory
	// Status is the exit status that an error means; nil: ExitUsage for all.
	Status func(error) int
	// Hint is the next command to type after an error that names none; nil: none.
	Hint func(error) string
}

// errFew means that a program of ours could not work.
var errFew = errors.New("too few processes")

// New returns the App of this process. On an error it has printed why.
func New(name string) (*App, error) {
	if most, few := sys.FewProcesses(); few {
		fmt.Fprintf(os.Stderr, "%s: error: this user may have only %d processes and threads here, too few to start\n%s: hint: ulimit -u 4096\n", name, most, name)
		return nil, errFew
	}
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: error: the working directory cannot be found: %v\n%s: hint: change to a directory that exists\n", name, err, name)
		return nil, err
	}
	return &App{Name: name, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ(), Dir: dir}, nil
}

// Attach gives root the streams of a, and the form of usage errors.
func (a *App) Attach(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage(err, "see '"+cmd.CommandPath()+" --help'")
	})
	a.addVersionFlag(root)
	root.InitDefaultCompletionCmd()
	CheckArguments(root)
}

// addVersionFlag has root print the version for --version. That of cobra takes a
// template, and a program that has text/template linked keeps every method of
// every type.
func (a *App) addVersionFlag(root *cobra.Command) {
	run := root.RunE
	short := "v"
	if root.Flags().ShorthandLookup(short) != nil { // it means something else there
		short = ""
	}
	asked := root.Flags().BoolP("version", short, false, "version for "+a.Name)
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return a.printVersion(root)
		}
		return run(cmd, args)
	}
}

// Colours, where a person sees them.
const (
	Bold   = "1"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
	Grey   = "90"
)

// Paint colours s when stderr is a terminal and NO_COLOR is not set.
func (a *App) Paint(colour, s string) string { return a.coloured(a.Stderr, colour, s) }

// Tint colours s when stdout is a terminal, by the same rules.
func (a *App) Tint(colour, s string) string { return a.coloured(a.Stdout, colour, s) }

func (a *App) coloured(to io.Writer, colour, s string) string {
	if w, ok := to.(interface{ Unwrap() io.Writer }); ok {
		to = w.Unwrap()
	}
	f, ok := to.(*os.File)
	if !ok || s == "" || !term.IsTerminal(int(f.Fd())) || a.Lookup("NO_COLOR") != "" || a.Lookup("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// Lookup returns the value of a variable of the environment; "" for none. Of one
// that is set twice the last counts.
func (a *App) Lookup(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(a.Env[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// Note prints a line on stderr that is not an error. It is one line, whatever names are in it.
func (a *App) Note(colour, kind, format string, args ...any) {
	fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(colour, a.Name+": "+kind+":"), text.Line(fmt.Sprintf(format, args...)))
}
