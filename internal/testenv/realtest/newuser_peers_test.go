package realtest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// sandbox is a program that runs a shell command, with what its documents tell a
// new user to write first.
type sandbox struct {
	name    string
	program string            // looked for in PATH
	home    map[string]string // files of the home
	version []string          // prints its version; nil where the bench names it
	before  []string          // before the command of the shell
	names   string            // a regular expression: the line says that it was the sandbox
}

// srtExample is the "Complete Configuration Example" of the README of
// @anthropic-ai/sandbox-runtime 0.0.83, without what is for macOS.
const srtExample = `{
  "network": {
    "allowedDomains": ["github.com", "*.github.com", "lfs.github.com", "api.github.com", "npmjs.org", "*.npmjs.org"],
    "deniedDomains": ["malicious.com"],
    "allowUnixSockets": ["/var/run/docker.sock"],
    "allowLocalBinding": false
  },
  "filesystem": {
    "denyRead": ["~/.ssh"],
    "allowRead": [],
    "allowWrite": [".", "src/", "test/", "/tmp"],
    "denyWrite": [".env", "config/production.json"]
  }
}
`

// sandboxes are compared. Codex is as it starts in a directory under version
// control: workspace-write, no network.
var sandboxes = []sandbox{
	{name: "none", program: "bash", names: `\x00`},
	{name: "holdfast", program: "holdfast", before: []string{"run", "--"}, names: holdfastSays.String()},
	{name: "srt", program: "srt", version: []string{"--version"}, home: map[string]string{".srt-settings.json": srtExample}, before: []string{"--"}, names: `(?i)sandbox|allowlist|\bsrt\b`},
	{name: "codex", program: "codex", version: []string{"--version"}, before: []string{"sandbox", "-c", `sandbox_mode="workspace-write"`, "--"}, names: `(?i)sandbox|codex`},
}

// TestRootFirstActions runs the fourteen actions as shell commands in each
// sandbox that is installed.
func TestRootFirstActions(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	needForActions(t)
	names := map[string]string{publicRegistry: "93.184.215.31", docsHost: "93.184.215.32"}
	testenv.WithNetwork(t, names, func(t *testing.T, n *testenv.Network) {
		root := homesDir(t)
		testenv.NoLeaks(t, root)
		w := &world{t: t, net: n, root: root}
		w.nameServer()
		w.publicSites()
		all := make([]tried, len(sandboxes))
		t.Cleanup(func() { writeFigures(t, "sandboxes", all) })
		for i, s := range sandboxes {
			program, err := exec.LookPath(s.program)
			if s.program == "holdfast" {
				program, err = testenv.Binary(t), nil
			}
			if err != nil {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				all[i] = s.act(t, root, i, program)
				for _, o := range all[i].Actions {
					t.Logf("%-32s %s\n%s", o.Action, o.Verdict, o.Said)
				}
				switch s.name {
				case "none":
					if slices.ContainsFunc(all[i].Actions, func(o outcome) bool { return o.Verdict != works }) {
						t.Error("something does not work without a sandbox either")
					}
				case "holdfast":
					hour{Name: s.name, Typed: s.before, Status: "0", Actions: all[i].Actions}.compare(t)
				}
			})
		}
	})
}

func (s sandbox) act(t *testing.T, root string, n int, program string) tried {
	u := makeUser(t, root, fmt.Sprint("u", n), []string{filepath.Dir(program)}, nil, s.home)
	of := tried{Name: s.name}
	if s.version != nil {
		out, err := u.run(append([]string{s.program}, s.version...)...)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		of.Version = regexp.MustCompile(`[0-9]+\.[0-9.]+[0-9]`).FindString(out)
	}
	for _, a := range actions {
		command := []string{"bash", "-c", a.shell}
		if s.before != nil {
			command = append(append([]string{s.program}, s.before...), command...)
		}
		out, err := u.run(command...)
		seen, after := u.shell(a.after)
		of.Actions = append(of.Actions, a.judge(err == nil, after == nil, out+"\n"+seen, "", regexp.MustCompile(s.names)))
	}
	return of
}

// tried is what a sandbox let happen.
type tried struct {
	Name    string
	Version string
	Actions []outcome
}

func (of tried) measured() bool { return of.Name != "" }
