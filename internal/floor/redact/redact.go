package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Redactor masks secrets. It can be used by several goroutines at once.
type Redactor struct {
	key   [32]byte              // of the marks of what may be guessed
	table atomic.Pointer[table] // nil until it is needed

	mu   sync.Mutex
	held []held // guarded by mu
}

// held is a secret that was given to Hold, as it may be written.
type held struct {
	value string
	mark  string
	forms []string
}

// shortest is the fewest bytes of a value that is held: a shorter one is found
// in ordinary texts too.
const shortest = 8

// New returns a Redactor that knows shapes and places and holds nothing.
func New() *Redactor {
	r := &Redactor{}
	rand.Read(r.key[:]) // ends the process when it fails (Go 1.24)
	return r
}

// Hold masks a value from now on, under a name that the mark then has as its
// kind. A value of less than 8 bytes is not held. Of one with several lines each
// long line is held as well. What was held once keeps its name.
func (r *Redactor) Hold(name, value string) {
	if len(value) < shortest {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.held {
		if h.value == value {
			return
		}
	}
	r.held = append(r.held, held{value: value, mark: mark(kindOf(name), value, sum(value))})
	r.table.Store(nil)
}

// current is the table of all that is held. It is made when something is looked
// at: a run begins with many values at once.
func (r *Redactor) current() *table {
	if t := r.table.Load(); t != nil {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.table.Load()
	if t == nil {
		for i, h := range r.held {
			if h.forms == nil {
				r.held[i].forms = formsOf(h.value)
			}
		}
		t = newTable(r.held)
		r.table.Store(t)
	}
	return t
}

// Event returns e without secrets. Strings and maps of e are shared where nothing
// was masked, and never changed.
func (r *Redactor) Event(e event.Event) event.Event {
	t := r.current()
	e.Object = r.mask(t, e.Object)
	e.Resolved = r.mask(t, e.Resolved)
	e.Process.Executable = r.mask(t, e.Process.Executable)
	e.Process.Cwd = r.mask(t, e.Process.Cwd)
	if len(e.Process.Argv) > 0 {
		e.Process.Argv = r.argv(t, e.Process.Argv)
	}
	if len(e.Detail) > 0 {
		e.Detail = r.detail(t, e.Detail)
	}
	return e
}

// String returns s without secrets.
func (r *Redactor) String(s string) string { return r.mask(r.current(), s) }

// Argv returns the arguments of a command without secrets, also those that
// follow a flag for a password.
func (r *Redactor) Argv(argv []string) []string { return r.argv(r.current(), argv) }

func (r *Redactor) mask(t *table, s string) string {
	at := t.next(s, 1)
	if at >= len(s) {
		return s
	}
	return replace(s, r.scan(t, s, at))
}

// mark returns what replaces a secret: its kind, its first letters
// (fewer of a short one) and its hash.
func mark(kind, value, hash string) string {
	var b strings.Builder
	b.WriteString(markBegin)
	b.WriteString(kind)
	b.WriteByte(':')
	for i := range min(4, len(value)/4) {
		if c := value[i]; c > ' ' && c < 0x7f && c != ']' {
			b.WriteByte(c)
		} else {
			b.WriteByte('.')
		}
	}
	b.WriteString("…:")
	b.WriteString(hash)
	b.WriteByte(']')
	return b.String()
}

const (
	markBegin  = "[redacted:"
	markedHash = 8   // letters of the hash in a mark
	markMost   = 128 // bytes of a mark
)

// sum is the beginning of the SHA-256 of a secret that cannot be guessed. It is
// the hash that the broker writes for the same secret.
func sum(value string) string {
	h := sha256.Sum256([]byte(value))
	return hex.EncodeToString(h[:markedHash/2])
}

// guessable is as sum for what a person may have chosen: without the key of this
// run no one can try words against it.
func (r *Redactor) guessable(value string) string {
	h := hmac.New(sha256.New, r.key[:])
	h.Write([]byte(value))
	return hex.EncodeToString(h.Sum(nil)[:markedHash/2])
}

// kindOf makes a name fit for a mark.
func kindOf(name string) string {
	name = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' || c == '/' {
			return c
		}
		return '-'
	}, name)
	if name == "" {
		return "secret"
	}
	return name[:min(len(name), 64)]
}

// isMark returns the end of the mark that begins at s[at:], 0 if there is none.
func isMark(s string, at int) int {
	if !strings.HasPrefix(s[at:], markBegin) {
		return 0
	}
	text := s[at:min(len(s), at+markMost)]
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return 0
	}
	tail := "…:"
	hash := end - markedHash
	if hash < len(markBegin)+len(tail) || text[hash-len(tail):hash] != tail {
		return 0
	}
	for _, c := range []byte(text[hash:end]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return 0
		}
	}
	return at + end + 1
}

func (r *Redactor) detail(t *table, detail map[string]string) map[string]string {
	var out map[string]string
	for key, value := range detail {
		clean := r.mask(t, value)
		if clean == value {
			continue
		}
		if out == nil {
			out = maps.Clone(detail)
		}
		out[key] = clean
	}
	if out == nil {
		return detail
	}
	return out
}
