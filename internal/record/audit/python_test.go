package audit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// python verifies a log with the verifier that shares no code with this package.
func python(t *testing.T, path string, more ...string) (verdict, why string) {
	t.Helper()
	keys, heads := defaultDirs(filepath.Dir(path), "", "")
	args := []string{filepath.Join(testenv.ModuleRoot(t), "docs/formats/verify_log.py"), path}
	public, err := PublicKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range public {
		args = append(args, "--key", k.Text)
	}
	head := filepath.Join(heads, strings.TrimSuffix(filepath.Base(path), suffix)+headSuffix)
	if _, err := os.Stat(head); err == nil {
		args = append(args, "--head", head)
	}
	c := exec.Command("python3", append(args, more...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, _ := c.Output() // the exit status is the verdict
	if stderr.Len() > 0 {
		t.Errorf("python: %s", stderr.String())
	}
	verdict, why, _ = strings.Cut(string(out), "\n")
	return verdict, why
}

// TestPython: a verifier written from the description of the format alone comes
// to the same verdicts.
func TestPython(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	path := sample(t)
	content := read(t, path)
	all := lines(content)
	join := func(l [][]byte) []byte { return bytes.Join(l, nil) }
	replace := func(old, with string) []byte { return bytes.Replace(content, []byte(old), []byte(with), 1) }
	half := slices.Clone(content)
	half[len(half)/2] ^= 1
	for _, c := range []struct {
		name    string
		content []byte
		want    Verdict
	}{
		{"as it is", content, Complete},
		{"a name", replace("example.org", "example.com"), Tampered},
		{"a byte", half, Tampered},
		{"a space", replace(`,"session"`, `, "session"`), Tampered},
		{"without a record", join(slices.Delete(slices.Clone(all), 4, 5)), Tampered},
		{"exchanged", join([][]byte{all[1], all[0]}), Tampered},
		{"one more", append(slices.Clone(content), all[3]...), Tampered},
		{"without the end", join(all[:len(all)-1]), Tampered},
		{"without the last newline", content[:len(content)-1], Tampered},
		{"nothing", nil, Tampered},
	} {
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		verified(t, path).want(t, c.want, "")
		if got, why := python(t, path); got != c.want.String() {
			t.Errorf("%s: python says %s, want %v\n%s", c.name, got, c.want, why)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	keys, heads := defaultDirs(filepath.Dir(path), "", "")
	if err := os.RemoveAll(heads); err != nil {
		t.Fatal(err)
	}
	for size := len(content) - 1; size > len(content)-400; size -= 57 {
		if err := os.WriteFile(path, content[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		verified(t, path).want(t, Gaps, "")
		if got, why := python(t, path); got != "GAPS" {
			t.Errorf("cut at %d without a head: %s\n%s", size, got, why)
		}
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(keys); err != nil {
		t.Fatal(err)
	}
	verified(t, path).want(t, Unverifiable, "")
	if got, why := python(t, path); got != "UNVERIFIABLE" {
		t.Errorf("without a key: %s\n%s", got, why)
	}
}

// TestPythonAccounts does the same for the counts of the sensors.
func TestPythonAccounts(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	for _, c := range []struct {
		name  string
		total int
		lost  []string
		want  Verdict
	}{
		{"all", 4, nil, Complete},
		{"the last are missing", 6, nil, Gaps},
		{"more than there were", 3, nil, Gaps},
		{"summarised", 6, []string{"from", "5", "to", "6", "of", "syscall"}, Gaps},
	} {
		l := create(t, Options{})
		for n := range 4 {
			if err := l.Emit(typicalEvent(uint64(n + 1))); err != nil {
				t.Fatal(err)
			}
		}
		if c.lost != nil {
			d := map[string]string{}
			for i := 0; i < len(c.lost); i += 2 {
				d[c.lost[i]] = c.lost[i+1]
			}
			if err := l.Emit(event.Event{Sensor: event.Record, Action: event.RecordCut, Detail: d}); err != nil {
				t.Fatal(err)
			}
		}
		endWith(t, l, uint64(c.total)).want(t, c.want, "")
		got, why := python(t, l.Path())
		if got != c.want.String() || strings.Contains(why, "are missing") != (c.name == "the last are missing") {
			t.Errorf("%s: %s\n%s", c.name, got, why)
		}
	}
}

// TestPythonKnowsWhoseNameALogHas puts a log under the name of another session.
func TestPythonKnowsWhoseNameALogHas(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	path := sample(t)
	content, state := read(t, path), t.TempDir()
	if err := os.Mkdir(filepath.Join(state, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Verdict{
		"log/another.jsonl": Tampered, "20261123T091500-2e40519a7fa6.jsonl": Tampered, "copy.jsonl": Complete, "log/" + filepath.Base(path): Complete,
	} {
		place := filepath.Join(state, name)
		if err := os.WriteFile(place, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var keys []string
		known, _ := defaultDirs(filepath.Dir(path), "", "")
		public, err := PublicKeys(known)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range public {
			keys = append(keys, "--key", k.Text)
		}
		if got, why := python(t, place, keys...); got != want.String() || want == Tampered && !strings.Contains(why, "of another session") {
			t.Errorf("%s: %s, want %v\n%s", name, got, want, why)
		}
		if got, why := python(t, place, append(keys, "--session", "other")...); got != "TAMPERED" {
			t.Errorf("%s as other: %s\n%s", name, got, why)
		}
	}
}

// TestPythonVectors checks the arithmetic of the script with the vectors of RFC 8032, 7.1.
func TestPythonVectors(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	script := fmt.Sprintf(`
import sys
sys.path.insert(0, %q)
from verify_log import signed
h = bytes.fromhex
public = h("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
sig = h("e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")
assert signed(public, b"", sig)
assert not signed(public, b"x", sig)
assert not signed(public, b"", sig[:63] + bytes([sig[63] ^ 0x10]))
L = 2**252 + 27742317777372353535851937790883648493
s = int.from_bytes(sig[32:], "little") + L
assert not signed(public, b"", sig[:32] + s.to_bytes(32, "little"))
`, filepath.Join(testenv.ModuleRoot(t), "docs/formats"))
	c := exec.Command("python3", "-B", "-c", script)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
