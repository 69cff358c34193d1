//go:build linux

package review

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/workspace"
)

// obeyedRow is something that a host executes or obeys although its name is on no
// list: what lies in the workspace, and the path that a run changes there.
type obeyedRow struct {
	name   string
	lower  []string
	change string // path; new where it is not in lower
	git    string // the user's own ~/.gitconfig
	not    bool   // the host does not obey it
}

const repository = ".git/HEAD=ref: refs/heads/main\n"

func obeyedRows() []obeyedRow {
	config := func(text string, more ...string) []string {
		return append([]string{repository, ".git/objects/", ".git/refs/", ".git/config=[core]\n\tbare = false\n" + text}, more...)
	}
	return []obeyedRow{
		{name: "what a listed link leads to", lower: []string{".envrc->env/rc", "env/rc=old\n"}, change: "env/rc"},
		{name: "what a listed link will lead to", lower: []string{".envrc->env/rc", "env/"}, change: "env/rc"},
		{name: "a link that a listed link leads to", lower: []string{"AGENTS.md->CLAUDE.md", "CLAUDE.md->doc/AGENTS.txt", "doc/AGENTS.txt=old\n"}, change: "doc/AGENTS.txt"},
		{name: "below a directory that a listed link leads to", lower: []string{".vscode->conf", "conf/settings.json={}\n"}, change: "conf/tasks.json"},
		{name: "what a link in a listed directory leads to", lower: []string{".claude/commands->prompts", "x=1\n", ".claude/agents->../agents", "agents/a.md=old\n"}, change: "agents/a.md"},
		{name: "behind a link to an absolute path", lower: []string{".envrc->WS/env/rc", "env/rc=old\n"}, change: "env/rc"},
		{name: "the whole workspace is a listed directory", lower: []string{".vscode->.", "x=1\n"}, change: "tasks.json"},
		{name: "an included file", lower: config("[include]\n\tpath = ../gitinc\n", "gitinc=\n"), change: "gitinc"},
		{name: "an included file that is not there", lower: config("[include]\n\tpath = ../gitinc\n"), change: "gitinc"},
		{name: "a file that an included file includes", lower: config("[include]\n\tpath = ../a\n", "a=[include]\n\tpath = b/c\n", "b/c=\n"), change: "b/c"},
		{name: "core.hooksPath", lower: config("\thooksPath = tools/hooks\n", "tools/hooks/README=x\n"), change: "tools/hooks/pre-commit"},
		{name: "core.hooksPath that is not there", lower: config("\thooksPath = tools/hooks\n", "tools/x=x\n"), change: "tools/hooks/pre-commit"},
		{name: "core.hooksPath that is the top", lower: config("\thooksPath = .\n", "x=x\n"), change: "pre-commit"},
		{name: "a program of a filter", lower: config("[filter \"x\"]\n\tclean = ./tools/clean -a\n", "tools/clean=old\n"), change: "tools/clean"},
		{name: "a script of an alias that an interpreter reads", lower: config("[alias]\n\tx = !sh build/run\n", "build/run=old\n"), change: "build/run"},
		{name: "an included file of the user's own configuration", lower: []string{repository, ".git/objects/", ".git/refs/", "shared.inc=\n"}, git: "[include]\n\tpath = WS/shared.inc\n", change: "shared.inc"},
		{name: "a server of .mcp.json", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"python3","args":["tools/server.py"]}}}`, "tools/server.py=old\n"}, change: "tools/server.py"},
		{name: "a server of .mcp.json that is not there", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"node","args":["dist/server.js"]}}}`, "src/x=1\n"}, change: "dist/server.js"},
		{name: "a server without an end that an interpreter reads", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"python3","args":["server"]}}}`, "server=old\n"}, change: "server"},
		{name: "a server in a file with comments", lower: []string{".vscode/mcp.json={ // ours\n \"servers\": {\"a\": {\"command\": \"tools/run\"}},}\n", "tools/run=old\n"}, change: "tools/run"},
		{name: "a hook of an agent", lower: []string{`.claude/settings.json={"hooks":{"Stop":[{"hooks":[{"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/ci/done.sh"}]}]}}`, "ci/done.sh=old\n"}, change: "ci/done.sh"},
		{name: "what an agent's environment names", lower: []string{`.claude/settings.json={"env":{"BASH_ENV":"./ci/env"}}`, "ci/env=old\n"}, change: "ci/env"},
		{name: "a server in lines of TOML", lower: []string{".codex/config.toml=[mcp_servers.a]\ncommand = \"python3\"\nargs = [\n  \"tools/srv.py\",\n]\n", "tools/srv.py=old\n"}, change: "tools/srv.py"},
		{name: "settings of an agent behind a link", lower: []string{".mcp.json->conf/mcp", `conf/mcp={"mcpServers":{"a":{"command":"./run/it"}}}`, "run/it=old\n"}, change: "run/it"},
		{name: "an ordinary file", lower: config("", ".envrc->env/rc", "env/rc=old\n", "src/a=old\n"), change: "src/a", not: true},
		{name: "a file that a permission of an agent mentions", lower: []string{`.claude/settings.json={"permissions":{"allow":["Read(./src/a)"]}}`, "src/a=old\n"}, change: "src/a", not: true},
	}
}

// lay makes the workspace of a row.
func (r obeyedRow) lay(f *field) []workspace.Option {
	f.t.Helper()
	for _, row := range r.lower {
		f.make(f.ws, strings.ReplaceAll(row, "WS", f.ws))
	}
	if r.git == "" {
		return nil
	}
	return []workspace.Option{workspace.GitConfig(f.ws+"/../.gitconfig", filepath.Dir(f.ws), []byte(strings.ReplaceAll(r.git, "WS", f.ws)))}
}

// What a host obeys by way of something else is held whatever the way: a run that
// writes to the workspace, and a review of what it left.
func TestWhatIsObeyedByWayOfSomethingElse(t *testing.T) {
	for _, row := range obeyedRows() {
		t.Run("review/"+row.name, func(t *testing.T) {
			f := newField(t, Overlay)
			options := row.lay(f)
			f.upper(row.change+"=new\n", "ok.txt=new\n")
			source := f.source()
			source.Obey = options
			s, err := Collect(t.Context(), source)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.Find(row.change).Flagged(); got == row.not {
				t.Errorf("flagged: %t; %q", got, lines(s))
			}
			if _, err := s.Apply(t.Context(), Options{Safe: true}); err != nil {
				t.Error(err)
			}
			if now, err := os.ReadFile(f.ws + "/" + row.change); string(now) == "new\n" != row.not {
				t.Errorf("after --apply-all-safe: %q, %v", now, err)
			}
		})
		t.Run("direct/"+row.name, func(t *testing.T) {
			if row.change == "tasks.json" || row.change == "pre-commit" {
				return // the workspace itself stays writable, with a warning: see the next test
			}
			f := newField(t, Direct)
			snap, err := workspace.Scan(t.Context(), f.ws, workspace.DefaultRules(), row.lay(f)...)
			if err != nil {
				t.Fatal(err)
			}
			held := slices.ContainsFunc(snap.Protected(), func(p policy.Protected) bool {
				return strings.HasPrefix(row.change+"/", p.Path+"/")
			})
			if !held {
				f.make(f.ws, row.change+"=new\n")
				report, err := snap.Settle(t.Context(), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				held = len(report.Quarantined) > 0
			}
			if held == row.not {
				t.Errorf("held: %t", held)
			}
		})
	}
}

// What the run itself made lead somewhere is judged as if all were applied.
func TestWhatWouldBeObeyed(t *testing.T) {
	for name, rows := range map[string][]string{
		"a new link":                {".envrc->env/rc", "env/rc=new\n"},
		"a new link to a new link":  {".vscode->a", "a->conf", "conf/rc=new\n"},
		"a new server":              {`.mcp.json={"mcpServers":{"a":{"command":"sh","args":["env/rc"]}}}`, "env/rc=new\n"},
		"an include that is new":    {".git/config=[include]\n\tpath = ../env/rc\n", "env/rc=new\n"},
		"a directory became a link": {"old->env", "env/rc=new\n"},
	} {
		f := newField(t, Overlay).lower(repository, ".git/objects/", ".git/refs/", ".git/config=\n", "old/rc=old\n", "CLAUDE.md->old/rc").upper(rows...)
		for _, c := range f.collect().Changes {
			if filepath.Base(string(c.Path)) == "rc" && !c.Flagged() {
				t.Errorf("%s: %s has no flag", name, c)
			}
		}
	}
}
