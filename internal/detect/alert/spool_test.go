package alert

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

var aSink = policy.AlertSink{Kind: "webhook", Address: "https://hooks.example.org/S3CR3T"}

// kept makes a spool in which an ended run left alerts, and returns its file.
func kept(t *testing.T, dir string, n int) string {
	t.Helper()
	s := newSpool(dir, aSink)
	for i := range n {
		if j, _ := s.keep(document(sample("high", fmt.Sprint("/", i)), uint64(i+1)).encode()); j == nil {
			t.Fatal("an alert was not kept")
		}
	}
	s.close()
	return s.own.file.Name()
}

func objects(items []*item) string {
	var all []string
	for _, it := range items {
		if d, err := decode(it.body); err == nil {
			all = append(all, d.Object)
		}
	}
	return strings.Join(all, " ")
}

func TestTheSpoolIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	path := kept(t, dir, 1)
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if st, err := os.Stat(name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	if strings.Contains(path, "S3CR3T") {
		t.Errorf("its name tells the address: %s", path)
	}
	if data, err := os.ReadFile(path); err != nil || bytes.Contains(data, []byte("S3CR3T")) {
		t.Errorf("its content tells the address: %s, %v", data, err)
	}
}

// TestSignsStandAsTheyAre, in what is sent and in what is kept to be sent later.
func TestSignsStandAsTheyAre(t *testing.T) {
	s := newSpool(t.TempDir(), aSink)
	body := document(sample("high", "/R&D <1>"), 1).encode()
	j, _ := s.keep(body)
	if j == nil {
		t.Fatal("an alert was not kept")
	}
	defer s.close()
	data, err := os.ReadFile(j.file.Name())
	if err != nil || !bytes.Contains(body, []byte(`"/R&D <1>"`)) || !bytes.Contains(data, body) {
		t.Errorf("%s is kept as %s, %v", body, data, err)
	}
}

// TestEachCutOfAJournal cuts a file at each byte: every whole line before is
// read, and what is added afterwards too.
func TestEachCutOfAJournal(t *testing.T) {
	whole, err := os.ReadFile(kept(t, t.TempDir(), 3))
	if err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		dir := t.TempDir()
		path := filepath.Join(dir, newSpool(dir, aSink).key+"-20260101T000000.000-x.jsonl")
		if err := os.WriteFile(path, whole[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSpool(dir, aSink)
		items, aged := s.left()
		lines := bytes.Count(whole[:at+1], []byte("\n")) // without its end a line can be whole too
		if want := []string{"", "/0", "/0 /1", "/0 /1 /2"}[lines]; objects(items) != want || aged != 0 {
			t.Fatalf("cut at %d of %d: %q, want %q", at, len(whole), objects(items), want)
		}
		if len(items) < 2 {
			s.close()
			continue
		}
		items[0].journal.delivered(items[0].entry)
		s.close()
		again := newSpool(dir, aSink)
		if rest, _ := again.left(); objects(rest) != objects(items[1:]) {
			t.Fatalf("cut at %d: after one was delivered there are %q", at, objects(rest))
		}
		again.close()
	}
}

func TestJunkInTheSpool(t *testing.T) {
	dir := t.TempDir()
	key := newSpool(dir, aSink).key
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(dir, key+"-1.jsonl"), []byte("\x00\xff\n{}\n[]\n{\"n\":1}\n{\"n\":2,\"alert\":7}\n{\"done\":99}\n"), 0o600)
	os.WriteFile(filepath.Join(dir, key+"-2.jsonl"), bytes.Repeat([]byte("x"), entryBytes+10), 0o600)
	os.Mkdir(filepath.Join(dir, key+"-3.jsonl"), 0o700)
	os.Symlink(outside, filepath.Join(dir, key+"-4.jsonl"))
	path := kept(t, dir, 2)
	s := newSpool(dir, aSink)
	items, _ := s.left()
	if objects(items) != "/0 /1" {
		t.Errorf("got %q", objects(items))
	}
	if more, _ := s.left(); len(more) != 0 {
		t.Errorf("then %q", objects(more))
	}
	s.close()
	if data, err := os.ReadFile(outside); err != nil || string(data) != "precious" {
		t.Errorf("a file outside is %q, %v", data, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error("what is not delivered was removed")
	}
}

func TestTheSpoolHasBounds(t *testing.T) {
	dir := t.TempDir()
	for range mostJournals + 4 {
		kept(t, dir, 2)
		time.Sleep(2 * time.Millisecond) // their names have milliseconds
	}
	old := kept(t, dir, 3)
	long := time.Now().Add(-mostAge - time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	s := newSpool(dir, aSink)
	all, gone := 0, 0
	for {
		items, aged := s.left()
		all, gone = all+len(items), gone+aged
		if len(items) == 0 {
			break
		}
	}
	s.close()
	if all != 2*mostJournals || gone != 4*2+3 {
		t.Errorf("%d are left and %d given up", all, gone)
	}
	body := document(sample("high", strings.Repeat("x", 4000)), 1).encode()
	s = newSpool(t.TempDir(), aSink)
	n := 0
	for j, _ := s.keep(body); j != nil; j, _ = s.keep(body) {
		n++
	}
	if s.own.size > journalBytes+1024 || n < 100 {
		t.Errorf("a journal has %d alerts and %d bytes", n, s.own.size)
	}
	s.close()
}

func TestWithoutASpoolAlertsAreSentAllTheSame(t *testing.T) {
	h := newHook(t)
	d := opened(t, Options{Spool: private(t, "a file, no directory")}, h.sink())
	d.Raise(sample("high", "/x"))
	noErrors(t, d.Close())
	if len(h.taken()) != 1 {
		t.Error("it did not come")
	}
	h.answer(500)
	d = opened(t, Options{Spool: private(t, "a file, no directory"), Grace: 100 * time.Millisecond}, h.sink())
	d.Raise(sample("high", "/x"))
	if u := undelivered(t, d.Close()); u.Lost != 1 || u.Kept != 0 {
		t.Errorf("%+v", u)
	}
}

func TestAFullDiskLosesNothingThatWasKept(t *testing.T) {
	s := newSpool(t.TempDir(), aSink)
	body := document(sample("high", "/x"), 1).encode()
	s.keep(body)
	path := s.own.file.Name()
	real := s.own.file
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.own.file = full
	if j, _ := s.keep(body); j != nil {
		t.Error("it was kept on a full disk")
	}
	s.own.file = real
	if j, _ := s.keep(body); j == nil {
		t.Error("it was not kept when there was room again")
	}
	full.Close()
	s.close()
	j, items := takeOver(path)
	if j == nil || len(items) != 2 {
		t.Errorf("%d are left", len(items))
	}
	j.file.Close()
}
