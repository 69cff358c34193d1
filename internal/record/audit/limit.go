package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Limits of a record, in bytes unless stated otherwise: what is longer is cut,
// and the details give its length and its hash.
const (
	maxText   = 8 << 10  // of a string: twice the longest path
	maxArgv   = 64 << 10 // of all arguments
	maxArgs   = 1024     // arguments
	maxDetail = 64 << 10 // of the values of all details
)

// cutPrefix begins the key of a detail about a cut. Its value is the length of
// the whole in bytes and its SHA-256.
const cutPrefix = "cut."

// limiter cuts an event. It copies what the event shares with its sender.
type limiter struct {
	e      *event.Event
	copied bool // e.Detail is ours
}

// limit cuts the parts of e that are too long to be recorded.
func limit(e *event.Event) {
	l := limiter{e: e}
	sensor := string(e.Sensor)
	l.text("sensor", &sensor)
	e.Sensor = event.Sensor(sensor)
	for _, t := range [...]struct {
		name string
		s    *string
	}{
		{"action", &e.Action}, {"object", &e.Object}, {"resolved", &e.Resolved}, {"layer", &e.Layer}, {"rule", &e.Rule}, {"error", &e.Error},
		{"executable", &e.Process.Executable}, {"sha256", &e.Process.SHA256}, {"cwd", &e.Process.Cwd},
	} {
		l.text(t.name, t.s)
	}
	l.details()
	l.argv()
}

func (l *limiter) text(name string, s *string) {
	if len(*s) > maxText {
		l.noteCut(name, strconv.Itoa(len(*s)), sum(*s))
		*s = text.Head(*s, maxText)
	}
}

// noteCut adds the detail about a cut of name.
func (l *limiter) noteCut(name, length, hash string) {
	if !l.copied {
		l.e.Detail = maps.Clone(l.e.Detail)
		l.copied = true
	}
	if l.e.Detail == nil {
		l.e.Detail = map[string]string{}
	}
	l.e.Detail[cutPrefix+name] = length + " " + hash
}

func (l *limiter) details() {
	total, long := 0, false
	for _, v := range l.e.Detail {
		total += len(v)
		long = long || len(v) > maxText
	}
	if !long && total <= maxDetail {
		return
	}
	left := maxDetail
	for _, k := range slices.Sorted(maps.Keys(l.e.Detail)) {
		v := l.e.Detail[k]
		if keep := text.Head(v, min(maxText, left)); len(keep) < len(v) {
			l.noteCut("detail."+k, strconv.Itoa(len(v)), sum(v))
			l.e.Detail[k] = keep
		}
		left -= len(l.e.Detail[k])
	}
}

func (l *limiter) argv() {
	argv := l.e.Process.Argv
	total, long := 0, false
	for _, a := range argv {
		total += len(a)
		long = long || len(a) > maxText
	}
	if !long && total <= maxArgv && len(argv) <= maxArgs {
		return
	}
	kept := make([]string, 0, min(len(argv), maxArgs))
	left := maxArgv
	for i, a := range argv {
		if i == maxArgs || left <= 0 {
			break
		}
		keep := text.Head(a, min(maxText, left))
		if len(keep) < len(a) {
			l.noteCut("argv."+strconv.Itoa(i), strconv.Itoa(len(a)), sum(a))
		}
		kept = append(kept, keep)
		left -= len(keep)
	}
	if len(kept) < len(argv) {
		h := sha256.New()
		for _, a := range argv {
			h.Write([]byte(a))
			h.Write([]byte{0})
		}
		l.noteCut("argv", strconv.Itoa(len(argv)), hex.EncodeToString(h.Sum(nil)))
	}
	l.e.Process.Argv = kept
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
