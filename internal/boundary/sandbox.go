// Package boundary says what a backend must do: start a command under a
// policy.Plan, attest what the boundary looks like before the command runs,
// and leave nothing behind. It knows no mechanism; the backends below it do.
//
// [Backend] is the way in: Check says what the host can hold, Start launches, and a
// [Process] ends. Below it:
//
//	native        the backend of Linux: namespaces, mounts, seccomp, Landlock, cgroups
//	workspace     names that a host would execute, before a run and after it
//	boundarytest  the tests that every backend must pass
package boundary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"holdfast.dev/holdfast/internal/policy"
)

// Backend starts commands inside a boundary.
type Backend interface {
	// Name is the word that --backend takes.
	Name() string

	// Check tries each guarantee on this host, by doing and not by reading
	// version numbers, and reports every one, kept or not.
	Check(ctx context.Context) []Finding

	// Start runs the command of spec inside the boundary. It returns once
	// the command is about to be executed and its posture was found to be the
	// plan's; on any error nothing runs and nothing is left behind.
	Start(ctx context.Context, spec Spec) (Process, error)
}

// Finding is what Check found about one guarantee.
type Finding struct {
	Guarantee policy.Guarantee `json:"guarantee"`
	Kept      bool             `json:"kept"`
	Detail    string           `json:"detail"`         // what was tried and what came back
	Mend      string           `json:"mend,omitempty"` // exact commands or text that would make it kept
}

// Stream is how one of the three standard descriptors is connected.
type Stream int

// A descriptor of the caller's is never handed in: the command gets one end of
// a pipe or a terminal that was made for it.
const (
	Pipe Stream = iota
	Terminal
)

// Spec is one command to start.
type Spec struct {
	Plan policy.Plan
	Argv []string // Argv[0] is looked up in the PATH of Plan.Env, inside the view
	In   Stream
	Out  Stream
	Err  Stream
	Size WindowSize // of the terminal, where one is made

	// Network says how connections of the inside reach the code that decides
	// about them; nil means that there is loopback and nothing else.
	Network *Network

	// Observe asks that what is attempted inside arrives at the supervisor; nil
	// for not.
	Observe *Observation

	// Review asks for a view of the workspace in its place; nil for the workspace
	// itself.
	Review *Review

	// Scratch is a directory of the host, owned by the owner of the workspace, that
	// is writable inside at policy.ScratchDir; "" for none.
	Scratch string

	// Files are put into view in addition to those of the plan, read-only, in place of
	// what is there otherwise.
	Files []File

	// Attested is called with the posture that was collected, after it was
	// found equal to the plan's and before the command is executed. An error
	// from it stops the launch.
	Attested func(Posture) error

	// Orphaned is the command line (argv[0] an absolute path) that is run on
	// the host when the supervisor died and everything inside is dead; nil
	// for none.
	Orphaned []string
}

// WindowSize of a terminal, in characters.
type WindowSize struct{ Rows, Cols uint16 }

// Process is a command that runs inside.
type Process interface {
	// PID of the command in the host's pid namespace.
	PID() int

	// Stdin, Stdout and Stderr are our ends of the pipes; nil where the
	// stream is the terminal. Terminal is the master side; nil without one.
	Stdin() io.WriteCloser
	Stdout() io.ReadCloser
	Stderr() io.ReadCloser
	Terminal() *os.File

	// Signal sends sig to the process group of the command.
	Signal(sig syscall.Signal) error

	// Changes yields Stopped when the command was stopped by job control and
	// is closed when it has ended.
	Changes() <-chan State

	// Wait returns how the command ended, after everything inside is dead
	// and everything that the launch made is gone. It may be called once.
	Wait() (Exit, error)

	// Kill ends everything inside at once. It may be called at any time, and
	// more than once. reason is what Exit gives, such as a limit that was hit;
	// "" for none.
	Kill(reason string)

	// Limited says which limits hold for all processes together by the
	// kernel; the others hold a process each, or by a watch.
	Limited() []policy.Guarantee

	// Dial connects to a TCP port that is served inside, on loopback.
	Dial(port int) (io.ReadWriteCloser, error)
}

// State of a running command.
type State int

// The states that Changes reports.
const (
	Running State = iota
	Stopped
)

// Exit is how a command ended.
type Exit struct {
	Code   int            // exit status; meaningless when Signal is not 0
	Signal syscall.Signal // that ended it, or 0
	Reason string         // a limit that ended it, such as "time limit of 4h"; "" otherwise
	Hits   []string       // limits that were hit on the way, in words
}

// Status is the exit status as a shell gives it: 128+n for signal n.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// Errors that a Start reports of the command itself; everything else is a
// failure of the launch.
var (
	ErrNotFound      = errors.New("command not found inside the boundary")
	ErrNotExecutable = errors.New("command found but not executable inside the boundary")
)

// CommandError says that the command could not be executed.
type CommandError struct {
	Name string
	Err  error // ErrNotFound or ErrNotExecutable
}

func (e *CommandError) Error() string { return fmt.Sprintf("%q: %v", e.Name, e.Err) }
func (e *CommandError) Unwrap() error { return e.Err }

// Hint is the next command to type.
func (e *CommandError) Hint() string {
	switch {
	case errors.Is(e.Err, ErrNotExecutable):
		return fmt.Sprintf("if it is a program or a script of yours, 'chmod +x %s'; a script needs a first line such as #!/bin/sh", e.Name)
	case strings.ContainsAny(e.Name, " \t\n|&;<>$"):
		return "it was given as one word: leave the quotes out, or hand the line to a shell: 'holdfast run -- sh -c LINE'"
	case strings.HasPrefix(e.Name, "-"):
		return "options of holdfast go before the command: 'holdfast run [flags] -- CMD'; see 'holdfast run --help'"
	case strings.Contains(e.Name, "/"):
		return fmt.Sprintf("'holdfast why %s' says whether it is in view; 'holdfast run --ro DIR' shows a directory", e.Name)
	default:
		return "'holdfast policy explain " + e.Name + "' says where it is looked for; 'holdfast run --ro DIR' shows a directory"
	}
}

// GapError says that the host cannot keep guarantees that the plan wants.
type GapError struct{ Missing []Finding }

func (e *GapError) Error() string {
	names := make([]string, len(e.Missing))
	for i, f := range e.Missing {
		names[i] = string(f.Guarantee) + " (" + f.Detail + ")"
	}
	return "this host cannot enforce " + strings.Join(names, ", ")
}

// Hint says how to mend the first gap, and how to accept it where that is
// possible.
func (e *GapError) Hint() string {
	f := e.Missing[0]
	if f.Mend != "" {
		return f.Mend
	}
	return fmt.Sprintf("run 'holdfast doctor' to see how to fix it, or accept the loss with --without %s", f.Guarantee)
}

// PostureError says that the boundary was not what the plan wants when it was
// looked at from the inside. The command was not executed.
type PostureError struct {
	Diff     []string
	Replaced bool // the difference is a file that another program replaced meanwhile
}

func (e *PostureError) Error() string {
	return "the boundary differs from the plan: " + strings.Join(e.Diff, "; ")
}
