package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
)

// agents measures what Holdfast adds to an agent program.
func (b *bench) agents() (*section, error) {
	s := b.newSection(agentsPart, "Agents", nil)
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	f := &agentFigures{tokens: &egress{}}
	steps := []struct {
		name string
		do   func(*section, *agentFigures) error
	}{{"starts", b.agentStarts}, {"tokens", b.agentTokens}, {"hooks", b.agentHooks}}
	for _, step := range steps {
		b.logf("agents: %s", step.name)
		if err := step.do(s, f); err != nil {
			s.fail("%s: %v", step.name, err)
		}
		if b.ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
	}
	s.verdicts, s.tables = f.verdicts(), f.tables()
	s.load[1], s.remarks = load(), append(slices.Clone(agentRemarks), s.remarks...)
	return s, nil
}

// installedAgent is the agent program that tools/needs installed; "" for none.
func (b *bench) installedAgent(name string) (program, version string, err error) {
	d, err := agent.Named(name)
	if err != nil {
		return "", "", err
	}
	dir := os.Getenv("HOLDFAST_TEST_AGENTS")
	switch home, herr := os.UserHomeDir(); {
	case dir != "":
	case os.Geteuid() == 0:
		dir = "/var/lib/holdfast-test/agents"
	case herr == nil:
		dir = filepath.Join(home, ".local/state/holdfast/agents")
	}
	all, err := agent.Find(b.ctx, d, nil, dir)
	if err != nil || len(all) == 0 {
		return "", "", err
	}
	return all[0].Program, all[0].Version, nil
}

// agentStarts starts Claude Code bare and inside.
func (b *bench) agentStarts(s *section, f *agentFigures) error {
	program, version, err := b.installedAgent("claude")
	if err != nil {
		return err
	}
	if program == "" {
		s.remarks = append(s.remarks, "Claude Code is not installed here, so no start was measured: tools/needs installs it.")
		return nil
	}
	s.versions = append(s.versions, "claude "+version)
	address, stop, err := b.startModel()
	if err != nil {
		return err
	}
	defer stop()
	usual := b.env
	defer func() { b.env = usual }()
	b.env = append(slices.Clone(usual), "ANTHROPIC_BASE_URL=http://"+address, "ANTHROPIC_API_KEY=sk-ant-api03-"+strings.Repeat("bench", 16),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	b.env[1] = "PATH=" + filepath.Dir(program) + ":" + strings.TrimPrefix(b.env[1], "PATH=")
	ways := []contestant{{name: bare, env: b.env}, {name: holdfast, program: b.holdfast, before: []string{"run"}, env: b.env}}
	for _, t := range []struct {
		agentTask
		command []string
	}{
		{agentTask{name: "claude --version", what: "`claude --version`"}, []string{"claude", "--version"}},
		{agentTask{name: "claude -p", what: "`claude -p`, a prompt and an answer of a word"}, []string{"claude", "-p", "go " + model.Marker("one")}},
	} {
		b.logf("agents: %s", t.name)
		w := workload{name: t.name, dir: "agents", prepare: noFixture, command: t.command, rounds: b.options.rounds}
		if err := b.fixture(w); err != nil {
			return err
		}
		if t.samples, err = b.rounds(w, ways); err != nil {
			s.fail("%v", err)
			continue
		}
		f.tasks = append(f.tasks, t.agentTask)
	}
	return nil
}

// startModel starts a model that answers with one word.
func (b *bench) startModel() (address string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(b.ctx, self, "peer", "model")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("starting the model: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("starting the model: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the model: %w", err)
	}
	stop = func() { in.Close(); cmd.Wait() } // it is asked to end, whatever its status
	var listening ports
	if err := json.NewDecoder(out).Decode(&listening); err != nil {
		stop()
		return "", nil, fmt.Errorf("reading the address of the model: %w", err)
	}
	return "127.0.0.1:" + strconv.Itoa(listening.Plain), stop, nil
}

// peerModel serves that model until standard input ends.
func peerModel() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin) // to its end
		cancel()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(ports{Plain: l.Addr().(*net.TCPAddr).Port}); err != nil {
		return fmt.Errorf("printing the address of the model: %w", err)
	}
	s := model.New(model.Options{Scripts: []model.Script{{Name: "one", Steps: []model.Step{{Op: model.Say, Text: "hello"}}}}})
	if err := s.Serve(ctx, l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving the model: %w", err)
	}
	return nil
}

// agentTokens streams events to a client in each layout in turn.
func (b *bench) agentTokens(s *section, f *agentFigures) (err error) {
	if os.Geteuid() != 0 || b.cpu.parent == "" {
		s.remarks = append(s.remarks, "Tokens were not measured: this needs root and control groups, because only the measured programs may know the name of the server.")
		return nil
	}
	a, err := b.newArena(b.cpu.parent)
	if err != nil {
		return err
	}
	defer a.close()
	layouts, err := a.tokenLayouts()
	if err != nil {
		return err
	}
	var links []*link
	defer func() {
		for _, k := range links {
			err = errors.Join(err, k.end())
		}
	}()
	f.tokens.rounds = max(3, b.options.rounds/2)
	for _, l := range layouts {
		k, err := a.startLayout(l)
		if err != nil {
			return err
		}
		links, f.ways = append(links, k), append(f.ways, l.name)
	}
	b.measureInTurn(f.tokens, measurement{name: "tokens", do: measureEvents}, links)
	for _, why := range f.tokens.failed {
		s.fail("%s", why)
	}
	return nil
}

// tokenLayouts are the ways from a server to a client inside.
func (a *arena) tokenLayouts() ([]layout, error) {
	secret := filepath.Join(a.b.home(), "secret")
	policy := filepath.Join(a.b.dir, "copies", "credential.yaml")
	text := fmt.Sprintf("version: 1\nnetwork:\n  allow:\n    - {host: %s, ports: [%d], kind: tcp, internal: true}\n    - {host: %s, ports: [%d], kind: tls, internal: true, credential: bench}\n"+
		"credentials:\n  - {name: bench, source: {file: %s}}\n", serverName, a.ports.Plain, serverName, a.ports.TLS, secret)
	err := errors.Join(os.WriteFile(secret, []byte(strings.Repeat("secret", 8)), 0o600), os.WriteFile(policy, []byte(text), 0o644), a.b.user.chownTree(secret))
	if err != nil {
		return nil, fmt.Errorf("writing what the layouts read: %w", err)
	}
	run := func(more ...string) []string { return append(append([]string{a.b.holdfast, "run"}, more...), "--") }
	named := []string{"-address", serverName}
	return []layout{
		{name: direct, client: []string{"-address", "127.0.0.1"}},
		{name: hostPort, client: []string{"-address", "127.0.0.1"}, before: run("--host-port", strconv.Itoa(a.ports.Plain), "--host-port", strconv.Itoa(a.ports.TLS),
			"--ro", a.roots, "--env", "SSL_CERT_FILE="+a.roots)},
		{name: ended, client: named, before: run("--policy", a.policy)},
		{name: brokered, client: named, before: run("--policy", policy)},
	}, nil
}

// toolCall is the input of an agent's hook before a shell command.
const toolCall = `{"session_id":"s","transcript_path":"/x","cwd":"/w","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git status"},"tool_use_id":"t"}`

// loop simulates an agent that calls tools one after another.
const loop = "#!/bin/sh\ni=0; while [ $i -lt $1 ]; do $HOOK <call.json >/dev/null || exit 9; i=$((i+1)); done\n"

// agentHooks runs a loop of tool calls with and without the hook.
func (b *bench) agentHooks(s *section, f *agentFigures) error {
	f.calls = 50
	if b.options.quick {
		f.calls = 5
	}
	w := workload{name: "hooks", dir: "hooks", rounds: b.options.rounds, command: []string{"./claude", strconv.Itoa(f.calls)}, prepare: func(b *bench, dir string) error {
		return errors.Join(programs.Write(filepath.Join(dir, "claude"), []byte(loop), 0o755), os.WriteFile(filepath.Join(dir, "call.json"), []byte(toolCall), 0o644), b.user.chownTree(dir))
	}}
	if err := b.fixture(w); err != nil {
		return err
	}
	env := append(slices.Clone(b.env), "ANTHROPIC_API_KEY=sk-ant-api03-"+strings.Repeat("bench", 16))
	way := func(name, hook string) contestant {
		return contestant{name: name, program: b.holdfast, before: []string{"run", "--preset", "claude", "--env", "HOOK=" + hook, "--"}, env: env}
	}
	var err error
	f.hooks, err = b.rounds(w, []contestant{way(withHook, b.holdfast+" hook claude call"), way(withoutHook, "true")})
	if err != nil {
		return err
	}
	return b.hooksReported(s, f)
}

// hooksReported checks that the whole path of a report was measured.
func (b *bench) hooksReported(s *section, f *agentFigures) error {
	out, err := b.runAs("", b.holdfast, "log", "query", "--all", "--count", `sensor == "agent" && action == "tool.call"`)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || n < f.calls*len(f.hooks[withHook]) {
		s.fail("the record has only %q of the tool calls", strings.TrimSpace(out))
	}
	return nil
}
