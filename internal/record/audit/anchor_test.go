package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestAnchors checks that the log verifies with what each kind got, and that
// the loss of its end is noticed, even together with its head.
func TestAnchors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "anchor")
	var mu sync.Mutex
	var posted []byte
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		posted, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer web.Close()
	socket, err := net.ListenPacket("unixgram", filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	anchors := []Anchor{FileAnchor(file), HTTPAnchor(web.URL), SyslogAnchor(socket.LocalAddr().String())}
	l := create(t, Options{Anchors: anchors})
	if err := l.Emit(event.Event{Sensor: event.Syscall, N: 1, Action: event.FileOpen}); err != nil {
		t.Fatal(err)
	}
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: 1})
	notes, err := AnchoredNotes(file, l.session)
	if err != nil || len(notes) == 0 {
		t.Fatal(notes, err)
	}
	last := notes[len(notes)-1]
	if !bytes.Equal(last, read(t, l.keeper.path)) || !bytes.Contains(last, []byte("\nend\n")) {
		t.Errorf("the file has %q", last)
	}
	mu.Lock()
	if !bytes.Equal(posted, last) {
		t.Errorf("posted was %q", posted)
	}
	mu.Unlock()
	buf := make([]byte, 4096)
	socket.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, _, err := socket.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	syslogged(t, buf[:n], last)

	content := read(t, l.Path())
	if err := errors.Join(os.WriteFile(l.Path(), content[:len(content)-1-len(lines(content)[3])+1], 0o600), os.Remove(l.keeper.path)); err != nil {
		t.Fatal(err)
	}
	verified(t, l.Path()).want(t, Gaps, "")
	r, err := Verify(context.Background(), l.Path(), VerifyOptions{Notes: notes})
	if err != nil {
		t.Fatal(err)
	}
	r.want(t, Tampered, "an anchored checkpoint says that the log had 4 records: 1 are missing after record 3")
}

var rfc5424 = regexp.MustCompile(`^<109>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \S+ holdfast \d+ checkpoint - `)

// syslogged checks a message; the first one may be an earlier checkpoint than last.
func syslogged(t *testing.T, message, last []byte) {
	t.Helper()
	at := rfc5424.FindIndex(message)
	var signed string
	if at == nil || json.Unmarshal(message[at[1]:], &signed) != nil || !strings.HasPrefix(signed, strings.SplitAfterN(string(last), "\n", 3)[0]) {
		t.Errorf("a message %q", message)
	}
}

// slowAnchor never answers.
type slowAnchor struct{ release chan struct{} }

func (a slowAnchor) Publish([]byte) error { <-a.release; return nil }
func (a slowAnchor) Name() string         { return "nobody" }

// TestAnchorAway: an anchor that refuses or does not answer stops nothing, and
// the end of the run reports it.
func TestAnchorAway(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }))
	defer web.Close()
	l := create(t, Options{Anchors: []Anchor{HTTPAnchor(web.URL + "/secret?key=secret"), FileAnchor(filepath.Join(t.TempDir(), "none", "file"))}})
	if err := l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1"}}); err != nil {
		t.Fatal(err)
	}
	err := l.Close()
	if err == nil || !strings.Contains(err.Error(), "anchoring to "+web.URL+": it answered 302 Found") || !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "secret") {
		t.Errorf("the end: %v", err)
	}
	verified(t, l.Path()).want(t, Complete, "")

	slow := slowAnchor{make(chan struct{})}
	defer close(slow.release)
	l = create(t, Options{Anchors: []Anchor{slow}})
	if err := l.Emit(event.Event{Sensor: event.Detect, N: 1, Action: event.AlertRaise, Detail: map[string]string{"severity": "high"}}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "anchoring to nobody: no answer") {
		t.Errorf("the end: %v", err)
	}
	if d := time.Since(start); d > 2*anchorWait {
		t.Errorf("the end took %v", d)
	}
}

// TestAnchorNames: messages about a failing anchor contain no secret of its
// address, and a path that is not a regular file blocks no caller.
func TestAnchorNames(t *testing.T) {
	for _, address := range []string{"http://user:secret@127.0.0.1:1/secret?secret", "http://127.0.0.1:1/secret\x7f", "secret"} {
		a := HTTPAnchor(address)
		if err := a.Publish(nil); err == nil || strings.Contains(err.Error()+a.Name(), "secret") {
			t.Errorf("%s: %v", a.Name(), err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "."} {
		if err := FileAnchor(filepath.Join(dir, name)).Publish(nil); err == nil {
			t.Errorf("%s is written to", name)
		}
	}
	if left := must(os.ReadDir(dir)); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

func TestAnchoredNotes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anchor")
	if err := os.WriteFile(path, []byte("\"x\"\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := AnchoredNotes(path, "s"); err == nil || !strings.Contains(err.Error(), "anchor:2") {
		t.Error(err)
	}
	// The writer of the last line was killed before its end.
	whole, _ := AppendString(nil, origin+"\ns\n7\nhash\n")
	for _, torn := range []string{"", `"holdfast.dev`, string(whole[:len(whole)-1])} {
		if err := os.WriteFile(path, append(append([]byte("\"x\"\n"), append(whole, '\n')...), torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		if notes, err := AnchoredNotes(path, "s"); err != nil || len(notes) != 1 {
			t.Errorf("after %q: %q, %v", torn, notes, err)
		}
		// A checkpoint published later is in the same line.
		if err := os.WriteFile(path, append(append([]byte("\"x\"\n"+torn), append(whole, '\n')...), "\"y\"\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		if notes, err := AnchoredNotes(path, "s"); err != nil || len(notes) != 1 || string(notes[0]) != origin+"\ns\n7\nhash\n" {
			t.Errorf("behind %q: %q, %v", torn, notes, err)
		}
	}
}
