package audit

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Verdict is the result of verifying a log.
type Verdict int

// The zero value is Unverifiable, so that a forgotten assignment vouches for
// nothing. What is found decides in the order Tampered, Unverifiable, Gaps,
// Partial, Complete.
const (
	Unverifiable Verdict = iota // signed by an unknown key: its writer may have invented it
	Tampered                    // something was altered, removed, added or put elsewhere
	Gaps                        // what is there is as it was written, but something is missing
	Partial                     // every event that a sensor had is there, but something happened unseen by all
	Complete                    // every sensor was there for the whole run, and every event of each is there
)

func (v Verdict) String() string {
	return [...]string{"UNVERIFIABLE", "TAMPERED", "GAPS", "PARTIAL", "COMPLETE"}[v]
}

// MarshalText writes a verdict as String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// rank orders verdicts: the log gets the highest one of all problems.
func (v Verdict) rank() int { return [...]int{3, 4, 2, 1, 0}[v] }

// VerifyOptions say what a log is verified against.
type VerifyOptions struct {
	Session  string   // that the log must be of; "" for any
	Keys     string   // directory of public keys; "" is "keys" beside the directory of the log
	Trust    []string // public keys besides, as PublicKey.Text
	Heads    string   // directory of heads; "" is "heads" beside the directory of the log
	Notes    [][]byte // checkpoints that anchors kept; a checkpoint of another session is a problem
	Anchored bool     // Notes are all that an anchor kept of this log: if there are none, it proves nothing
	Workers  int      // goroutines; 0 for as many as there are processors
}

// Problem is one thing that is not as it should be.
type Problem struct {
	Verdict Verdict `json:"verdict"`          // the verdict that it leads to
	Seq     uint64  `json:"seq,omitempty"`    // of the record, by its place; 0 when it is not about one
	Line    int     `json:"line,omitempty"`   // from 1; 0 likewise
	Offset  int64   `json:"offset,omitempty"` // of the line in the file, in bytes
	What    string  `json:"what"`
}

// String is as in "record 7 (line 7, byte 2100): …".
func (p Problem) String() string {
	switch {
	case p.Line == 0:
		return p.What
	case p.Seq == 0:
		return fmt.Sprintf("line %d (byte %d): %s", p.Line, p.Offset, p.What)
	}
	return fmt.Sprintf("record %d (line %d, byte %d): %s", p.Seq, p.Line, p.Offset, p.What)
}

// maxProblems is how many a report names; Report.More counts the others.
const maxProblems = 100

// Count is how many events a sensor had, and what became of them.
type Count struct {
	Total      uint64 `json:"total"`                // as the end of the session says; else the highest number
	Standing   uint64 `json:"standing"`             // that are in the log
	Summarised uint64 `json:"summarised,omitempty"` // only counted, by a record.cut
	Dropped    uint64 `json:"dropped,omitempty"`    // lost, by a record.drop
	Missing    uint64 `json:"missing,omitempty"`    // of which nothing is known
}

// Report is the result of a verification.
type Report struct {
	Session     string           `json:"session"`
	Path        string           `json:"path"`
	Verdict     Verdict          `json:"verdict"`
	Open        bool             `json:"running,omitempty"` // the run is in progress: the verdict is on what is written so far
	Lines       int              `json:"lines"`
	Checkpoints int              `json:"-"`
	Signed      uint64           `json:"signed"`             // the last record that a signature by a known key covers
	Head        string           `json:"head"`               // SHA-256 of the last line, hex
	Keys        []string         `json:"keys,omitempty"`     // hashes of the keys that signed, those that are not known too
	Sensors     map[string]Count `json:"sensors,omitempty"`  // by name
	Unseen      []Unseen         `json:"unseen,omitempty"`   // what the sensors of the run did not see
	Problems    []Problem        `json:"problems,omitempty"` // in the order of the log; then those of the whole
	More        int              `json:"more,omitempty"`     // problems that are not named
	Notes       []string         `json:"notes,omitempty"`    // what is worth knowing and changes no verdict
}

// Verify checks the log at path: the form of every line, the chain, the
// signatures, the checkpoints kept outside, and that no event is missing. An
// error means that it could not be read, so nothing is known.
func Verify(ctx context.Context, path string, o VerifyOptions) (Report, error) {
	return verify(ctx, path, o, nil)
}

// ReadVerified verifies a log like Verify, and calls each with its events, in
// order and one by one: the report is about these events. It stops at the first
// error of each. A *DamageError means that some lines are not records; it comes
// with a report nevertheless.
func ReadVerified(ctx context.Context, path string, o VerifyOptions, each func(*Record) error) (Report, error) {
	r := reader{each: each}
	report, err := verify(ctx, path, o, &r)
	if err == nil {
		err = r.finish(report.Open)
	}
	return report, err
}

// verify verifies a log, and passes its content to r, unless that is nil.
func verify(ctx context.Context, path string, o VerifyOptions, r *reader) (Report, error) {
	o.Keys, o.Heads = defaultDirs(filepath.Dir(path), o.Keys, o.Heads)
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	keys, notes := knownKeys(o)
	v := newVerifier(keys)
	v.report.Path = path
	for _, n := range notes {
		v.note(n)
	}
	witnesses := v.readWitnesses(path, o)
	f, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("verifying a record: %w", err)
	}
	defer f.Close()
	v.report.Open = locked(f)
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return Report{}, fmt.Errorf("verifying a record: %w", err)
	}
	if err := v.read(ctx, io.LimitReader(f, size), o.Workers, r); err != nil {
		return Report{}, fmt.Errorf("verifying a record: %w", err)
	}
	v.checkSession(o.Session)
	return v.judge(witnesses), nil
}

// read goes through the lines of a log.
func (v *verifier) read(ctx context.Context, log io.Reader, workers int, r *reader) error {
	check := func(b *block[part]) error { return checkBlock(b, v.keys, r != nil) }
	return pipeline(ctx, log, workers, check, func(b *block[part]) error {
		v.addBlock(b)
		if r == nil {
			return nil
		}
		return r.passOn(&b.result.blockScan)
	})
}

// judge draws the conclusions from the whole log.
func (v *verifier) judge(witnesses []witness) Report {
	v.checkEnd()
	for _, w := range witnesses {
		v.checkWitness(w)
	}
	v.checkCounts()
	v.checkSensors()
	return v.finish()
}

// knownKeys collects the trusted keys, and what is wrong with others.
func knownKeys(o VerifyOptions) (note.Verifiers, []string) {
	var notes []string
	var list []note.Verifier
	seen := map[uint32]bool{}
	add := func(text string) error {
		v, err := note.NewVerifier(strings.TrimSpace(text))
		if err == nil && !seen[v.KeyHash()] { // the same key twice would be ambiguous
			seen[v.KeyHash()] = true
			list = append(list, v)
		}
		return err
	}
	paths, err := filesWithSuffix(o.Keys, publicSuffix)
	if err != nil {
		notes = append(notes, "the public keys cannot be read: "+err.Error())
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil {
			err = add(string(text))
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("the public key %s cannot be used: %v", path, err))
		}
	}
	for _, text := range o.Trust {
		if err := add(text); err != nil {
			notes = append(notes, fmt.Sprintf("the public key %q cannot be used: %v", text, err))
		}
	}
	return note.VerifierList(list...), notes
}
