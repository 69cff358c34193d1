//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Recorder is a target that keeps a record of what is done in it.
type Recorder interface {
	// KeepsRecord reports whether it does so when called like this.
	KeepsRecord() bool
	// Logs are the files that it wrote in w, one line of JSON per attempt.
	Logs(w *World) []string
	// Record asks the target itself about the last run in w.
	Record(w *World) (Record, error)
	// Story is that run as the target tells it, as data: see [calls].
	Story(w *World) ([]byte, error)
	// Reader is the path of the program that shows the records to a user.
	Reader() string
	// Recording returns the target called to record at that level.
	Recording(level string) Target
}

// stateOfHoldfast is where Holdfast keeps its records. Rows put files there for
// every target.
const stateOfHoldfast = "H/.local/state/holdfast"

// Record is what a target has kept of its last run. The zero value is for a
// target that keeps none.
type Record struct {
	Path    string // one line of JSON per attempt; "" for none
	Verdict string // of the target's own check: COMPLETE if nothing is missing or altered
	Why     string // what else that check printed
	Shown   []byte // as the target shows it on a terminal
	Size    int64  // bytes of everything that the target keeps
}

// Attempt is one line of a record. As something that a row looks for, an empty
// field matches anything.
type Attempt struct {
	Action, Object, Verdict, Layer, Error string

	// Resolved is the object without the spelling that was used for it; "" if there is
	// no difference. Either matches.
	Resolved string

	Process struct {
		Argv       []string
		Executable string
		Exec       int
		ParentExec int `json:"parent_exec"`
	}
	Detail map[string]string

	// Arg must be among the arguments of the process.
	Arg string `json:"-"`

	// ByStat is set, in something that a row looks for, if only stat(2) asks for it:
	// see [byStat].
	ByStat bool `json:"-"`
}

func (a Attempt) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{a.Verdict, a.Action, fmt.Sprintf("%.80q", a.Object), a.Layer, a.Error, a.Arg}, " ")), " ")
}

func (a Attempt) matches(got Attempt) bool {
	if a.Object == got.Resolved {
		got.Object = got.Resolved
	}
	if a.Verdict == "denied" && (a.Layer == "" || a.Layer == "view") && got.Detail["kept"] == "private" {
		got.Verdict, got.Layer = a.Verdict, a.Layer // a private directory took it: the place itself was not reached
		if a.Object == got.Detail["to"] || a.Object == got.Detail["to_resolved"] {
			got.Object = a.Object // its name there
		}
	}
	prefix, open := strings.CutSuffix(a.Object, "*")
	if open && strings.HasPrefix(got.Object, prefix) {
		a.Object = got.Object
	}
	for _, f := range [][2]string{{a.Action, got.Action}, {a.Object, got.Object}, {a.Verdict, got.Verdict}, {a.Layer, got.Layer}, {a.Error, got.Error}} {
		if f[0] != "" && f[0] != f[1] {
			return false
		}
	}
	if a.Arg == "" {
		return true
	}
	for _, arg := range got.Process.Argv {
		if arg == a.Arg {
			return true
		}
	}
	return false
}

// mark returns a text that every line matching a contains, so that a whole record
// need not be decoded for a few lines. It returns nil for a text that JSON may
// escape.
func (a Attempt) mark() []byte {
	object := strings.TrimSuffix(a.Object, "*")
	for _, c := range []byte(object) {
		if !strings.ContainsRune("/._-:@=+,", rune(c)) && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return nil
		}
	}
	return []byte(object)
}

// each reads the record line by line.
func (r Record) each(f func(line []byte) error) error {
	if r.Path == "" {
		return nil
	}
	file, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// missing returns the wants that the record does not have.
func (r Record) missing(wants []Attempt) (absent []Attempt, err error) {
	found := make([]bool, len(wants))
	marks := make([][]byte, len(wants))
	for i, want := range wants {
		marks[i] = want.mark()
	}
	err = r.each(func(line []byte) error {
		var got Attempt
		read := false
		for i, want := range wants {
			if !bytes.Contains(line, []byte(want.Action)) || !bytes.Contains(line, marks[i]) {
				continue
			}
			if !read {
				if err := json.Unmarshal(line, &got); err != nil {
					return fmt.Errorf("a line is not JSON: %w", err)
				}
				read = true
			}
			if want.matches(got) {
				found[i] = true
			}
		}
		return nil
	})
	for i, want := range wants {
		if !found[i] {
			absent = append(absent, want)
		}
	}
	return absent, err
}

// record returns what the target kept of the last run.
func (w *World) record() (Record, error) {
	if t, ok := w.target.(Recorder); ok {
		return t.Record(w)
	}
	// Without a sandbox the row must be able to fail. Another sandbox may be good and
	// keep no record.
	_, bare := w.target.(None)
	w.recordless = !bare
	return Record{Why: "the target keeps no record"}, nil
}

// hostLacks makes a record PARTIAL because of the host, not because of what
// happened inside.
const hostLacks = "/dev/fuse cannot be opened"

// whole demands a record that was not altered and lacks nothing that this host
// could have shown.
func whole(w *World, _ Observation) []string {
	rec, err := w.record()
	switch {
	case err != nil:
		return []string{"the record cannot be read: " + err.Error()}
	case rec.Verdict == "PARTIAL":
		return rec.problems(hostLacks)
	case rec.Verdict != "COMPLETE":
		return []string{fmt.Sprintf("the record is %q: %s", rec.Verdict, rec.Why)}
	}
	return nil
}

// problems returns those that the check named, without those that contain one of
// the texts.
func (r Record) problems(but ...string) (out []string) {
	_, problems, _ := strings.Cut(r.Why, "\n")
	for line := range strings.Lines(problems) {
		if !slices.ContainsFunc(but, func(b string) bool { return strings.Contains(line, b) }) {
			out = append(out, fmt.Sprintf("the record is %q: %s", r.Verdict, strings.TrimSpace(line)))
		}
	}
	return out
}

// summarised demands a record that was not altered and lacks nothing but what it
// declares as only counted.
func summarised(w *World, o Observation) []string {
	rec, err := w.record()
	if err != nil || rec.Verdict != "GAPS" && rec.Verdict != "PARTIAL" {
		return whole(w, o)
	}
	return rec.problems("stand summarised", "some are only counted", hostLacks)
}

// recorded demands that a whole record has each of the attempts, which are
// templates.
func recorded(wants ...Attempt) func(*World, Observation) []string {
	return joinOracles(whole, recordHas(wants...))
}

// unlessAbsent demands that the record has an attempt if it left a file.
func unlessAbsent(file string, want Attempt) func(*World, Observation) []string {
	return func(w *World, o Observation) []string {
		if !exists(w.Path(file)) {
			return nil
		}
		return recordHas(want)(w, o)
	}
}

// notRecorded begins the effect that an attempt is not in the record.
const notRecorded = "nothing in the record says: "

// recordHas demands that the record has each of the attempts.
func recordHas(wants ...Attempt) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		want := make([]Attempt, len(wants))
		for i, a := range wants {
			a.Object, a.Arg = w.Path(a.Object), w.Path(a.Arg)
			want[i] = a
		}
		absent, err := rec.missing(want)
		if err != nil {
			return append(out, "the record: "+err.Error())
		}
		for _, a := range absent {
			out = append(out, notRecorded+a.String())
		}
		return out
	}
}
