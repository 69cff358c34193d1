package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/event"
)

var hostile = []string{
	"", "\x00\x01\x1f\x7f", "a\nb\r\n{\"seq\":1}", "\xff\xfe\xc3", "\xed\xa0\x80", "\u2028\u2029\u202e", "\"}],\"x\":[{\"", `\u0000`, "\U0001F600", "]:443", "[::1", "unix:", ":", "//", ".", strings.Repeat("/..", 1400),
}

func hostileEvent(a, s string) event.Event {
	e := sample(a)
	e.Session, e.Object, e.Resolved, e.Rule, e.Error, e.Layer, e.Sensor = s, s, s, s, s, s, event.Sensor(s)
	e.Process.Executable, e.Process.Cwd, e.Process.SHA256, e.Process.Argv = s, s, s, []string{s, s + "x"}
	e.Detail = map[string]string{s: s, "method": s, "path": s, "status": s, "in": s, "to": s, "technique": s, "severity": s, "host": s, "ms": s}
	return e
}

// checkLines checks that each line is one JSON text in UTF-8.
func checkLines(t *testing.T, data []byte, lines int) {
	t.Helper()
	got := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(got) != lines {
		t.Fatalf("%d lines, want %d", len(got), lines)
	}
	for _, line := range got {
		if !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("not JSON in UTF-8: %q", line)
		}
	}
}

func TestHostileTextsStayData(t *testing.T) {
	for _, a := range actions {
		for _, s := range hostile {
			e := hostileEvent(a.name, s)
			data := export(t, "ocsf", e, e)
			checkLines(t, data, 2)
			verifyChain(t, data)
			checkLines(t, export(t, "otlp", e, e), 1)
		}
	}
}

func FuzzExport(f *testing.F) {
	for i, s := range hostile {
		f.Add(actions[i].name, s)
	}
	f.Fuzz(func(t *testing.T, action, s string) {
		e := hostileEvent(action, s)
		data := export(t, "ocsf", e, e)
		checkLines(t, data, 2)
		verifyChain(t, data)
		checkLines(t, export(t, "otlp", e, e), 1)
	})
}

func TestBytesThatAreNoUTF8AreKept(t *testing.T) {
	e := sample(event.FileWrite)
	e.Object, e.Process.Argv = "/work/\xff", []string{"cat", "\xfe"}
	v := decode(t, export(t, "ocsf", e))
	if at(v, "unmapped.raw.object") != "L3dvcmsv/w==" || v["unmapped"].(map[string]any)["raw"].(map[string]any)["argv.1"] != "/g==" {
		t.Errorf("raw is %v", at(v, "unmapped.raw"))
	}
	if at(v, "file.path") != "/work/\uFFFD" {
		t.Errorf("path is %q", at(v, "file.path"))
	}
	text := string(export(t, "otlp", e))
	for _, want := range []string{`{"key":"file.path.bytes","value":{"bytesValue":"L3dvcmsv/w=="}}`, `{"key":"process.command_args.1.bytes","value":{"bytesValue":"/g=="}}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestNothingIsLost exports every action with a value of its own in each field.
func TestNothingIsLost(t *testing.T) {
	for _, a := range append(slices.Clone(actions), action{name: "of.later"}) {
		e := sample(a.name)
		e.Resolved = "/resolved/as"
		e.Process.Executable = "/bin/executable"
		e.Detail = map[string]string{"host": "v1", "to": "v2", "to_resolved": "v3", "type": "v4", "again": "v5", "count": "v6", "status": "v7", "in": "v8", "path": "v9", "anything": "v10"}
		bare := e
		bare.Process = event.Process{Argv: []string{"cat", "it's"}, Cwd: "/work"}
		bare.Verdict = event.Unknown
		for _, format := range Formats() {
			for _, e := range []event.Event{e, bare} {
				out := string(export(t, format, e))
				want := []string{e.Object, e.Resolved, e.Rule, e.Error, e.Layer, e.Process.SHA256, e.Process.Executable, e.Process.Cwd, "it", e.Action, string(e.Sensor), "s1"}
				for _, v := range e.Detail {
					want = append(want, v)
				}
				for _, v := range want {
					v, _, _ = strings.Cut(v, ":443") // a port is a field of its own
					if !strings.Contains(out, v) {
						t.Errorf("%s: %s lost %q", format, a.name, v)
					}
				}
			}
		}
	}
}

// TestOTLP checks the encoding: what a collector accepts that knows the
// protocol's messages in their JSON form.
func TestOTLP(t *testing.T) {
	e := sample(event.NetRequest)
	e.Detail = map[string]string{"method": "GET", "status": "404", "path": "/x"}
	var request struct {
		ResourceLogs []struct {
			Resource  struct{ Attributes []attribute }
			ScopeLogs []struct {
				Scope      struct{ Name, Version string }
				LogRecords []struct {
					TimeUnixNano, ObservedTimeUnixNano string
					SeverityNumber                     int
					SeverityText, EventName            string
					Body                               struct{ StringValue string }
					Attributes                         []attribute
				}
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(export(t, "otlp", e)))
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		t.Fatal(err)
	}
	r := request.ResourceLogs[0].ScopeLogs[0].LogRecords[0]
	if r.TimeUnixNano != "1795309323004005006" || r.SeverityNumber != 10 || r.EventName != "holdfast.net.request" || r.Body.StringValue != "net.request denied: packages.example.org:443" {
		t.Errorf("record is %+v", r)
	}
	got := map[string]string{}
	for _, a := range append(r.Attributes, request.ResourceLogs[0].Resource.Attributes...) {
		if _, twice := got[a.Key]; twice {
			t.Errorf("%s stands twice", a.Key)
		}
		got[a.Key] = a.Value.StringValue + a.Value.IntValue
	}
	for key, value := range map[string]string{"http.request.method": "GET", "http.response.status_code": "404", "url.path": "/x", "server.address": "packages.example.org", "server.port": "443",
		"process.pid": "40", "service.instance.id": "s1", "host.name": "build-1", "holdfast.verdict": "denied", "error.type": "ENOENT"} {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
}

type attribute struct {
	Key   string
	Value struct {
		StringValue, IntValue, BytesValue string
		ArrayValue                        struct {
			Values []struct{ StringValue string }
		}
	}
}

func TestARequestHasASession(t *testing.T) {
	var events []event.Event
	for range requestRecords + 1 {
		events = append(events, sample(event.FileWrite))
	}
	last := sample(event.FileWrite)
	last.Session = "s2"
	checkLines(t, export(t, "otlp", append(events, last)...), 3)
}

// failing is a disk that is full after some bytes.
type failing struct{ left int }

var errFull = errors.New("no space left on device")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

func TestAFailedWriteIsSaidAndStays(t *testing.T) {
	for _, format := range Formats() {
		out := &failing{left: 4000}
		w, err := New(format, out, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2000 {
			if err = w.Write(sample(event.FileWrite)); err != nil {
				break
			}
		}
		out.left = 1 << 20
		if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) || !errors.Is(w.Write(sample(event.FileWrite)), errFull) {
			t.Errorf("%s: %v", format, err)
		}
	}
	if _, err := New("csv", io.Discard, Options{}); err == nil || !strings.Contains(err.Error(), "ocsf, otlp") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestMemoryIsBounded exports many events, each of a new process.
func TestMemoryIsBounded(t *testing.T) {
	for _, format := range Formats() {
		w, err := New(format, io.Discard, Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := sample(event.ProcExec)
		var before, after runtime.MemStats
		for i := range 60_000 {
			if i == 20_000 {
				runtime.GC()
				runtime.ReadMemStats(&before)
			}
			e.Seq, e.Process.Exec = uint64(i+1), uint64(i+1)
			if err := w.Write(e); err != nil {
				t.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 2<<20 {
			t.Errorf("%s: the heap grew by %d bytes", format, grown)
		}
	}
}

func BenchmarkExport(b *testing.B) {
	for _, format := range Formats() {
		b.Run(format, func(b *testing.B) {
			w, _ := New(format, io.Discard, Options{Host: "h"})
			e, line := sample(event.FileWrite), bytes.Repeat([]byte("x"), 400)
			e.Time = time.Now()
			for b.Loop() {
				e.Seq++
				if err := w.WriteRecord(e, line); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
		})
	}
}
