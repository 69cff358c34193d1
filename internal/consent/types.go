package consent

import (
	"errors"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Scope is how far an answer reaches.
type Scope string

// The scopes.
const (
	Once    Scope = "once"    // this attempt and no other
	Session Scope = "session" // the same until the run ends
	For     Scope = "for"     // the same for a time
)

// Asker is a program in the chain of those that ask.
type Asker struct {
	PID        int
	Executable string
	Argv       []string
}

// Request is what waits for an answer.
type Request struct {
	ID       string // short, of letters and digits; unique in the session
	Nonce    string // of this request alone: an answer repeats it
	Session  string
	Asked    time.Time
	Expires  time.Time // then it is denied
	Attempt  event.Attempt
	Chain    []Asker // the asking programs, the nearest first
	Rule     string  // that asks, as file:line
	Reason   string  // of that rule, in words
	Digest   string  // HMAC-SHA-256 in hex of exactly what would happen
	Count    int     // how many identical attempts wait
	Writable bool    // what runs inside may write the program or the script that would be executed
}

// Limited returns why r can be allowed only once; "" if it can be for longer.
func (r Request) Limited() string { return onceReason(r.Attempt) }

// Answer begins the answer to r: whether, how far and by whom is still to be set.
func (r Request) Answer() Answer {
	return Answer{Session: r.Session, Request: r.ID, Nonce: r.Nonce, Digest: r.Digest}
}

// Answer is a human's decision on a request, or takes a grant back.
type Answer struct {
	Session string
	Request string // its ID, with its Nonce and Digest
	Nonce   string
	Digest  string
	Grant   string // instead of these three: the grant that Revoke takes back

	Allow     bool
	Scope     Scope         // if Allow is true
	For       time.Duration // of scope for: whole seconds, up to Longest
	Directory bool          // of a file: everything below its directory, see Words
	Uses      int           // how often; 0: of scope once 1, else without limit
	Reason    string
	By        string // who answers
	Via       string // how it came, such as terminal
	At        time.Time
}

// Longest is how long an answer of scope for may hold.
const Longest = 24 * time.Hour

// Signed is an answer with the signature of an approver.
type Signed struct {
	Answer    Answer
	Key       []byte // public, of ed25519
	Signature []byte
}

// Grant is a live approval.
type Grant struct {
	ID      string
	Session string
	Covers  Covers
	Rule    string // that asked
	Request string // that was answered
	Scope   Scope
	Begun   time.Time
	Expires time.Time // zero: with the run
	Uses    int       // 0: without limit
	Used    int       // not signed
	By, Via string
	Reason  string

	Signature []byte // by the queue's key, over all the fields but Used
}

// Errors of Answer and Revoke, for programs; the text says more.
var (
	ErrForged   = errors.New("it is not signed by an approver of this run")
	ErrUnknown  = errors.New("nothing open has that name")
	ErrAnswered = errors.New("it was already answered")
	ErrMismatch = errors.New("it is an answer to something else")
	ErrInvalid  = errors.New("this answer is not possible")
	ErrRecord   = errors.New("it could not be recorded, and was denied")
	ErrClosed   = errors.New("the run is over")
)
