package credentials

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Config is what a Broker works with.
type Config struct {
	Session     string
	Credentials []policy.Credential
	Grants      string     // directory of grants and revocations; "" for none
	Sink        event.Sink // gets every use before the secret is given out; nil if no records are kept
	Writable    []string   // trees that the command may change: no source is read or executed from there

	// Gate judges each use by the rules of consent, before a secret is given
	// out; nil for none. A use that it leaves open waits. Wants reports whether
	// any of its rules can be about a kind; nil means that each may be.
	Gate  event.Gate
	Wants func(event.Kind) bool

	// Held is called with every secret value before it is used, and the name of its
	// credential, so that the value is kept out of what is written; nil if nothing is
	// written. It may be called several times at once, and more than once for a value.
	Held func(name, value string)

	Now     func() time.Time            // nil for the machine's clock
	Env     func(string) (string, bool) // variables of the supervisor; nil for its environment
	Unset   func(string) error          // removes a variable that holds a secret, so that nothing inherits it; nil to keep them
	Environ []string                    // of commands that are sources; nil for the supervisor's environment
	Client  *http.Client                // speaks to Vault, GitHub and token endpoints; nil for one that verifies TLS, with the proxy that the environment names

	// Roots are the authorities that a service is verified with, unless VAULT_CACERT and the
	// like name others; nil for those of the system. It is called at the first request.
	Roots func() (*x509.CertPool, error)
}

// Broker holds the credentials of one session.
type Broker struct {
	config  Config
	holders map[string]*holder
	order   []*holder // as in Config.Credentials
	detect  *detector
	grants  Store

	life     context.Context // ends with Close
	end      context.CancelFunc
	revoking sync.WaitGroup // revocations upstream that are in progress
	held     chan struct{}  // as many uses as may wait for a human

	mu     sync.Mutex
	closed bool
	denied map[string]denials             // by reason
	issued map[[sha256.Size]byte]struct{} // hashes of what follows
	given  []func() []byte                // the values; functions, because fmt shows what a pointer points to
}

// Format writes only what may be seen of a broker, for any verb.
func (b *Broker) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "broker of %d credentials", len(b.order))
}

// New makes the placeholders of a session and reads the secrets that are in the
// environment. It fetches nothing: a source that fails does so at the first use.
func New(c Config) (*Broker, error) {
	// With GODEBUG=http2debug net/http writes each header to this log,
	// including those that authenticate. Nothing of this program writes to it.
	log.SetOutput(io.Discard)
	if c.Now == nil {
		// Without the monotonic clock, which stops while the machine sleeps.
		c.Now = func() time.Time { return time.Now().Round(0) }
	}
	if c.Env == nil {
		c.Env = os.LookupEnv
	}
	if c.Environ == nil {
		c.Environ = os.Environ()
	}
	b := &Broker{config: c, holders: map[string]*holder{}, denied: map[string]denials{}, grants: Store{Dir: c.Grants, Now: c.Now}, issued: map[[sha256.Size]byte]struct{}{}, held: make(chan struct{}, heldMost)}
	b.life, b.end = context.WithCancel(context.Background())
	variables := variablesOf(c.Credentials)
	var needles []needle
	for _, cred := range c.Credentials {
		if b.holders[cred.Name] != nil {
			return nil, &Error{Credential: cred.Name, Reason: "it is defined twice"}
		}
		h, err := b.newHolder(cred, variables)
		if err != nil {
			return nil, err
		}
		if s, ok := h.source.(*envSource); ok && s.err == nil {
			h.redact(s.got().secret())
		}
		b.holders[cred.Name], b.order = h, append(b.order, h)
		needles = append(needles, h.placeholders.needles(cred.Name)...)
	}
	b.detect = newDetector(needles)
	for _, name := range variables {
		if value, ok := c.Env(name); ok {
			c.reportHeld(name, value)
		}
	}
	for _, name := range variables {
		if c.Unset == nil {
			break
		}
		if err := c.Unset(name); err != nil {
			return nil, fmt.Errorf("removing %s from the environment: %w", name, err)
		}
	}
	return b, nil
}

// reportHeld passes a secret to Held.
func (c Config) reportHeld(name, value string) {
	if c.Held != nil && value != "" {
		c.Held(name, value)
	}
}

// Bound lists what may be used for a destination.
func (b *Broker) Bound(name string, port int) []Binding {
	var out []Binding
	for _, h := range b.order {
		if h.goesTo(name, port) {
			out = append(out, h.binding())
		}
	}
	return out
}

// Detect names the credentials whose placeholder is in data: as it is,
// percent-encoded up to twice, or in base64.
func (b *Broker) Detect(data []byte) []string { return b.detect.find(data) }

// Placeholders returns the variables inside that hold placeholders.
func (b *Broker) Placeholders() []policy.Env {
	var out []policy.Env
	for _, h := range b.order {
		out = append(out, h.variables()...)
	}
	return append(out, b.texts()...)
}

// Issued returns every secret value that was given out so far.
func (b *Broker) Issued() [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([][]byte, len(b.given))
	for i, v := range b.given {
		out[i] = bytes.Clone(v())
	}
	return out
}

// Open returns the secret for one request, and counts it. The use is recorded
// first: without a record there is no secret. If a rule of consent asks about
// the use, Open waits for the answer.
func (b *Broker) Open(ctx context.Context, credential string, use Use) (Secret, error) {
	h := b.holders[credential]
	if h == nil {
		return Secret{}, &Error{Credential: credential, Reason: "there is no such credential in this run"}
	}
	use = withoutQuery(use)
	ruling, err := b.ask(ctx, h, use)
	var secret Secret
	if err == nil {
		secret, err = h.open(ctx, use, ruling)
	}
	if err != nil {
		b.refused(h, use, err)
		return Secret{}, err
	}
	return secret, nil
}

// refused records a use that did not happen. Nothing depends on the record:
// there is no secret either way.
func (b *Broker) refused(h *holder, use Use, err error) {
	if b.config.Sink == nil || errors.Is(err, errUnrecorded) || b.tooOften(err.Error()) {
		return
	}
	e := b.event(h, use)
	e.Verdict = event.Denied
	e.Detail["reason"] = err.Error()
	var by *Error
	if errors.As(err, &by) && by.consent {
		e.Layer, e.Rule = event.LayerConsent, by.rule
	}
	b.config.Sink.Emit(e)
}

const (
	denialsMinute = 60   // records of the same refusal
	denialsMost   = 1024 // different refusals that are counted; later ones are not recorded
)

// denials is how often a refusal was recorded in the minute that began at a time.
type denials struct {
	since time.Time
	n     int
}

// tooOften reports whether a refusal was recorded often enough. A refused
// program must not be able to fill the record of the run.
func (b *Broker) tooOften(reason string) bool {
	now := b.config.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	d, known := b.denied[reason]
	if !known && len(b.denied) >= denialsMost {
		return true
	}
	if now.Sub(d.since) >= time.Minute {
		d = denials{since: now}
	}
	d.n++
	b.denied[reason] = d
	return d.n > denialsMinute
}

// record records a use that is about to happen.
func (b *Broker) record(h *holder, use Use, l *lease, left string) error {
	if b.config.Sink == nil {
		return nil
	}
	e := b.event(h, use)
	e.Verdict = event.Allowed
	e.Detail["lease"], e.Detail["left"], e.Detail["hash"] = l.id, left, l.hash
	if err := b.config.Sink.Emit(e); err != nil {
		return &Error{Credential: h.cred.Name, Reason: "the use could not be recorded", cause: errors.Join(errUnrecorded, err)}
	}
	return nil
}

// errUnrecorded means that the record itself failed.
var errUnrecorded = errors.New("no secret is given without a record")

func (b *Broker) event(h *holder, use Use) event.Event {
	return event.Event{
		Time: b.config.Now(), Session: b.config.Session,
		Action: event.CredentialUse, Object: fmt.Sprintf("%s:%d", use.Name, use.Port), Rule: h.cred.Origin.String(),
		Detail: map[string]string{"credential": h.cred.Name, "method": use.Method, "path": use.Path},
	}
}

// remember keeps a secret that must not come back in an answer. It returns
// false after Close, when nothing may be given out any more.
func (b *Broker) remember(s Secret) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	for _, v := range sensitive(s) {
		sum := sha256.Sum256([]byte(v))
		if _, known := b.issued[sum]; !known {
			b.issued[sum] = struct{}{}
			data := []byte(v)
			b.given = append(b.given, func() []byte { return data })
		}
	}
	return true
}

func (b *Broker) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

// closeTime is how long revocations upstream may take at the end of a session:
// the user waits for it.
const closeTime = 10 * time.Second

// Close revokes upstream what was made for this session and can be revoked, and forgets
// every secret. It returns what failed; nothing is given out any more either way.
func (b *Broker) Close() error {
	b.mu.Lock()
	done := b.closed
	b.closed = true
	b.mu.Unlock()
	if done {
		return nil
	}
	b.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	errs := make([]error, len(b.order))
	var wg sync.WaitGroup
	for i, h := range b.order {
		wg.Go(func() { errs[i] = h.close(ctx) })
	}
	wg.Wait()
	b.revoking.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, v := range b.given {
		clear(v())
	}
	b.given, b.issued = nil, nil
	return errors.Join(errs...)
}

// Error says why there is no secret. It contains nothing that a source printed.
type Error struct {
	Credential string
	Reason     string // in words
	hint       string
	cause      error
	consent    bool   // a rule of consent, or a human, refused
	rule       string // of consent, as file:line
}

func (e *Error) Error() string {
	text := "credential " + e.Credential + ": " + e.Reason
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.cause }

// Hint is what to do next.
func (e *Error) Hint() string {
	if e.hint != "" {
		return e.hint
	}
	return "see what there is with: holdfast grant list"
}

// discard reads a little of an answer that is not needed, so that the
// connection can be used again.
func discard(body io.ReadCloser) {
	io.CopyN(io.Discard, body, 4<<10)
	body.Close()
}
