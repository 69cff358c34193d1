package realtest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/model"
	"holdfast.dev/holdfast/internal/testenv"
)

// worker is an agent program doing legitimate work: its configured home and
// environment, and how to give it a prompt.
type worker struct {
	name string
	host string            // of its provider
	key  string            // variable of the key
	env  []string          // further variables
	home map[string]string // files of the home
	argv []string          // after its name; {} is the prompt
	// asks are hosts, or patterns for path.Match, that it contacts by itself.
	// They are refused, and the work goes on.
	asks []string
	// lacks lists the operations of the work that it cannot do.
	lacks []model.Op
	// dir is a pattern of its path below the directory of agents, and policy is
	// what the run needs in addition; both are for an agent without a preset.
	dir, policy string
	// resume are the arguments to continue the last session; nil if it cannot do
	// that without a human.
	resume []string
}

// server is the command of the project's MCP server in the settings of most
// agents.
const server = `"command":"node","args":["{ws}/notes.js"]`

// workers are the tested agents. Each key has the form that the program requires,
// and is worthless.
var workers = []worker{
	{
		name: "claude", host: "api.anthropic.com", key: "ANTHROPIC_API_KEY",
		argv:   []string{"-p", "{}", "--dangerously-skip-permissions", "--mcp-config", `{"mcpServers":{"notes":{"type":"stdio",` + server + `}}}`},
		resume: []string{"--continue", "-p", "{}", "--dangerously-skip-permissions"},
	},
	{
		name: "codex", host: "api.openai.com", key: "OPENAI_API_KEY",
		asks:   []string{"chatgpt.com"},
		argv:   []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", `mcp_servers.notes.command="node"`, "-c", `mcp_servers.notes.args=["{ws}/notes.js"]`, "{}"},
		resume: []string{"exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{}"},
	},
	{
		name: "gemini", host: "generativelanguage.googleapis.com", key: "GEMINI_API_KEY",
		home: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},"mcpServers":{"notes":{"trust":true,` + server + `}}}`},
		argv: []string{"--yolo", "-m", "gemini-2.5-flash", "-p", "{}"},
	},
	{
		name: "qwen", host: "model.example.org", key: "OPENAI_API_KEY",
		env:  []string{"OPENAI_BASE_URL=https://model.example.org/v1", "OPENAI_MODEL=fake-model"},
		home: map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"mcpServers":{"notes":{"trust":true,` + server + `}}}`},
		argv: []string{"--yolo", "-p", "{}"},
	},
	{
		name: "opencode", host: "api.openai.com", key: "OPENAI_API_KEY",
		asks: []string{"registry.*"},
		home: map[string]string{".config/opencode/opencode.json": `{"mcp":{"notes":{"type":"local","command":["node","{ws}/notes.js"],"enabled":true}}}`},
		argv: []string{"run", "--format", "json", "--auto", "-m", "openai/gpt-4.1", "{}"},
	},
	{
		name: "copilot", host: "model.example.org", key: "COPILOT_PROVIDER_API_KEY",
		env:  []string{"COPILOT_PROVIDER_BASE_URL=https://model.example.org/v1", "COPILOT_MODEL=claude-sonnet-4.5", "COPILOT_OFFLINE=true"},
		home: map[string]string{".copilot/mcp-config.json": `{"mcpServers":{"notes":{"type":"local","tools":["*"],` + server + `}}}`},
		argv: []string{"-p", "{}", "--output-format", "json", "--no-ask-user", "--allow-all"},
	},
	{
		name: "cline", host: "api.anthropic.com", key: "ANTHROPIC_API_KEY",
		asks: []string{"*.cline.bot"},
		home: map[string]string{".cline/data/settings/cline_mcp_settings.json": `{"mcpServers":{"notes":{"disabled":false,` + server + `}}}`},
		argv: []string{"--json", "-P", "anthropic", "-m", "claude-sonnet-4-5", "--auto-approve", "true", "{}"},
	},
	{
		name: "cn", host: "model.example.org", key: "OPENAI_API_KEY",
		dir:    "continue@*/node_modules/.bin",
		asks:   []string{"*.continue.dev", "*.posthog.com", "*.sentry.io"},
		home:   map[string]string{"../ws/continue.yaml": continueSettings},
		policy: "    - {host: model.example.org, credential: model}\n",
		argv:   []string{"-p", "--config", "{ws}/continue.yaml", "--auto", "{}"},
		lacks:  []model.Op{model.Edit, model.Spawn},
	},
}

// dirs are the directories with the program, as after an install by npm. Agents
// that CI does not install are tried if they are installed.
func (a worker) dirs(t *testing.T) []string {
	t.Helper()
	if a.dir != "" {
		dirs, err := filepath.Glob(filepath.Join(testenv.AgentsDir(), a.dir))
		if err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	return a.dirsBelow(t, testenv.AgentsDir())
}

// accountDirs are dirs for a program whose logins are tested, which CI installs.
func (a worker) accountDirs(t *testing.T) []string {
	t.Helper()
	dirs := a.dirsBelow(t, testenv.AgentsDir())
	if dirs == nil {
		dirs = a.dirsBelow(t, testenv.AccountsDir())
	}
	if dirs == nil {
		t.Fatalf("%s is not installed: tools/needs does it", a.name)
	}
	return dirs
}

func (a worker) dirsBelow(t *testing.T, below string) []string {
	t.Helper()
	d, err := agent.Named(a.name)
	if err != nil {
		t.Fatal(err)
	}
	// No PATH: only what tools/needs installed, nothing else on this machine.
	installed, err := agent.Find(t.Context(), d, nil, below)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range installed {
		if filepath.Base(i.Program) == a.name {
			return []string{filepath.Dir(i.Program)}
		}
		if i.Node != "" {
			return []string{filepath.Join(i.Dir, "node_modules", ".bin"), filepath.Dir(i.Node)}
		}
	}
	return nil
}

// TestAgentsAtWork lets each installed agent program do a complete piece of
// legitimate work inside, with the scripted model as its provider. The key of the
// provider and the token of the registry stay outside.
func TestAgentsAtWork(t *testing.T) {
	var hosts []string
	for _, w := range workers {
		hosts = append(hosts, w.host)
	}
	withModels(t, testenv.Agents, hosts, func(t *testing.T, w *world, p *provider) {
		p.serve(w)
		for _, a := range workers {
			if dirs := a.dirs(t); dirs != nil {
				t.Run(a.name, func(t *testing.T) { a.work(t, w, p, dirs) })
			}
		}
	})
}

// workPolicy lets the agent install from the private registry, with a token that
// it does not get.
const workPolicy = `version: 1
extends: local
credentials:
  - {name: registry, source: {env: API_TOKEN}, env: API_TOKEN}
network:
  allow:
    - {host: private.example.org, credential: registry, methods: [GET]}
`

func (a worker) work(t *testing.T, w *world, m *provider, dirs []string) {
	p := newFixture(t, w.root, testenv.Git, testenv.Node, testenv.NPM)
	a.settle(p, dirs)
	name := a.name + "-work"
	m.add(name, p.ws, a.workOf())
	m.add(name+"-sub", p.ws, subWork)
	said := a.run(p, dirs, a.argv, name)
	if got, refused := m.reached(name); got != len(work) {
		t.Fatalf("the agent has come to step %d of %d; the provider refused %q\n%s", got, len(work), refused, said)
	}
	if told := m.told[a.name]; told != (a.dir == "") || strings.Contains(said, "changed its copy") {
		t.Errorf("that it was told where it runs is %v:\n%s", told, said)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what came of the steps: %+v\n%s", m.said[name], said)
		}
	})
	for file, want := range map[string]string{
		"commits": "2\n", "tested": "passed\n", "work/greet.js": "module.exports = name => 'Good morning, ' + name;\n",
		"work/NOTES.md": "The greeting depends on the time of day.\n",
	} {
		if got := p.read(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if !slices.Contains(a.lacks, model.MCP) && p.read("noted") != "done\n" {
		t.Errorf("the MCP server was told %q", p.read("noted"))
	}
	if !slices.Contains(a.lacks, model.Spawn) {
		contains(t, p.read("shown"), "NOTES.md")
	}
	contains(t, p.bare("git -C work log -1 --format=%an:%s"), "agent:greet: say good morning")
	a.recorded(t, p)
	if a.resume != nil {
		a.goOn(t, p, m, dirs)
	}
	found := p.alerts()
	t.Log(counted(found))
	quiet(t, found)
	for _, secret := range []string{modelKey, token} {
		if strings.Contains(said, secret) {
			t.Errorf("%s is printed:\n%s", secret, said)
		}
		if found := p.bare(`grep -rlFe "$0" .. || true`, secret); found != "" {
			t.Errorf("%s is in %s", secret, found)
		}
	}
}

// settle sets up the agent's user: the program in PATH, a configured home and a
// project to clone.
func (a worker) settle(p *fixture, dirs []string) {
	p.t.Helper()
	for i, e := range p.env {
		if rest, ok := strings.CutPrefix(e, "PATH="); ok {
			p.env[i] = "PATH=" + strings.Join(append(dirs, rest), ":")
		}
	}
	p.env = append(p.env, "API_TOKEN="+token, a.key+"="+modelKey)
	p.env = append(p.env, a.env...)
	for name, text := range a.home {
		p.write(map[string]string{"../home/" + name: strings.ReplaceAll(text, "{ws}", p.ws)})
	}
	for name, text := range project {
		p.write(map[string]string{"project/" + name: text})
	}
	p.write(map[string]string{"../policy.yaml": a.runPolicy(), "notes.js": notes})
	p.bare("git -C project init -q -b main && git -C project add -A && git -C project -c user.name=s -c user.email=s@example.org commit -q -m first")
}

// runPolicy is the policy of the work, with what the agent needs in addition.
func (a worker) runPolicy() string {
	if a.policy == "" {
		return workPolicy
	}
	lent := "credentials:\n  - {name: model, source: {env: " + a.key + "}, env: " + a.key + "}\n"
	return strings.Replace(workPolicy, "credentials:\n", lent, 1) + a.policy
}

// runArgs are the arguments by which holdfast starts the agent inside.
func (a worker) runArgs(p *fixture, dirs, argv []string, script string) []string {
	args := append([]string{"run", "--policy", p.ws + "/../policy.yaml"}, visible(dirs)...)
	args = append(args, "--", a.name)
	for _, arg := range argv {
		args = append(args, strings.ReplaceAll(strings.ReplaceAll(arg, "{}", "go "+model.Marker(script)), "{ws}", p.ws))
	}
	return args
}

// run starts the agent inside and returns all its output.
func (a worker) run(p *fixture, dirs, argv []string, script string) string {
	p.t.Helper()
	out, complaint := p.both(testenv.Binary(p.t), a.runArgs(p, dirs, argv, script)...)
	for line := range strings.Lines(complaint) {
		host, refused := strings.CutPrefix(line, "holdfast: refused: ")
		host, _, _ = strings.Cut(host, " ")
		host, _, _ = strings.Cut(host, ":")
		asked := func(pattern string) bool { ok, err := path.Match(pattern, host); return ok && err == nil }
		if refused && !slices.ContainsFunc(a.asks, asked) || strings.HasPrefix(line, "holdfast: alert") {
			p.t.Errorf("at honest work: %s", line)
		}
	}
	return out + complaint
}

// visible are the flags that show the program where its owner is unknown: in the test's
// namespace root's files belong to no known user, and directories in PATH with such an
// owner are ignored.
func visible(dirs []string) (flags []string) {
	if os.Geteuid() == 0 {
		return nil
	}
	install, _, _ := strings.Cut(dirs[0], "/node_modules/")
	flags = []string{"--ro", install}
	for _, dir := range dirs[1:] {
		flags = append(flags, "--ro", dir)
	}
	return flags
}

// goOn lets the agent continue in a second run where the first one ended: the
// history is there, and the request contains it.
func (a worker) goOn(t *testing.T, p *fixture, m *provider, dirs []string) {
	t.Helper()
	name := a.name + "-more"
	m.add(name, p.ws, []model.Step{{Op: model.Shell, Command: "echo more > {ws}/more"}})
	said := a.run(p, dirs, a.resume, name)
	if got := p.read("more"); got != "more\n" {
		t.Errorf("after the second run: %q\n%s", got, said)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.both[a.name] {
		t.Errorf("the second run does not know of the first:\n%s", said)
	}
}
