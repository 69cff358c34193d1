package network

import (
	"context"
	"net"
	"net/netip"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Config is what an Engine works with.
type Config struct {
	Session     string
	Allow       []policy.HostRule
	Doors       boundary.Doors // owned by the engine from New on
	Listeners   []net.Listener // further doors for intercepted connections, whose LocalAddr is the destination, such as a network stack's; owned by the engine
	Packets     Packets        // further name queries; nil for none. Its owner ends it before Close, which waits for that
	Authority   *Authority     // issues certificates where TLS is terminated; nil when no rule needs it
	Credentials Credentials    // nil for none
	NoLogin     []policy.Login // hosts that no rule allows, because the program's credential is missing
	Logins      []policy.Login // token endpoints that are answered here; each is also in a rule of Allow
	Decoys      Decoys         // honeytokens; nil for none
	Sink        event.Sink     // nil for none; an error from it closes the connection that it was about
	Learn       Learn
	Limits      Limits // zero values mean the defaults

	// Gate applies the rules of consent to connections and requests, before anything
	// leaves; nil for none. What it leaves open is held until it answers.
	Gate event.Gate
	// Wants reports whether any of its rules can be about a kind (nil: each may be);
	// Asks whether a human could be asked about a kind at this moment (nil: always). If
	// so, names that no rule knows are answered, so that the connection in question can
	// arrive. Both are called often.
	Wants, Asks func(event.Kind) bool
	// MayConcern reports whether any of them could be about an attempt that is only
	// partly known (nil: one could). It asks no human.
	MayConcern func(event.Attempt) bool
	// Client returns the process that has the socket, inside, whose own address is
	// local and whose peer's is remote; nil if it is not known.
	Client func(local, remote netip.AddrPort) event.Process

	// Lookup resolves a name outside, nil for the host's resolver. The addresses are
	// checked when they are dialled, whatever returned them.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Roots verify upstream servers; nil trusts none.
	Roots *Roots
}

// Learn is what happens to a destination that no rule names.
type Learn int

const (
	Off     Learn = iota // it is refused
	Observe              // names are answered and requests read, so that they can be proposed as rules; nothing leaves
	Through              // as Observe, and it is passed on when its addresses are public
)

// Destination is where a connection goes.
type Destination struct {
	Name string // in normal form; an address literal where the policy names one
	Port int    // 1..65535
	Door Door   // how it arrived
}

// Door is how a connection arrived.
type Door string

// The doors.
const (
	Intercepted Door = "intercepted"
	Connect     Door = "connect" // CONNECT of the explicit proxy
	Forward     Door = "forward" // absolute-form HTTP of the explicit proxy
	Socks       Door = "socks5"
	HostService Door = "host-port"
)

// Refusal is a destination that was refused, with how often.
type Refusal struct {
	Name   string // host name or address, as it was asked for, made printable
	Port   int    // 0 for a name query
	Reason string // in words: "no rule allows it", "port 25 is not allowed", …
	Rule   string // file:line of the rule that came closest; "" for none
	Flag   string // what would allow it, such as "--allow example.org:443"; "" when nothing would
	High   bool   // it looks like an attempt to get around the policy: smuggling, a placeholder on its way elsewhere
	Count  int
}

// Observation is a request that was made, for policy learn.
type Observation struct {
	Name   string
	Port   int
	Kind   policy.HostKind
	Method string // "" where requests were not seen
	Path   string // without the query
	Count  int
}

// Credentials are leases on secrets, as package credentials gives them out.
type Credentials interface {
	// Bound lists what may be used towards a destination.
	Bound(name string, port int) []Binding
	// Detect names the credentials whose placeholder is in b.
	Detect(b []byte) []string
	// Consent asks the rules of consent about one use: about all that a request carries
	// before the first secret is taken, so that none is held meanwhile. The context is
	// for Open, which does not ask again.
	Consent(ctx context.Context, credential string, use Use) (context.Context, event.Ruling, error)
	// Open gives the secret for one request, and counts it. An error says why there is
	// no secret: expired, used up, revoked, or the source failed; it never holds the
	// secret.
	Open(ctx context.Context, credential string, use Use) (Secret, error)
	// Renew answers a request to the token endpoint of a credential's login; nil for one
	// that is no renewal. The answer has only placeholders, or an error.
	Renew(ctx context.Context, credential string, request []byte) (status int, answer []byte)
	// Rejected notes that a request with the secret was answered 401.
	Rejected(credential string)
	// Issued returns every secret value that was given out so far and that must
	// not come back in an answer.
	Issued() [][]byte
}

// What is bound, asked for and given, in the words that the broker knows too.
type (
	Binding = policy.Binding
	Use     = policy.Use
	Secret  = policy.Secret
)

// upstream dials a destination; it checks each address.
type upstream interface {
	Dial(ctx context.Context, d Destination, p Permit) (net.Conn, error)
}

// Limits bound what the inside can make the supervisor hold. Zero means the default in
// limits.go.
type Limits struct {
	Connections int           // open at once; more wait, then are refused
	HeadBytes   int           // of one request's or answer's head
	HeadTime    time.Duration // for a client to send its first bytes or a whole head
	DialTime    time.Duration // for an upstream to accept
	IdleTime    time.Duration // without a byte either way
	Held        int           // connections and requests that wait for a human at once; more are refused
	Queries     int           // name queries a second
	Labels      int           // bytes of a label below a wildcard
	NamesMinute int           // different names a minute below one wildcard
	BytesHour   int           // of different names an hour below one wildcard
}
