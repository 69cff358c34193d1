package alert

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// quick is the timing for tests.
var quick = timing{first: 10 * time.Millisecond, most: 50 * time.Millisecond}

func sample(severity detect.Severity, object string) detect.Alert {
	return detect.Alert{
		N: 1, Rule: "FS-01", Title: "Denied read of a credential store", Severity: severity, Technique: []string{"T1552.001"},
		Session: "s1", Time: time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC), Count: 2, Events: []uint64{7, 9}, Object: object,
		Process: event.Process{PID: 40, Exec: 2, Executable: "/usr/bin/cat", Argv: []string{"cat", object}}, Explanation: "why",
	}
}

// opened is a dispatcher with one sink that is closed at the end of the test.
func opened(t *testing.T, o Options, sinks ...policy.AlertSink) *Dispatcher {
	t.Helper()
	o.Sinks = sinks
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	d, err := open(o, quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// failing is opened, and also returns a function that waits until its sink has failed.
func failing(t *testing.T, o Options, sink policy.AlertSink) (*Dispatcher, func()) {
	t.Helper()
	failed := make(chan struct{}, 8)
	o.Failed = func(string, error) { failed <- struct{}{} }
	return opened(t, o, sink), func() {
		t.Helper()
		select {
		case <-failed:
		case <-time.After(20 * time.Second):
			t.Error("the sink did not fail")
		}
	}
}

func noErrors(t *testing.T, missed []*Undelivered) {
	t.Helper()
	for _, u := range missed {
		t.Error(u)
	}
}

func onlyOne(t *testing.T, missed []*Undelivered) *Undelivered {
	t.Helper()
	if len(missed) != 1 {
		t.Fatalf("%v, want one sink that did not get some", missed)
	}
	return missed[0]
}

func readLines(t *testing.T, path string) []Document {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []Document
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var d Document
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("%v in %q", err, lines.Text())
		}
		all = append(all, d)
	}
	return all
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.jsonl")
	d := opened(t, Options{}, policy.AlertSink{Kind: "file", Address: path, Severity: "medium"})
	for _, s := range detect.Severities() {
		d.Raise(sample(s, "/x\n{\"forged\":1}"))
	}
	noErrors(t, d.Close())
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v", st.Mode(), err)
	}
	got := readLines(t, path)
	if len(got) != 3 || got[0].Object != "/x\n{\"forged\":1}" || got[0].Process.PID != 40 {
		t.Errorf("lines are %+v", got)
	}
}

func TestAFileIsOnlyEverAFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	link, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, pipe, dir, filepath.Join(dir, "missing", "x")} {
		if _, err := open(Options{Sinks: []policy.AlertSink{{Kind: "file", Address: path}}}, quick); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

func TestALineThatWasCutStandsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.jsonl")
	if err := os.WriteFile(path, []byte("{\"version\":1}\n{\"version"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := opened(t, Options{}, policy.AlertSink{Kind: "file", Address: path})
	d.Raise(sample("high", "/x"))
	noErrors(t, d.Close())
	data, err := os.ReadFile(path)
	if lines := strings.Split(string(data), "\n"); err != nil || len(lines) != 4 || lines[1] != `{"version` || !json.Valid([]byte(lines[2])) {
		t.Errorf("file is %q, %v", data, err)
	}
}

func TestAFileThatIsMovedAwayIsBegunAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alerts.jsonl")
	d := opened(t, Options{}, policy.AlertSink{Kind: "file", Address: path})
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	d.Raise(sample("high", "/x"))
	noErrors(t, d.Close())
	if len(readLines(t, path)) != 1 {
		t.Error("the alert is not in the new file")
	}
}

func TestTerminal(t *testing.T) {
	var lines []string
	d := opened(t, Options{Terminal: func(line string) { lines = append(lines, line) }}, policy.AlertSink{Kind: "terminal", Severity: "medium"})
	d.Raise(sample("low", "/a"))
	d.Raise(sample("critical", "/b\x1b]0;owned\x07\u202e"))
	noErrors(t, d.Close())
	want := `critical: Denied read of a credential store (FS-01): /b\x1b]0;owned\x07\u202e, by cat pid 40, 2 times`
	if len(lines) != 1 || lines[0] != want {
		t.Errorf("lines are %q, want %q", lines, want)
	}
}

// stuck is a sink that blocks until it is released.
type stuck struct{ free chan struct{} }

func TestRaiseNeverWaits(t *testing.T) {
	s := stuck{make(chan struct{})}
	var mu sync.Mutex
	var got []string
	d := opened(t, Options{Grace: 3 * time.Second, Terminal: func(line string) {
		<-s.free
		mu.Lock()
		got = append(got, line)
		mu.Unlock()
	}}, policy.AlertSink{Kind: "terminal", Severity: "low"})
	begun := time.Now()
	for i := range 3000 {
		d.Raise(sample("low", fmt.Sprint("/", i)))
	}
	d.Raise(sample("critical", "/the-one"))
	for i := range 3000 {
		d.Raise(sample("low", fmt.Sprint("/later/", i)))
	}
	if took := time.Since(begun); took > 15*time.Second {
		t.Errorf("raising took %v", took)
	}
	close(s.free)
	u := onlyOne(t, d.Close())
	mu.Lock()
	defer mu.Unlock()
	shown := 0
	for _, line := range got {
		more := 1
		if _, rest, found := strings.Cut(line, "the last of "); found {
			fmt.Sscan(rest, &more)
		}
		shown += more
	}
	if len(u.Alerts)+shown != 6001 || shown < mostItems {
		t.Errorf("%d lost and %d shown of 6001", len(u.Alerts), shown)
	}
	if at := slices.IndexFunc(got, func(l string) bool { return strings.Contains(l, "/the-one") }); at < 0 || at > 1 {
		t.Errorf("the critical alert was shown at place %d", at)
	}
}

func TestCloseDoesNotWaitForever(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	d := opened(t, Options{Grace: 50 * time.Millisecond, Terminal: func(string) { <-block }}, policy.AlertSink{Kind: "terminal"})
	d.Raise(sample("high", "/x"))
	begun := time.Now()
	u := onlyOne(t, d.Close())
	if took := time.Since(begun); took > 15*time.Second || !slices.Equal(u.Alerts, []uint64{1}) || len(Detail([]*Undelivered{u})) != 0 {
		t.Errorf("took %v, %+v", took, u)
	}
	d.Raise(sample("high", "/after"))
}

func TestWrongSinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hook := func(change func(*policy.AlertSink)) policy.AlertSink {
		s := policy.AlertSink{Kind: "webhook", Address: "https://hooks.example.org/T0P/S3CR3T"}
		change(&s)
		return s
	}
	for _, tt := range []struct {
		name string
		sink policy.AlertSink
		want string
	}{
		{"a kind that there is not", policy.AlertSink{Kind: "pigeon"}, "no such kind"},
		{"a severity that there is not", policy.AlertSink{Kind: "syslog", Address: "local", Severity: "grave"}, `"grave" is not a severity`},
		{"a terminal that is not there", policy.AlertSink{Kind: "terminal"}, "no terminal"},
		{"a password in the URL", hook(func(s *policy.AlertSink) { s.Address = "https://u:S3CR3T@hooks.example.org/" }), "without a user"},
		{"a key that others can read", hook(func(s *policy.AlertSink) { s.Secret = write("open", strings.Repeat("k", 32), 0o644) }), "chmod 600"},
		{"a key that is short", hook(func(s *policy.AlertSink) { s.Secret = write("short", "S3CR3T\n", 0o600) }), "fewer than 16 bytes"},
		{"a key that is not there", hook(func(s *policy.AlertSink) { s.Secret = filepath.Join(dir, "none") }), "no such file"},
		{"headers that forge", hook(func(s *policy.AlertSink) { s.Headers = write("h1", "X: S3CR3T\rY: 1\n", 0o600) }), "line 1"},
		{"a header of ours", hook(func(s *policy.AlertSink) { s.Headers = write("h2", "# c\n\nholdfast-signature: S3CR3T\n", 0o600) }), "line 3"},
		{"a header that is none", hook(func(s *policy.AlertSink) { s.Headers = write("h3", "S3CR3T\n", 0o600) }), "NAME: VALUE"},
		{"authorities without any", hook(func(s *policy.AlertSink) { s.Authority = write("ca", "none", 0o600) }), "no certificate"},
		{"another way to syslog", policy.AlertSink{Kind: "syslog", Address: "gopher://x"}, "not a transport"},
	} {
		_, err := open(Options{Sinks: []policy.AlertSink{tt.sink}}, quick)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "S3CR3T") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// TestOneLineForManyInARow has the terminal say how many there were.
func TestOneLineForManyInARow(t *testing.T) {
	var lines []string
	s := &terminal{show: func(line string) { lines = append(lines, line) }}
	send := func(rule string, times int) {
		for i := range times {
			a := detect.Alert{Rule: rule, Title: "Title", Severity: detect.High, Object: fmt.Sprintf("/%s%d", rule, i+1), Count: 1}
			if err := s.send(t.Context(), document(a).encode()); err != nil {
				t.Fatal(err)
			}
		}
	}
	send("a", 5)
	send("b", 1)
	send("a", 2)
	s.close()
	want := []string{
		"high: Title (a): /a1",
		"high: Title (a): /a5, the last of 4 more of this rule in a row: 'holdfast alerts' shows each",
		"high: Title (b): /b1", "high: Title (a): /a1", "high: Title (a): /a2",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
}
