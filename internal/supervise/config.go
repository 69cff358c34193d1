// Package supervise records what a command asks of the kernel, from outside:
// system calls that the filter hands over (seccomp user notification), and
// look-ups that leave the view. It watches. What it lets go on is decided by
// the boundary, which holds without it, and nothing that it read from the
// memory of a process is ever what a permission rests on: another thread may
// have changed it since. What it does decide is safe to decide: a call that the
// filter refuses is answered with an error whatever its arguments, and when the
// record cannot be written, every call is.
//
// Where the policy has rules of consent, calls wait for a human besides. They are
// for consent: what a program inside may do at most is the boundary's, which
// holds without them. A change outside that is allowed is made here, on the path
// that was shown, and its result handed in: nothing is read twice. An execution
// that is allowed goes on in the kernel, which reads it again. So the program that
// comes of it is held against what was judged, before its first instruction where
// a rule could be about it (ptrace(2)), and at its first reported call where none
// could: until then it can compute, read, and write to what is open already.
// What is not held is what a program reads by itself: its environment, its
// configuration, and the text of a script after its hash was taken.
//
// There are three ways in. New: a notification is received in serve.go, handled in
// supervisor.go and recorded in exec.go, file.go, sock.go or lookup.go. resolve*.go finds
// where its path leads, foresee*.go what will come of it, compare*.go what came of it;
// gate.go asks the rules of consent, hold.go waits for the answer, and outside*.go makes
// an allowed change on the host. NewTripwire: a look-up that leaves the view is a FUSE
// request (fuse_*.go), and tripwire_miss.go makes its event. NewLandlockAudit: the
// kernel's own records of denials.
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

// Sink receives events, from several goroutines at once. It stamps Session,
// Time and N. It must not change Detail and Argv of what it is given in place.
type Sink interface {
	// Emit returns when the event stands in the log. Its error means that it
	// does not, and that what was asked must be refused.
	Emit(event.Event) error

	// Observe may return earlier. Its error means that the log is broken.
	Observe(event.Event) error
}

// View is where paths stand inside. The tree with the longest path decides; a
// path outside all of them does not exist, except that the directories above a
// tree do, for reading. Every file that is put into view by itself is a tree.
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

	// Refuse says what the filter refuses, and with which error: such a call
	// is answered with it and never goes on. nil refuses nothing.
	Refuse func(nr uint32, args [6]uint64) (syscall.Errno, bool)

	// Name gives the name of a system call. nil, or "", leaves the number.
	Name func(nr uint32) string

	Level Level
	View  View

	// Uncompared leaves it at what is foreseen of calls that change files, where
	// another thread could exchange their paths. It is for tests of that alone.
	Uncompared bool

	Root int // pid of the first process inside; 0 for none
	Sink Sink

	// Gate decides about attempts by the policy's rules of consent, and Wants says
	// whether a rule can be about a kind of them. Where one of the two is nil, or
	// Wants says no, nothing is asked and nothing waits.
	Gate  event.Gate
	Wants func(event.Kind) bool

	// About says whether a rule could be about the program of an execution that
	// none is about, were its arguments others: these are looked at once more
	// then, when the program begins (ptrace(2)). The attempt has none, and is Cut.
	// It must ask no human. nil says so of every program.
	About func(event.Attempt) bool

	// Carry says why a path of the host's, absolute and without links, is not
	// changed from inside even when a human allows it; nil error for what may be.
	// op is one of write, mkdir, unlink, rename, chmod and truncate. It is called
	// from several goroutines. nil lets nothing be changed. See Outside.
	Carry func(op, path string) error

	// HiddenByView says of a path that is missing in a private tree whether the host has
	// it there, or could. A look-up of such a path is an event; nothing else depends on
	// it. nil says so of none.
	HiddenByView func(path string) bool

	// Asked reports whether a change of a path in a private tree is one of the host to
	// the rules of consent: they judge it, and where a human allows it, it is made on the
	// host. It is called from several goroutines. nil reports so of none.
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
