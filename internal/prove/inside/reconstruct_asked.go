//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// Words in the name of what is asked about, which tell the responder what to
// answer. A name with none of them gets no answer.
const (
	Granted = "grant"
	Refused = "refuse"
	Waited  = "silence"
)

// reconstructDecisions calls tools, and does what a human or a rule decides.
func reconstructDecisions(p *Probe) {
	deeds := append(toolDeeds(p), approvalDeeds(p)...)
	tellAll(p, append(deeds, ruleDeeds(p)...))
}

// hookCommands returns the hooks in the machine's settings for one moment of
// execution.
func hookCommands(moment string) []string {
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Command string }
		}
	}
	text, err := os.ReadFile("/etc/claude-code/managed-settings.json")
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return nil
	}
	var out []string
	for _, group := range settings.Hooks[moment] {
		for _, h := range group.Hooks {
			out = append(out, h.Command)
		}
	}
	return out
}

// callHooks passes a call to hooks; EACCES if one of them denies it.
func callHooks(moment string, call any) error {
	text, err := json.Marshal(call)
	if err != nil {
		return err
	}
	for _, command := range hookCommands(moment) {
		c := exec.Command("sh", "-c", command)
		c.Stdin = strings.NewReader(string(text))
		out, err := c.Output() // its status does not deny
		if strings.Contains(string(out), `"deny"`) {
			return fmt.Errorf("%s: %w", out, unix.EACCES)
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return err
		}
	}
	return nil
}

// toolCall is what an agent passes to its hook about a call.
type toolCall struct {
	Session   string         `json:"session_id"`
	Cwd       string         `json:"cwd"`
	Tool      string         `json:"tool_name"`
	Arguments map[string]any `json:"tool_input"`
	ID        string         `json:"tool_use_id"`
	Response  map[string]any `json:"tool_response,omitempty"`
}

// use calls a tool as an agent does: the hook is asked, and if it does not
// object, the tool is used and its result reported.
func (c toolCall) use(do func() error) error {
	if err := callHooks("PreToolUse", c); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	c.Response = map[string]any{"stdout": "done"}
	return callHooks("PostToolUse", c)
}

// toolDeeds call tools, and run the commands that they are given.
func toolDeeds(p *Probe) []Deed {
	call := func(what, id, tool string, denied bool, arguments map[string]any, do func() error) Deed {
		c := toolCall{Session: "s", Cwd: p.Arg("W"), Tool: tool, Arguments: arguments, ID: id}
		return Deed{Kind: "tool call", What: what, Action: "tool.call", Object: tool, Denied: denied, Quiet: true, By: map[string]string{"id": id}, do: func() error { return c.use(do) }}
	}
	shell := func(what, id, command string, denied bool) Deed {
		d := call(what, id, "Bash", denied, map[string]any{"command": command}, exec.Command("/bin/sh", "-c", command).Run)
		if !denied {
			d.Main = command
		}
		return d
	}
	nothing := func() error { return nil }
	result := func(id, tool string) Deed {
		return Deed{Kind: "tool call", What: "what came back of " + id, Action: "tool.result", Object: tool, Quiet: true, By: map[string]string{"id": id}, do: nothing}
	}
	w := deedDir(p.Arg("W"))
	silence := call("a tool that nobody answers about", "t15", "Task", true, map[string]any{"prompt": Waited + " t15"}, nothing)
	silence.do = startBlocking(silence.do)
	return []Deed{
		shell("a command", "t1", "echo deed t1", false), result("t1", "Bash"),
		shell("a command with quotes", "t2", "echo 'it is' \"deed\" t2", false), result("t2", "Bash"),
		shell("a command with signs", "t3", "echo deed t3 && echo '<a>' >/dev/null; true & wait", false), result("t3", "Bash"),
		shell("a command of two lines", "t4", "echo deed t4\necho more", false), result("t4", "Bash"),
		call("a file read", "t5", "Read", false, map[string]any{"file_path": w.path("given/t5")}, func() error { return open(w.path("given/t5"), unix.O_RDONLY) }),
		call("a file written", "t6", "Write", false, map[string]any{"file_path": w.path("given/t6"), "content": "x"}, func() error { return open(w.path("given/t6"), unix.O_WRONLY) }),
		call("a tool of a server", "t7", "mcp__deeds__do", false, map[string]any{"n": 1}, nothing), result("t7", "mcp__deeds__do"),
		shell("a command that a rule about tools has", "t8", "forbidden deed t8", true),
		call("a tool that a rule has", "t9", "WebFetch", true, map[string]any{"url": "http://allowed.test/t9"}, nothing),
		call("a tool of a server that a rule has", "t10", "mcp__denied__do", true, map[string]any{"n": 1}, nothing),
		call("a file that is not in view", "t11", "Read", true, map[string]any{"file_path": "/srv-of-nobody/t11"}, nothing),
		call("a hidden file", "t12", "Read", true, map[string]any{"file_path": w.path(".env")}, nothing),
		call("a tool that a human grants", "t13", "Task", false, map[string]any{"prompt": Granted + " t13"}, nothing),
		call("a tool that a human refuses", "t14", "Task", true, map[string]any{"prompt": Refused + " t14"}, nothing),
		silence,
		call("a tool that a rule of consent has", "t16", "NotebookEdit", true, map[string]any{"notebook_path": "x"}, nothing),
	}
}

// decisionDeeds returns the deeds for something that needs a decision: one for the
// event of the decision, and one for the event of the deed, which is done once.
func decisionDeeds(kind, what, decision string, d Deed, says map[string]string) []Deed {
	var came error
	do := d.do
	d.Kind, d.What, d.Quiet = kind, what, true
	if d.Denied {
		d.Layer = "consent"
	}
	first := Deed{Kind: kind, What: what + ": the decision", Action: decision, Object: d.Object, Shown: d.Shown, Denied: d.Denied, Layer: d.Layer, Quiet: true, By: d.By, Says: says,
		do: func() error { came = do(); return came }}
	d.do = func() error { return came }
	return []Deed{first, d}
}

// requestPatiently requests something, and waits longer than the decision may take.
func requestPatiently(host, path string) error {
	c, err := dialDirect("tcp", host, "80")
	if err != nil {
		return denial(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host); err != nil {
		return denial(err)
	}
	return checkGreeting(io.ReadAll(io.LimitReader(c, 64<<10)))
}

// byShell has a shell exec a program. A Go process that did so itself would stall while
// the execution waits for a decision, along with everything else that waits for one:
// its garbage collector cannot stop the thread that forked.
func byShell(program string) error {
	err := exec.Command("/bin/sh", "-c", `exec "$0"`, program).Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 126 { // found, but not executable (sh(1p))
		return unix.EACCES
	}
	return err
}

// decidedOn returns deeds for a program, a file, a host and a request whose names
// contain the word.
func decidedOn(p *Probe, word string) []Deed {
	program, file, host, path := p.In("W", "deed-"+word), p.In("B", "deed-"+word), word+".unnamed.test", "/ask/"+word
	_ = programs.Write(program, []byte("#!/bin/sh\nexit 0\n"), 0o755) // a missing program fails when executed
	return []Deed{
		{What: "a program", Action: "proc.exec", Object: program, do: func() error { return byShell(program) }},
		{What: "a file outside", Action: "file.write", Object: file, do: func() error { return open(file, unix.O_WRONLY|unix.O_CREAT) }},
		{What: "a host that no rule has", Action: "net.connect", Object: host + ":80", do: func() error { return requestPatiently(host, "/") }},
		{What: "a request", Action: "net.request", Object: "allowed.test:80", By: map[string]string{"path": path}, do: func() error { return requestPatiently("allowed.test", path) }},
	}
}

// approvalDeeds are deeds that a human is asked about.
func approvalDeeds(p *Probe) []Deed {
	var out []Deed
	for _, word := range []string{Granted, Refused, Waited} {
		outcome := "answer"
		for _, d := range decidedOn(p, word) {
			d.Denied = word != Granted
			if word == Waited {
				outcome, d.do = "timeout", startBlocking(d.do)
			}
			out = append(out, decisionDeeds("approval", d.What+", "+word, "approval.answer", d, map[string]string{"outcome": outcome})...)
		}
	}
	return out
}

// startBlocking starts something that blocks until it is answered, and returns a function
// that waits for its end.
func startBlocking(do func() error) func() error {
	c := make(chan error, 1)
	go func() { c <- do() }()
	return func() error { return <-c }
}

// ruleDeeds are deeds that a rule refuses although the boundary would allow them.
func ruleDeeds(p *Probe) []Deed {
	deeds := decidedOn(p, "deny")[:1]
	deeds = append(deeds,
		Deed{What: "a command", Action: "proc.exec", Object: "/bin/sh", Shown: "deed-denied", do: func() error { return start("/bin/sh", "-c", "exit 0", "deed-denied") }},
		Deed{What: "a host that is allowed", Action: "net.connect", Object: "deny.wild.test:80", do: func() error { return requestPatiently("deny.wild.test", "/") }},
		Deed{What: "a request", Action: "net.request", Object: "allowed.test:80", By: map[string]string{"path": "/deny/r1"}, do: func() error { return requestPatiently("allowed.test", "/deny/r1") }})
	var out []Deed
	for _, d := range deeds {
		d.Denied = true
		out = append(out, decisionDeeds("refusal", d.What, "approval.rule", d, map[string]string{"outcome": "rule"})...)
	}
	return out
}
