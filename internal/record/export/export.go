package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Options say what the events do not say.
type Options struct {
	Host    string // name of the recorded machine, if the record does not say it; "" if unknown
	Version string // of Holdfast
}

// Writer writes events in one format. It is for one goroutine. Memory does not
// grow with the number of events.
type Writer interface {
	// Write adds an event, whose Detail and Argv the caller may change afterwards.
	// After an error the writer writes nothing more.
	Write(event.Event) error
	// WriteRecord adds an event with its line of the log, without the line's
	// end, so that a reader of the export can find it there and check it.
	WriteRecord(e event.Event, line []byte) error
	// Close writes what is held back. It does not close the underlying writer.
	Close() error
}

var formats = map[string]func(io.Writer, Options) Writer{
	"ocsf": newOCSF,
	"otlp": newOTLP,
}

// Formats lists the names that New takes.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// New begins an export to w, in lines of JSON: "ocsf" writes one event per
// line, "otlp" one request of up to 512 log records per line.
func New(format string, w io.Writer, o Options) (Writer, error) {
	begin, ok := formats[format]
	if !ok {
		return nil, fmt.Errorf("%q is not a format: use one of %s", format, strings.Join(Formats(), ", "))
	}
	return begin(w, o), nil
}

// sum is the SHA-256 of a record's line, in hex; "" for no line.
func sum(line []byte) string {
	if line == nil {
		return ""
	}
	h := sha256.Sum256(line)
	return hex.EncodeToString(h[:])
}

// UID identifies an event among those of all sessions: by its place in the log,
// or by its sensor's count if it has none.
func UID(e event.Event) string {
	if e.Seq > 0 {
		return e.Session + ":" + strconv.FormatUint(e.Seq, 10)
	}
	return e.Session + ":" + string(e.Sensor) + ":" + strconv.FormatUint(e.N, 10)
}

// message is an event in one line of text.
func message(e event.Event) string {
	b := make([]byte, 0, len(e.Action)+len(e.Object)+24)
	b = append(b, e.Action...)
	if e.Verdict != event.Unknown {
		b = append(append(b, ' '), e.Verdict.String()...)
	}
	if e.Object != "" {
		b = append(append(b, ": "...), e.Object...)
	}
	return string(b)
}

// execsKept bounds how many programs an export remembers, to name the process
// of an event that has only its number.
const execsKept = 4096

// programs remembers proc.exec events, for the events after them.
type programs struct {
	session string
	host    string
	of      map[uint64]string // executable by Exec
	order   []uint64          // as they came, a ring once it is full
	next    int
}

// remember keeps the host of the session and the executable of a program.
func (p *programs) remember(e event.Event) {
	if e.Session != p.session {
		*p = programs{session: e.Session, of: map[uint64]string{}}
	}
	if h := e.Detail["host"]; h != "" && (e.Action == event.RecordBegin || e.Action == event.SessionStart) {
		p.host = h
	}
	if e.Process.Exec == 0 || e.Process.Executable == "" {
		return
	}
	if _, known := p.of[e.Process.Exec]; !known {
		if len(p.order) < execsKept {
			p.order = append(p.order, e.Process.Exec)
		} else {
			delete(p.of, p.order[p.next])
			p.order[p.next] = e.Process.Exec
			p.next = (p.next + 1) % execsKept
		}
	}
	p.of[e.Process.Exec] = e.Process.Executable
}

// executable is the program of a process, from the event or from earlier ones.
func (p *programs) executable(q event.Process) string { return cmp.Or(q.Executable, p.of[q.Exec]) }
