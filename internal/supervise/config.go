package supervise

import (
	"os"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Level is how much the filter hands over, and so how much is recorded.
type Level int

// The levels. Standard has every execution and every attempt to change or
// reach something, and of the opens for reading and the look-ups that the filter
// hands over those that are refused; Full adds every opening of a file for reading.
const (
	Standard Level = iota
	Full
)

// Sink receives events, from several goroutines at once. It stamps Session, Time and N.
// It must not modify the Detail and Argv that it is given.
type Sink interface {
	// Emit returns when the event is in the log. Its error means that it is not, and
	// that the request must be refused.
	Emit(event.Event) error

	// Observe may return earlier. Its error means that the log is broken.
	Observe(event.Event) error
}

// View is where paths are inside. The tree with the longest path decides; a path
// outside all trees does not exist, except that the directories above a tree do, for
// reading. Every file that is put into view separately is a tree.
type View struct {
	Trees       []policy.Tree
	UID, GID    int  // of the command, as the supervisor sees them
	Closed      bool // no address but those of the loopback can be reached
	Intercepted bool // connections to others go to the egress, and datagrams nowhere but to port 53
	Portal      bool // the third process inside is the boundary's own and hands out sockets
}

// Config is what a Supervisor needs to know.
type Config struct {
	Listener *os.File // of the filter; taken over

	// Refuse says what the filter refuses, and with which error: such a call is
	// answered with it and never continues. nil refuses nothing.
	Refuse func(nr uint32, args [6]uint64) (syscall.Errno, bool)

	// Name gives the name of a system call. nil, or "", leaves the number.
	Name func(nr uint32) string

	Level Level
	View  View

	// Uncompared records calls that change files only as foreseen, where another thread
	// could exchange their paths. It is for tests of foreseeing alone.
	Uncompared bool

	Root int // pid of the first process inside; 0 for none
	Sink Sink

	// Gate decides about attempts by the policy's rules of consent, and Wants reports
	// whether a rule can be about a kind of them. If one of the two is nil, or Wants
	// returns false, nothing is asked and nothing waits.
	Gate  event.Gate
	Wants func(event.Kind) bool

	// About reports whether a rule could match the program of an execution that no rule
	// matches, if its arguments were different: these are then checked again when the
	// program begins (ptrace(2)). The attempt has no arguments, and is Cut. About must
	// ask no human. nil means true for every program.
	About func(event.Attempt) bool

	// Carry says why a path of the host's, absolute and without links, may not be
	// changed from inside even when a human allows it; nil error if it may. op is one
	// of write, mkdir, unlink, rename, chmod and truncate. It is called from several
	// goroutines. nil lets nothing be changed. See Outside.
	Carry func(op, path string) error

	// HiddenByView reports whether a path that is missing in a private tree exists on
	// the host, or could. A look-up of such a path is an event; nothing else depends on
	// it. nil means false for all.
	HiddenByView func(path string) bool

	// Asked reports whether the rules of consent treat a change of a path in a private
	// tree as one of the host: they judge it, and if a human allows it, it is made on
	// the host. It is called from several goroutines. nil means false for all.
	Asked func(path string) bool

	// Quiet, Ordinary and Marked are as those of TripwireConfig, for look-ups and
	// opens for reading that arrive because no tripwire sees them. Quiet is for the
	// paths of sockets, too.
	Quiet    []string
	Ordinary func(e event.Event, missing string) bool
	Marked   func(event.Event) bool

	// Hashes is the file that keeps hashes of executables over runs, of those
	// that nothing inside can write; "" for none. It must not be in view.
	Hashes string

	// Failed is called once, on a goroutine of its own, when the record cannot
	// go on: everything inside must die. Until then every call is refused.
	Failed func(error)
}
