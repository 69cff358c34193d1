package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

// The kinds of JSON documents that this package writes.
const (
	kindRun      = "run"
	kindBaseline = "baseline"
	kindChanges  = "changes"
	kindMatrix   = "matrix"
	kindKill     = "kill"
)

// Limits on input: a baseline is a file in a repository, which anyone may have
// changed.
const (
	largest  = 64 << 20 // bytes
	mostRows = 100_000
)

// ErrSchema is wrapped by the readers for a document of another version than this
// package's.
var ErrSchema = errors.New("another version of the format")

// JSON writes r, its rows by class and ID.
func JSON(w io.Writer, r Run) error {
	r.Schema, r.Kind, r.Rows, r.Started = Schema, kindRun, r.sorted(), moment(r.Started)
	for i := range r.Rows {
		r.Rows[i].Verdict = r.Rows[i].judged()
	}
	return writeJSON(w, r)
}

// moment is a time for JSON. UTC keeps the machine's location private, and the
// measurements are no more exact than a millisecond.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// writeJSON writes v on many lines. Invisible characters are escaped, so that the
// output is harmless on a terminal.
func writeJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding a report: %w", err)
	}
	_, err = w.Write(append(visible(b), '\n'))
	return err
}

// visible escapes the invisible characters of a JSON text; only its strings can
// contain any.
func visible(b []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && text.Hidden(r) }
	if !bytes.ContainsFunc(b, hidden) {
		return b
	}
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case !hidden(r):
			out = append(out, b[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	return out
}

// ReadJSON reads only what JSON wrote: an unknown field, another version
// (ErrSchema), another kind of document, or more than 64 MiB is an error.
func ReadJSON(in io.Reader) (Run, error) {
	r, err := readRun(in)
	if err == nil && r.Kind != kindRun {
		err = fmt.Errorf("it is of kind %q, not %q", r.Kind, kindRun)
	}
	if err != nil {
		return Run{}, fmt.Errorf("reading a run: %w", err)
	}
	return r, nil
}

// readRun reads a run or a baseline.
func readRun(in io.Reader) (Run, error) {
	var r Run
	if err := readDocument(in, &r, kindRun, kindBaseline); err != nil {
		return r, err
	}
	return r, r.check()
}

// readDocument reads a document of one of these kinds.
func readDocument(in io.Reader, into any, kinds ...string) error {
	b, err := io.ReadAll(io.LimitReader(in, largest+1))
	switch {
	case err != nil:
		return err
	case len(b) > largest:
		return fmt.Errorf("it is larger than %d MiB", largest>>20)
	}
	// The version is checked first: the fields of a later one cannot be judged
	// here.
	var head struct {
		Schema int    `json:"schema"`
		Kind   string `json:"kind"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	if head.Schema != Schema {
		return fmt.Errorf("%w: it has %d, this program reads %d", ErrSchema, head.Schema, Schema)
	}
	if !slices.Contains(kinds, head.Kind) {
		return fmt.Errorf("it is of kind %.40q", head.Kind)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// check finds values that a run cannot have.
func (r Run) check() error {
	if len(r.Rows) > mostRows {
		return fmt.Errorf("it has %d rows, more than %d", len(r.Rows), mostRows)
	}
	known := []string{Held, Escaped, Inconclusive, Residual, Unseen}
	for i, row := range r.Rows {
		switch {
		case row.ID == "":
			return fmt.Errorf("row %d has no ID", i+1)
		case !slices.Contains(known, row.Verdict):
			return fmt.Errorf("row %.40q: %.40q is not a verdict; known: %s", row.ID, row.Verdict, strings.Join(known, ", "))
		}
	}
	return nil
}
