package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// memory verifies content as the log of path, without reading files again.
type memory struct {
	keys      note.Verifiers
	witnesses func(*verifier) []witness
}

func inMemory(t testing.TB, path string, heads bool) memory {
	t.Helper()
	keys, heads2 := defaultDirs(filepath.Dir(path), "", "")
	known, _ := knownKeys(VerifyOptions{Keys: keys})
	if !heads {
		return memory{known, func(*verifier) []witness { return nil }}
	}
	head, err := os.ReadFile(filepath.Join(heads2, strings.TrimSuffix(filepath.Base(path), suffix)+headSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return memory{known, func(v *verifier) []witness {
		w := witness{what: "the head", signed: string(head)}
		w.of, w.err = parseCheckpoint(w.signed, v.keys)
		v.want[w.of.lines] = true
		return []witness{w}
	}}
}

func (m memory) verify(t testing.TB, content []byte) Report {
	t.Helper()
	v := newVerifier(m.keys)
	witnesses := m.witnesses(v)
	if err := v.read(context.Background(), bytes.NewReader(content), 1, nil); err != nil {
		t.Fatal(err)
	}
	return v.judge(witnesses)
}

// wrong fails unless the verdict is one of those given and a problem is named.
func (m memory) wrong(t testing.TB, content []byte, what string, verdicts ...Verdict) Report {
	t.Helper()
	r := m.verify(t, content)
	if !slices.Contains(verdicts, r.Verdict) {
		t.Errorf("%s: %v, %v", what, r.Verdict, r.Problems)
	}
	if len(r.Problems) == 0 {
		t.Errorf("%s: nothing is named", what)
	}
	return r
}

// TestEveryByte changes every byte of a small log, also of its checkpoints and
// of its last line, in several ways.
func TestEveryByte(t *testing.T) {
	path := sample(t)
	content := read(t, path)
	with, without := inMemory(t, path, true), inMemory(t, path, false)
	if r := with.verify(t, content); r.Verdict != Complete {
		t.Fatalf("the log as it is: %+v", r)
	}
	for i, was := range content {
		for n, c := range []byte{was ^ 1, was ^ 0x80, '\n', was ^ 0x20, 0} {
			if c == was || n > 0 && (i+n)%3 > 0 {
				continue
			}
			content[i] = c
			what := fmt.Sprintf("byte %d, %q, is %q", i, was, c)
			r := with.wrong(t, content, what, Tampered)
			line := 1 + bytes.Count(content[:i], []byte("\n"))
			if first := r.Problems[0].Line; first != 0 && first != line && first != line+1 {
				t.Errorf("%s: line %d is named, and it was line %d", what, first, line)
			}
			if i%7 == 0 || i > len(content)-500 {
				without.wrong(t, content, what+" and there is no head", Tampered, Unverifiable, Gaps)
			}
		}
		content[i] = was
	}
}

// TestEveryByteAddedOrRemoved does the same for one byte more and one less.
func TestEveryByteAddedOrRemoved(t *testing.T) {
	path := sample(t)
	content := read(t, path)
	m := inMemory(t, path, true)
	for i := range content {
		m.wrong(t, slices.Delete(slices.Clone(content), i, i+1), fmt.Sprintf("byte %d is gone", i), Tampered)
		c := " \n0"[i%3]
		m.wrong(t, slices.Insert(slices.Clone(content), i, c), fmt.Sprintf("%q before byte %d", c, i), Tampered)
	}
	for _, c := range []string{"\n", " ", "{}\n", "\x00", "x"} {
		m.wrong(t, append(slices.Clone(content), c...), fmt.Sprintf("%q at the end", c), Tampered)
	}
}

// lines are those of a log, with their newlines.
func lines(content []byte) [][]byte {
	return slices.Collect(bytes.Lines(content))
}

// rechain makes lines follow each other again, as someone without a key can.
func rechain(all [][]byte) []byte {
	var out []byte
	head := zeroHash
	for i, line := range all {
		rest := line[bytes.Index(line, []byte(`"prev":"`))+len(`"prev":"`)+hashLen:]
		line = append([]byte(fmt.Sprintf(`{"seq":%d,"prev":"%s`, i+1, head)), rest...)
		sum := sha256.Sum256(bytes.TrimSuffix(line, []byte("\n")))
		head = hex.EncodeToString(sum[:])
		out = append(out, line...)
	}
	return out
}

// TestEveryRecord removes, doubles, exchanges and moves every record, with the
// original chain and with one that fits.
func TestEveryRecord(t *testing.T) {
	path := sample(t)
	content := read(t, path)
	all := lines(content)
	m, without := inMemory(t, path, true), inMemory(t, path, false)
	if !bytes.Equal(rechain(all), content) {
		t.Fatal("rechaining changes a log that is whole")
	}
	check := func(what string, changed [][]byte) {
		t.Helper()
		m.wrong(t, bytes.Join(changed, nil), what, Tampered)
		without.wrong(t, bytes.Join(changed, nil), what+", without a head", Tampered, Gaps)
		m.wrong(t, rechain(changed), what+" and rechained", Tampered)
		without.wrong(t, rechain(changed), what+" and rechained, without a head", Tampered, Gaps)
	}
	for i := range all {
		check(fmt.Sprintf("record %d is gone", i+1), slices.Delete(slices.Clone(all), i, i+1))
		check(fmt.Sprintf("record %d stands twice", i+1), slices.Insert(slices.Clone(all), i, all[i]))
		check(fmt.Sprintf("record %d stands at the end again", i+1), append(slices.Clone(all), all[i]))
		for j := i + 1; j < len(all); j++ {
			swapped := slices.Clone(all)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			check(fmt.Sprintf("records %d and %d are exchanged", i+1, j+1), swapped)
			if j > i+1 {
				check(fmt.Sprintf("the records from %d to %d are gone", i+1, j), append(slices.Clone(all[:i]), all[j:]...))
			}
		}
	}
	r := m.verify(t, bytes.Join(slices.Delete(slices.Clone(all), 3, 5), nil))
	r.want(t, Tampered, "record 6 (line 4, byte ")
	r.want(t, Tampered, "the records 4 to 5, which came before it, are missing")
	changed := bytes.Replace(content, []byte("example.org"), []byte("example.com"), 1)
	m.verify(t, changed).want(t, Tampered, "record 8 (line 8, byte ")
}

// TestNoOtherSpelling: JSON of the same meaning in another spelling is not a
// record, even if the chain is made to fit.
func TestNoOtherSpelling(t *testing.T) {
	path := sample(t)
	all := lines(read(t, path))
	m := inMemory(t, path, false)
	for _, c := range []struct{ was, is string }{
		{`,"session"`, `, "session"`},
		{`"n":1,`, `"n":01,`},
		{`"n":1,`, `"n":1.0,`},
		{`"n":1,`, `"n":1,"n":1,`},
		{`"sensor":"task","n":1`, `"n":1,"sensor":"task"`},
		{`"verdict":"allowed"`, `"verdict":"unknown"`},
		{`"verdict":"allowed"`, `"verdict":"allow\u0065d"`},
		{`"verdict":"allowed"`, `"verdict":"allowed","object":""`},
		{`"object":"/work/`, `"object":"\/work/`},
		{`"raw":{"object":"L3dvcmsv//4="}`, `"raw":{"object":"L3dvcmsv//5="}`},
		{`"raw":{"object":"L3dvcmsv//4="}`, `"raw":{"resolved":"L3dvcmsv//4="}`},
		{`,"raw":{"object":"L3dvcmsv//4="}`, `,"raw":{}`},
		{`"time":"2026-11-22T01:02:03.000004Z"`, `"time":"2026-11-22T01:02:03.0000040Z"`},
		{`"time":"2026-11-22T01:02:03.000004Z"`, `"time":"2026-11-22T01:02:03.000004+00:00"`},
		{`"time":"2026-11-22T01:02:03.000004Z"`, `"time":"2026-11-31T01:02:03.000004Z"`},
		{"}\n", "}\r\n"}, {"}\n", "} \n"}, {"}\n", ",\"extra\":1}\n"},
	} {
		line := string(all[1])
		if !strings.Contains(line, c.was) {
			t.Fatalf("%s is not in %s", c.was, line)
		}
		changed := slices.Clone(all)
		changed[1] = []byte(strings.Replace(line, c.was, c.is, 1))
		content := rechain(changed)
		if !bytes.Contains(content, []byte(c.is)) {
			t.Fatalf("%q is not there", c.is)
		}
		m.verify(t, content).want(t, Tampered, "canonical form")
	}
}

// TestOtherKey: an attacker who can write everything but has none of our keys
// makes a log that proves nothing.
func TestOtherKey(t *testing.T) {
	path := sample(t)
	forged := sample(t) // by the key of another directory
	content := read(t, forged)
	m := inMemory(t, path, false)
	r := m.wrong(t, content, "another key", Unverifiable)
	r.want(t, Unverifiable, "is not known here")
	inMemory(t, path, true).wrong(t, content, "another key, with the head", Tampered)
	changed := bytes.Replace(content, []byte("example.org"), []byte("example.com"), 1)
	m.wrong(t, changed, "another key and a change", Tampered)
	// With its public key it can be verified.
	keys, err := PublicKeys(filepath.Join(filepath.Dir(filepath.Dir(forged)), "keys"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	got, err := Verify(context.Background(), forged, VerifyOptions{Keys: t.TempDir(), Trust: []string{keys[0].Text}})
	if err != nil || got.Verdict != Complete || !slices.Equal(got.Keys, []string{keys[0].Hash}) {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = Verify(context.Background(), forged, VerifyOptions{Keys: t.TempDir()})
	if err != nil || got.Verdict != Unverifiable {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLargeLog samples what the tests of small logs try one by one, across blocks.
func TestLargeLog(t *testing.T) {
	l := create(t, Options{})
	const n = 8000
	for i := range n {
		if err := l.Observe(event.Event{Sensor: event.Syscall, N: uint64(i + 1), Action: event.FileOpen, Object: fmt.Sprintf("/some/where/%d", i), Verdict: event.Allowed}); err != nil {
			t.Fatal(err)
		}
	}
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: n})
	content := read(t, l.Path())
	all := lines(content)
	if len(content) < 4*blockSize {
		t.Fatalf("%d bytes are no large log", len(content))
	}
	m := inMemory(t, l.Path(), true)
	if r := m.verify(t, content); r.Verdict != Complete {
		t.Fatalf("%+v", r)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		i := random.IntN(len(content))
		was := content[i]
		content[i] ^= byte(1 + random.IntN(255))
		m.wrong(t, content, fmt.Sprintf("byte %d", i), Tampered)
		content[i] = was
	}
	for at := blockSize; at < len(content); at += blockSize { // records at the border of two blocks
		for _, i := range []int{at - 300, at - 1, at, at + 300} {
			content[i] ^= 1
			m.wrong(t, content, fmt.Sprintf("byte %d", i), Tampered)
			content[i] ^= 1
		}
	}
	for range 20 {
		i := random.IntN(len(all) - 1)
		m.wrong(t, bytes.Join(slices.Delete(slices.Clone(all), i, i+1), nil), fmt.Sprint("without record ", i+1), Tampered)
		swapped := slices.Clone(all)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		m.wrong(t, bytes.Join(swapped, nil), fmt.Sprint("exchanged at record ", i+1), Tampered)
	}
	r := m.verify(t, bytes.Join(slices.Delete(slices.Clone(all), 5000, 5003), nil))
	r.want(t, Tampered, "the records 5001 to 5003, which came before it, are missing")
}
