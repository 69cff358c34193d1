package audit

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// encoded is the line of an event that is the first of a log.
func encoded(t testing.TB, e event.Event) []byte {
	t.Helper()
	var c encoder
	body, err := c.body(&e)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(`{"seq":1,"prev":"`+zeroHash+`"`), body...)
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("é", maxText) // twice the limit
	many := strings.Split(strings.Repeat("x ", maxArgs*3), " ")
	for _, c := range []struct {
		name  string
		e     event.Event
		cut   map[string]string
		check func(event.Event) bool
	}{
		{"what fits", event.Event{Object: strings.Repeat("a", maxText), Process: event.Process{Argv: []string{strings.Repeat("b", maxText)}}}, nil, nil},
		{"a path", event.Event{Object: long}, map[string]string{"cut.object": "16384 " + sum(long)},
			func(e event.Event) bool { return len(e.Object) == maxText && strings.HasPrefix(long, e.Object) }},
		{"between characters", event.Event{Resolved: "a" + long}, map[string]string{"cut.resolved": "16385 " + sum("a"+long)},
			func(e event.Event) bool { return len(e.Resolved) == maxText-1 && utf8.ValidString(e.Resolved) }},
		{"bytes", event.Event{Object: strings.Repeat("\xff", maxText+1)}, map[string]string{"cut.object": "8193 " + sum(strings.Repeat("\xff", maxText+1))}, nil},
		{"an argument", event.Event{Process: event.Process{Argv: []string{"a", long, "b"}}}, map[string]string{"cut.argv.1": "16384 " + sum(long)},
			func(e event.Event) bool { return len(e.Process.Argv) == 3 && e.Process.Argv[2] == "b" }},
		{"1 MB of arguments", event.Event{Process: event.Process{Argv: []string{"sh", strings.Repeat("m", 1<<20), "z"}}}, map[string]string{"cut.argv.1": "1048576 " + sum(strings.Repeat("m", 1<<20))},
			func(e event.Event) bool { return len(e.Process.Argv) == 3 && len(e.Process.Argv[1]) == maxText }},
		{"many arguments", event.Event{Process: event.Process{Argv: many}}, map[string]string{"cut.argv": "3073 " + sum(strings.Join(many, "\x00")+"\x00")},
			func(e event.Event) bool { return len(e.Process.Argv) == maxArgs }},
		{"a detail", event.Event{Detail: map[string]string{"a": long, "b": "x"}}, map[string]string{"a": long[:maxText], "b": "x", "cut.detail.a": "16384 " + sum(long)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			argv, details := len(c.e.Process.Argv), len(c.e.Detail)
			e := c.e
			limit(&e)
			if len(e.Detail)+len(c.cut) > 0 && !reflect.DeepEqual(e.Detail, c.cut) {
				t.Errorf("details %.300q, want %.300q", e.Detail, c.cut)
			}
			if c.check != nil && !c.check(e) {
				t.Errorf("cut to %.300v", e)
			}
			if len(c.e.Process.Argv) != argv || len(c.e.Detail) != details {
				t.Error("the sender's event was changed")
			}
			e.Time = time.Unix(1, 0)
			var r Record
			if err := parseLine(encoded(t, e), &r); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWorst checks the longest possible line.
func TestWorst(t *testing.T) {
	s := strings.Repeat("\x01", maxText*2-1) + "\xff"
	e := event.Event{
		Time: time.Unix(1, 0), Session: strings.Repeat("s", 64), Sensor: event.Sensor(s), Action: s, Object: s, Resolved: s, Layer: s, Rule: s, Error: s,
		Process: event.Process{Executable: s, SHA256: s, Cwd: s, Argv: strings.SplitAfter(strings.Repeat(s[:1000]+"\xff", 2000), "\xff")}, Detail: map[string]string{},
	}
	for i := range 64 {
		e.Detail[strings.Repeat("k", i+1)] = s
	}
	limit(&e)
	var r Record
	line := encoded(t, e)
	if err := parseLine(line, &r); err != nil || len(line) > maxLine/2 {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

// FuzzParse: whatever is accepted as a record is exactly how its event is written.
func FuzzParse(f *testing.F) {
	for line := range bytes.Lines(read(f, sample(f))) {
		f.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
	f.Add([]byte(`{"seq":1,"prev":"` + zeroHash + `","time":"2024-02-29T23:59:59.999999999Z","process":{"pid":1,"argv":["\u001f\\\""]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var r Record
		if err := parseLine(line, &r); err != nil {
			return
		}
		if r.checkpoint.to != 0 {
			parseCheckpoint(r.decode(r.checkpoint), note.VerifierList())
			return
		}
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		var c encoder
		body, err := c.body(&e)
		if err != nil {
			t.Fatal(err)
		}
		if want := line[r.prev+hashLen+1:]; !bytes.Equal(body, want) {
			t.Errorf("read\n%s, written again\n%s", want, body)
		}
		for _, name := range memberNames {
			r.Field(name)
		}
	})
}

// TestSkipPlain compares eight bytes at once with one by one.
func TestSkipPlain(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			b := bytes.Repeat([]byte("!a~ "), 5)
			b[at] = byte(c)
			want := len(b)
			if !plain[c] {
				want = at
			}
			if got := skipPlain(b, 0); got != want {
				t.Errorf("byte %#x at %d: %d", c, at, got)
			}
			if !plain[c] && at > 3 {
				b[at-3] = '"'
				if got := skipPlain(b, 1); got != at-3 {
					t.Errorf("byte %#x at %d behind a quote: %d", c, at, got)
				}
			}
		}
	}
}

// FuzzEvent: whatever an event contains, it is one line and decodes to the same event.
func FuzzEvent(f *testing.F) {
	f.Add("a", "\xff\n", "\u2028", uint64(1), int64(0), 1)
	f.Add("\"}", "\x1b[31m", "\xed\xa0\x80", uint64(1<<63-1), int64(1)<<40, 2)
	f.Fuzz(func(t *testing.T, a, b, c string, n uint64, at int64, v int) {
		e := event.Event{
			Seq: 1, Time: time.Unix(at&(1<<36-1), at&0xffffff).UTC(), Session: "s", Sensor: event.Sensor(a), N: n >> 1, Action: b, Object: c, Resolved: a + b,
			Verdict: event.Verdict(v & 1), Layer: b + c, Rule: c + a, Error: a + c,
			Process: event.Process{PID: v & 0xffff, Exec: n >> 2, Executable: b, SHA256: c, Cwd: a, Argv: []string{a, b, c, ""}}, Detail: map[string]string{"k": a, "l": b, "m": c},
		}
		line := encoded(t, e)
		if i := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' }); i >= 0 {
			t.Errorf("a control character at %d of %q", i, line)
		}
		var r Record
		if err := parseLine(line, &r); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		got, err := r.Event()
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%v\n%+v\n%+v", err, got, e)
		}
	})
}

// FuzzVerify: no change of a log leaves it complete.
func FuzzVerify(f *testing.F) {
	path := sample(f)
	content := read(f, path)
	m := inMemory(f, path, false)
	f.Add(0, 0, []byte("x"))
	f.Add(100, 20, []byte{})
	f.Fuzz(func(t *testing.T, at, remove int, insert []byte) {
		at = min(max(at, 0), len(content))
		to := min(max(at+min(max(remove, 0), len(content)), at), len(content))
		changed := append(append(append([]byte(nil), content[:at]...), insert...), content[to:]...)
		if r := m.verify(t, changed); (r.Verdict == Complete) != bytes.Equal(changed, content) {
			t.Errorf("%v with %q for %q at %d: %v", r.Verdict, insert, content[at:to], at, r.Problems)
		}
	})
}
