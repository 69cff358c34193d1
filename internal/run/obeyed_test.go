//go:build linux

package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/review"
)

// obeyedRow is something that a host executes or obeys although its name is on no
// list: what lies in the workspace, and the path that a run changes there.
type obeyedRow struct {
	name   string
	lower  []string
	change string   // path; new where it is not in lower
	home   []string // the user's own settings
	not    bool     // the host does not obey it
}

const gitHead = ".git/HEAD=ref: refs/heads/main\n"

func obeyedRows() []obeyedRow {
	config := func(text string, more ...string) []string {
		return append([]string{gitHead, ".git/objects/", ".git/refs/", ".git/config=[core]\n\tbare = false\n" + text}, more...)
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
		{name: "an included file of the user's own configuration", lower: []string{gitHead, ".git/objects/", ".git/refs/", "shared.inc=\n"}, home: []string{".gitconfig=[include]\n\tpath = WS/shared.inc\n"}, change: "shared.inc"},
		{name: "a server of .mcp.json", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"python3","args":["tools/server.py"]}}}`, "tools/server.py=old\n"}, change: "tools/server.py"},
		{name: "a server of .mcp.json that is not there", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"node","args":["dist/server.js"]}}}`, "src/x=1\n"}, change: "dist/server.js"},
		{name: "a server without an end that an interpreter reads", lower: []string{`.mcp.json={"mcpServers":{"a":{"command":"python3","args":["server"]}}}`, "server=old\n"}, change: "server"},
		{name: "a server in a file with comments", lower: []string{".vscode/mcp.json={ // ours\n \"servers\": {\"a\": {\"command\": \"tools/run\"}},}\n", "tools/run=old\n"}, change: "tools/run"},
		{name: "a hook of an agent", lower: []string{`.claude/settings.json={"hooks":{"Stop":[{"hooks":[{"type":"command","command":"\"$CLAUDE_PROJECT_DIR\"/ci/done.sh"}]}]}}`, "ci/done.sh=old\n"}, change: "ci/done.sh"},
		{name: "what an agent's environment names", lower: []string{`.claude/settings.json={"env":{"BASH_ENV":"./ci/env"}}`, "ci/env=old\n"}, change: "ci/env"},
		{name: "a server in lines of TOML", lower: []string{".codex/config.toml=[mcp_servers.a]\ncommand = \"python3\"\nargs = [\n  \"tools/srv.py\",\n]\n", "tools/srv.py=old\n"}, change: "tools/srv.py"},
		{name: "settings of an agent behind a link", lower: []string{".mcp.json->conf/mcp", `conf/mcp={"mcpServers":{"a":{"command":"./run/it"}}}`, "run/it=old\n"}, change: "run/it"},
		{name: "a server of the user's own settings, by its whole path", lower: []string{"srv/it=old\n"}, home: []string{`.claude.json={"mcpServers":{"a":{"command":"WS/srv/it"}}}`}, change: "srv/it"},
		{name: "a status line of the user's own settings", lower: []string{"ci/line.sh=old\n"}, home: []string{`.claude/settings.json={"statusLine":{"type":"command","command":"sh WS/ci/line.sh"}}`}, change: "ci/line.sh"},
		{name: "a hook of the user's own settings that is in every project", lower: []string{"src/x=1\n", "ci/x=1\n"}, home: []string{`.claude/settings.json={"hooks":{"Stop":[{"hooks":[{"type":"command","command":"$CLAUDE_PROJECT_DIR/ci/done.sh"}]}]}}`}, change: "ci/done.sh"},
		{name: "a notifier of the user's own settings in TOML", lower: []string{"ci/tell.py=old\n"}, home: []string{".codex/config.toml=notify = [\"python3\", \"WS/ci/tell.py\"]\n"}, change: "ci/tell.py"},
		{name: "a server of the user's own settings in YAML", lower: []string{"srv/it=old\n"}, home: []string{".config/goose/config.yaml=extensions:\n  a:\n    cmd: WS/srv/it\n"}, change: "srv/it"},
		{name: "a listed name", lower: []string{"x=1\n", "sub/x=1\n"}, change: "sub/.envrc"},
		{name: "a name in a listed directory", lower: []string{"x=1\n", "sub/.vscode/settings.json={}\n"}, change: "sub/.vscode/tasks.json"},
		{name: "an ordinary file", lower: config("", ".envrc->env/rc", "env/rc=old\n", "src/a=old\n"), change: "src/a", not: true},
		{name: "a file that a permission of an agent mentions", lower: []string{`.claude/settings.json={"permissions":{"allow":["Read(./src/a)"]}}`, "src/a=old\n"}, change: "src/a", not: true},
	}
}

// lay makes the workspace of a row below the home directory that it returns.
func (r obeyedRow) lay(t *testing.T, ws string) (home string) {
	t.Helper()
	home = filepath.Dir(ws)
	for dir, list := range map[string][]string{ws: r.lower, home: r.home} {
		for _, row := range list {
			putRow(t, dir, strings.ReplaceAll(row, "WS", ws))
		}
	}
	return home
}

// putRow makes "path=content", "path->target" or "path/".
func putRow(t *testing.T, root, row string) {
	t.Helper()
	name, text, isFile := strings.Cut(row, "=")
	link, to, isLink := strings.Cut(row, "->")
	isLink = isLink && !(isFile && len(name) < len(link))
	if isLink {
		name = link
	}
	at := filepath.Join(root, name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	switch {
	case isLink:
		err = errors.Join(err, os.Symlink(to, at))
	case isFile:
		err = errors.Join(err, os.WriteFile(at, []byte(text), 0o644))
	default:
		err = errors.Join(err, os.MkdirAll(at, 0o755))
	}
	if err != nil {
		t.Fatalf("%q: %v", row, err)
	}
}

// What a host obeys is held whatever the way by which it is changed: a run that
// writes to the workspace, one that writes to a directory for results while the rest
// waits for a review, the review, and what an agent changed in its copies.
func TestWhatIsObeyedIsHeldByAllWays(t *testing.T) {
	ways := map[string]func(*testing.T, obeyedRow) bool{"direct": heldDirect, "output": heldInOutput, "review": heldInReview, "agents": heldForAgents}
	for _, row := range obeyedRows() {
		for way, held := range ways {
			t.Run(way+"/"+row.name, func(t *testing.T) {
				dir, _, deep := strings.Cut(row.change, "/")
				switch {
				case way == "direct" && (row.change == "tasks.json" || row.change == "pre-commit"):
					return // the workspace itself stays writable, with a warning
				case way == "output" && (!deep || strings.HasPrefix(dir, ".")):
					return // no directory for results can have it
				}
				if got := held(t, row); got == row.not {
					t.Errorf("held: %t", got)
				}
			})
		}
	}
}

func workspaceOf(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Mkdir(dir+"/ws", 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir + "/ws"
}

func heldDirect(t *testing.T, row obeyedRow) bool {
	ws := workspaceOf(t)
	plan := policy.Plan{Workspace: ws, Identity: policy.Identity{Home: row.lay(t, ws)}}
	return heldBySnapshot(t, &plan, ws, row.change, 0)
}

func heldInOutput(t *testing.T, row obeyedRow) bool {
	ws := workspaceOf(t)
	home := row.lay(t, ws)
	dir, rest, _ := strings.Cut(row.change, "/")
	out := filepath.Join(ws, dir)
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	plan := policy.Plan{Workspace: ws, Review: true, Outputs: []string{out}, Identity: policy.Identity{Home: home},
		Paths: []policy.PathRule{{Path: out, Access: policy.Write}}}
	return heldBySnapshot(t, &plan, out, rest, 1)
}

// heldBySnapshot reports whether rel, below root, is read-only inside, or taken away
// when the run has ended.
func heldBySnapshot(t *testing.T, plan *policy.Plan, root, rel string, tree int) bool {
	t.Helper()
	snapshots, err := workspace.Inspect(t.Context(), plan)
	if refused := (*workspace.ListedOutputError)(nil); errors.As(err, &refused) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(snapshots[tree].Protected(), func(p policy.Protected) bool { return strings.HasPrefix(rel+"/", p.Path+"/") }) {
		return slices.ContainsFunc(plan.Protect, func(p policy.Protected) bool {
			return strings.HasPrefix(rel+"/", p.Path+"/") && (tree == 0 || p.Root == root)
		})
	}
	putRow(t, root, rel+"=new\n")
	report, err := snapshots[tree].Settle(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return len(report.Quarantined) > 0
}

func heldInReview(t *testing.T, row obeyedRow) bool {
	ws := workspaceOf(t)
	home := row.lay(t, ws)
	dir := t.TempDir()
	putRow(t, dir+"/upper", row.change+"=new\n")
	putRow(t, dir+"/upper", "ok.txt=new\n")
	s, err := review.Collect(t.Context(), review.Source{Workspace: ws, Dir: dir, Mode: review.Overlay, Rules: workspace.DefaultRules(),
		Began: time.Now().Add(time.Hour), Obey: workspace.HostSettings(home)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Apply(t.Context(), review.Options{Safe: true}); err != nil {
		t.Error(err)
	}
	now, err := os.ReadFile(filepath.Join(ws, row.change))
	applied := string(now) == "new\n"
	if flagged := s.Find(row.change).Flagged(); flagged == applied {
		t.Errorf("flagged: %t, and applied without a look: %t (%v)", flagged, applied, err)
	}
	return !applied
}

// heldForAgents has the workspace of the row for the home directory of the user.
func heldForAgents(t *testing.T, row obeyedRow) bool {
	home := workspaceOf(t)
	row.lower = append(slices.Clone(row.home), row.lower...)
	row.home = nil
	row.lay(t, home)
	c := &state.Changes{Dir: t.TempDir(), Files: []state.ChangedFile{{Place: filepath.Join(home, row.change), Change: "changed", New: "0.new"}}}
	putRow(t, c.Dir, "0.new=new\n")
	obeyed, err := state.ObeyedAmong(t.Context(), home, []*state.Changes{c})
	if err != nil {
		t.Fatal(err)
	}
	return obeyed.Rule(c.Files[0]) != nil
}
