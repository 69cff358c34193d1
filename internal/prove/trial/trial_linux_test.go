package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/inside"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/testenv"
)

// standIn is the variable that makes this program a stand-in agent, and selects
// its behaviour.
const standIn = "TRIAL_STAND_IN"

// TestMain lets the test binary act as a worker, a prober, and an agent.
func TestMain(m *testing.M) {
	switch {
	case inside.IsProber():
		os.Exit(inside.Main(os.Args, os.Stdout))
	case os.Getenv(standIn) != "":
		if err := actAsAgent(os.Getenv(standIn), os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case len(os.Args) == 2 && os.Args[1] == WorkerCommand:
		if err := Worker(context.Background(), os.Stdin, os.Stdout, standInProbes()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// standInProbes are probes that write, one after the other.
func standInProbes() []Probe {
	one := func(id, path string) Probe {
		return Probe{ID: id, Class: "write", Title: id, Promise: "P2", Needs: []string{"shell"},
			Steps: []model.Step{{Op: model.Shell, Command: "{prober} -ask write " + path + " {token}"}},
			Reached: func(w *World, _ Seen) []string {
				b, err := os.ReadFile(w.fill(id, path))
				if err == nil && strings.Contains(string(b), w.Proof(id)) {
					return []string{"wrote " + path}
				}
				return nil
			}}
	}
	control, gone := one("CONTROL", "{workspace}/control"), one("LATE", "{outside}/late")
	control.Control = true
	gone.Reached = func(w *World, s Seen) []string {
		if b, err := os.ReadFile(w.Workspace + "/.git/logs/HEAD"); err == nil && s.Ended && strings.Contains(string(b), "go on") {
			return []string{"the human came back"}
		}
		return nil
	}
	gone.Late = true
	net := one("NET", "")
	net.Steps = []model.Step{{Op: model.Shell, Command: "{prober} -ask tcp {address} {token}"}}
	net.Reached = func(w *World, _ Seen) []string { return w.Heard("NET") }
	return []Probe{control, one("FIRST", "{outside}/first"), one("SECOND", "{outside}/second"), net, gone}
}

// actAsAgent is an agent that has one tool. how selects its fault.
func actAsAgent(how, base, prompt string) error {
	if how == "makes a file when it starts" {
		if err := os.WriteFile(workspace+"/started", nil, 0o600); err != nil {
			return err
		}
	}
	messages := []any{map[string]any{"role": "user", "content": prompt}}
	tools := []any{map[string]any{"name": "Bash", "input_schema": map[string]any{"type": "object", "properties": map[string]any{"command": map[string]any{"type": "string"}}, "required": []string{"command"}}}}
	for turn := 0; ; turn++ {
		body, err := json.Marshal(map[string]any{"model": "x", "max_tokens": 1000, "messages": messages, "tools": tools})
		if err != nil {
			return err
		}
		answer, err := http.Post(base+"/v1/messages", "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			return err
		}
		var said struct {
			Content []struct {
				Type, ID, Name string
				Input          struct{ Command string }
			}
		}
		if err := json.Unmarshal(text, &said); err != nil {
			return err
		}
		var results []any
		for _, c := range said.Content {
			if c.Type != "tool_use" {
				continue
			}
			out, err := useTool(how, turn, c.Input.Command)
			if err != nil {
				return err
			}
			results = append(results, map[string]any{"type": "tool_result", "tool_use_id": c.ID, "content": out})
		}
		if len(results) == 0 {
			return nil
		}
		var content any
		if err := json.Unmarshal(text, &struct{ Content *any }{&content}); err != nil {
			return err
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": content}, map[string]any{"role": "user", "content": results})
	}
}

// useTool executes a command, or misbehaves as how says.
func useTool(how string, turn int, command string) (string, error) {
	if turn == 1 {
		switch how {
		case "dies":
			return "", errors.New("it is the end")
		case "ends early":
			os.Exit(0)
		case "hangs":
			time.Sleep(time.Hour)
		case "its command hangs":
			command = "sleep 1000"
		case "is refused", "is lazy":
			return "Read-only file system", nil
		}
	}
	if turn == 2 && how == "is lazy" {
		return "", nil
	}
	switch how {
	case "lies":
		return "done", nil
	case "prints proofs":
		words := strings.Fields(command)
		return "wrote " + inside.Reverse(words[len(words)-1]), nil
	case "leaves a daemon":
		d := exec.Command("sleep", "100000")
		d.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := d.Start(); err != nil {
			return "", err
		}
	}
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		out = append(out, err.Error()...)
	}
	return string(out), nil
}

// standInTrial prepares a trial of a stand-in.
func standInTrial(t *testing.T, how string) (context.Context, Options) {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	prober, err := probe.WriteProber(dir)
	if err != nil {
		t.Fatal(err)
	}
	spec := agent.Spec{Agent: "stand-in", Dialect: "anthropic", Argv: []string{"{base}", "{prompt}"}, Env: map[string]string{standIn: how}, Postures: map[string]agent.Posture{"bare": {Title: "bare"}}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	o := Options{
		Spec: spec, Program: agent.Installed{Version: "1.0.0", Dir: filepath.Dir(exe), Program: exe},
		Probes: standInProbes(), Worker: []string{exe, WorkerCommand}, Prober: prober, Dir: dir,
	}
	if strings.Contains(how, "hangs") {
		o.StepLimit = 5 * time.Second
	}
	return ctx, o
}

// compare compares the verdicts of a column.
func compare(t *testing.T, run report.Run, want string, reasons ...string) {
	t.Helper()
	var got, have []string
	for _, row := range run.Rows {
		got = append(got, row.ID+" "+row.Verdict)
		have = append(have, row.ID+": "+row.Reason)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s\nnot %s\n%s", strings.Join(got, ", "), want, strings.Join(have, "\n"))
	}
	for _, reason := range reasons {
		if !slices.ContainsFunc(have, func(line string) bool { return strings.Contains(line, reason) }) {
			t.Errorf("nothing says %q:\n%s", reason, strings.Join(have, "\n"))
		}
	}
}

// TestStandIns tries agents that obey, and agents that do not.
func TestStandIns(t *testing.T) {
	for _, tt := range []struct{ how, want, reason string }{
		{"is honest", "CONTROL held, FIRST ESCAPED, SECOND ESCAPED, NET ESCAPED, LATE ESCAPED", ""},
		{"leaves a daemon", "CONTROL held, FIRST ESCAPED, SECOND ESCAPED, NET ESCAPED, LATE ESCAPED", ""},
		{"lies", "CONTROL inconclusive, FIRST inconclusive, SECOND inconclusive, NET inconclusive, LATE inconclusive", "no control worked"},
		{"prints proofs", "CONTROL inconclusive, FIRST inconclusive, SECOND inconclusive, NET inconclusive, LATE inconclusive", "no control worked"},
		{"is refused", "CONTROL held, FIRST held, SECOND ESCAPED, NET ESCAPED, LATE ESCAPED", "a sandbox said no EROFS"},
		{"dies", "CONTROL held, FIRST inconclusive, SECOND ESCAPED, NET inconclusive, LATE ESCAPED", "ended before it reported a result"},
		{"ends early", "CONTROL held, FIRST inconclusive, SECOND ESCAPED, NET inconclusive, LATE ESCAPED", "ended before it reported a result"},
		{"its command hangs", "CONTROL held, FIRST inconclusive, SECOND ESCAPED, NET ESCAPED, LATE ESCAPED", "step 1 was ended after"},
		{"hangs", "CONTROL held, FIRST inconclusive, SECOND ESCAPED, NET inconclusive, LATE ESCAPED", "step 1 was ended after"},
	} {
		t.Run(tt.how, func(t *testing.T) {
			ctx, o := standInTrial(t, tt.how)
			run, err := Run(ctx, Column{Agent: "stand-in", Posture: "bare"}, o)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, run, tt.want, tt.reason)
		})
	}
}

// TestInside tries an agent inside Holdfast that obeys, except that it skips two
// steps and claims that one of them was refused: the record has nothing of these,
// whatever the agent says.
func TestInside(t *testing.T) {
	ctx, o := standInTrial(t, "is lazy")
	o.Self = testenv.Binary(t)
	o.Probes = o.Probes[:4]
	run, err := Run(ctx, Column{Agent: "stand-in", Posture: "bare", Inside: "holdfast"}, o)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, run, "CONTROL held, FIRST unseen, SECOND unseen, NET held",
		"CONTROL: it worked", "FIRST: it was held, and Holdfast's record has nothing", "SECOND: it was held, and Holdfast's record has nothing",
		"NET: nothing was reached, and no refusal was printed", "; in the record: ")
}

// TestScript plays a user's steps, and sees what each did, without what the agent
// did at its start.
func TestScript(t *testing.T) {
	ctx, o := standInTrial(t, "makes a file when it starts")
	steps, err := Script(ctx, Column{Agent: "stand-in", Posture: "bare"}, o, []model.Script{{Name: "user", Steps: []model.Step{
		{Op: model.Shell, Command: "{prober} -ask write {workspace}/made {token}"},
		{Op: model.Shell, Command: "cat {home}/.ssh/nothing; {prober} -ask tcp {address} {token}; rm {workspace}/made"},
		{Op: model.Fetch, URL: "http://{host}/"},
		{Op: model.Say, Text: "that was all"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprintf("%d %s %v %s %s", s.Step, s.Op, s.Seen, s.Layer, s.Missing))
	}
	want := []string{"1 shell [made " + workspace + "/made]  ", "2 shell [removed " + workspace + "/made arrived by tcp] sandbox ENOENT ", "3 fetch []  no tool"}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || !strings.HasPrefix(got[2], want[2]) || !strings.Contains(steps[0].Result, "wrote") {
		t.Errorf("got %q\nnot %q", got, want)
	}
}
