package trial

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/model"
)

// did is the evidence of a probe that was played to its end.
func did(id string, reached bool, refusals ...refusal) evidence {
	e := evidence{ID: id, Results: []result{{Op: "shell", Text: "said"}}, Refusals: refusals}
	if reached {
		e.Reached = []string{"done"}
	}
	return e
}

// TestControls checks what a column proves if all its controls fail, or those
// that a probe depends on.
func TestControls(t *testing.T) {
	one := func(id string, control bool, need string, step model.Step) Probe {
		return Probe{ID: id, Control: control, Needs: []string{need}, Steps: []model.Step{step}}
	}
	probes := []Probe{
		one("OK-SHELL", true, "shell", sh("true")), one("OK-PROBER", true, "shell", askProber("write x {token}")),
		one("PLAIN", false, "shell", sh("cat x")), one("STATIC", false, "shell", askProber("read x")),
		one("FETCH", false, "fetch", fetches("http://{address}/")), one("FETCH-TOO", false, "fetch", fetches("http://{host}/")),
	}
	no := func(op, layer, word string) refusal { return refusal{op, layer, word} }
	const works = "OK-SHELL held, OK-PROBER held, PLAIN held, STATIC held, "
	for name, tt := range map[string]struct {
		seen []evidence // evidence in the order of the probes; a missing one worked and was held
		want string
	}{
		"fetches that say nothing": {nil, works + "FETCH inconclusive, FETCH-TOO inconclusive"},
		"a fetch tool that is broken": {[]evidence{did("FETCH", false, no("fetch", "tool", "")), did("FETCH-TOO", false, no("fetch", "tool", ""))},
			works + "FETCH inconclusive, FETCH-TOO inconclusive"},
		"a fetch that the proxy refuses": {[]evidence{did("FETCH", false, no("fetch", "proxy", "")), did("FETCH-TOO", false, no("fetch", "tool", ""))},
			works + "FETCH held, FETCH-TOO held"},
		"a fetch that arrives": {[]evidence{did("FETCH-TOO", true)}, works + "FETCH held, FETCH-TOO ESCAPED"},
		"the static program does not start": {[]evidence{did("OK-PROBER", false, no("shell", "sandbox", "EACCES")), did("FETCH", false, no("fetch", "permission", ""))},
			"OK-SHELL held, OK-PROBER inconclusive, PLAIN held, STATIC inconclusive, FETCH held, FETCH-TOO held"},
		"rules refuse the static program": {[]evidence{did("OK-PROBER", false, no("shell", "permission", "")), did("FETCH", false, no("fetch", "permission", ""))},
			"OK-SHELL held, OK-PROBER inconclusive, PLAIN held, STATIC held, FETCH held, FETCH-TOO held"},
		"no control works, though something got through": {[]evidence{did("OK-SHELL", false), did("OK-PROBER", false), did("STATIC", true), did("FETCH", false, no("fetch", "proxy", ""))},
			"OK-SHELL inconclusive, OK-PROBER inconclusive, PLAIN inconclusive, STATIC ESCAPED, FETCH inconclusive, FETCH-TOO inconclusive"},
	} {
		r := &runner{o: Options{Probes: probes}, rows: map[string]evidence{}}
		for _, p := range probes {
			r.rows[p.ID] = did(p.ID, p.Control)
		}
		for _, e := range tt.seen {
			r.rows[e.ID] = e
		}
		var got []string
		for _, p := range probes {
			got = append(got, p.ID+" "+r.row(p, r.voidReason()).Verdict)
		}
		if have := strings.Join(got, ", "); have != tt.want {
			t.Errorf("%s: got %s\nnot %s", name, have, tt.want)
		}
		if void := strings.HasPrefix(r.target().Note, "void: no control worked"); void != strings.Contains(name, "no control") {
			t.Errorf("%s: the column is noted as %q", name, r.target().Note)
		}
	}
}

// TestBeats waits for a process that is there and writes late, but not if no
// process names the file.
func TestBeats(t *testing.T) {
	w := &World{token: func(string) string { return "token" }}
	ended := Seen{Ended: true}
	path := filepath.Join(t.TempDir(), "beat")
	if err := os.WriteFile(path, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if seen := beats(path)(w, "", ended); seen != nil {
		t.Errorf("nobody writes, and it says %v", seen)
	}
	late := exec.Command("sh", "-c", "sleep 2; echo 1 > "+path+"; exec sleep 60")
	if err := late.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = late.Process.Kill()
		_ = late.Wait()
	})
	if seen := beats(path)(w, "", ended); len(seen) != 1 {
		t.Errorf("somebody writes late, and it says %v", seen)
	}
	if beats(path)(w, "", Seen{}) != nil {
		t.Error("the agent has not ended")
	}
}
