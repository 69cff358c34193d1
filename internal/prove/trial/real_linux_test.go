package trial

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestRealAgents plays a few probes against the newest Claude Code and Codex
// without a sandbox: the agents do what they are asked, or the trial shows
// nothing.
func TestRealAgents(t *testing.T) {
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			run, err := Run(t.Context(), Column{Agent: name, Posture: "bare"}, realTrial(t, name, WorkerCommand, standInProbes()))
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range run.Rows {
				want := report.Escaped
				if i == 0 {
					want = report.Held
				}
				if row.Verdict != want {
					t.Errorf("%s is %s: %s", row.ID, row.Verdict, row.Reason)
				}
			}
		})
	}
}

// realTrial prepares a trial of the newest version of an agent.
func realTrial(t *testing.T, name, worker string, probes []Probe) Options {
	t.Helper()
	testenv.Need(t, testenv.Agents, nil)
	testenv.Need(t, testenv.UserNS, nil)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d, err := agent.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := agent.Install(t.Context(), agent.Request{Driver: d, Version: d.Latest, Dir: testenv.AgentsDir()})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := d.At(program.Version)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	prober, err := probe.WriteProber(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Spec: spec, Program: program, Probes: probes, Worker: []string{exe, worker}, Prober: prober, Dir: dir}
}

// TestRealAgentsInside asks the newest Claude Code and Codex inside Holdfast for
// something of each kind, and for all that their MCP server offers: whatever the
// agent can be asked to do is held and recorded. The programs are those that a user
// starts by name.
func TestRealAgentsInside(t *testing.T) {
	classes := map[string]bool{}
	var probes []Probe
	for _, p := range Catalogue() {
		if p.Control || p.Class == "mcp" || !classes[p.Class] && (!p.Late || p.Class == "after-exit") {
			probes = append(probes, p)
			classes[p.Class] = true
		}
	}
	// What only the agent's own report records.
	reported := slices.DeleteFunc(slices.Clone(probes), func(p Probe) bool { return !p.Control && p.ID != "AGT-MCP-WRITE" })
	for _, tt := range []struct {
		name, agent string
		path        func(*testing.T, agent.Installed) string // the directory of the command
		probes      []Probe
	}{
		{"claude that npm installed for its user", "claude", npmGlobal, probes},
		{"claude that its own installer installed", "claude", ownInstaller, reported},
		{"codex that npm installed for a project", "codex", npmProject, probes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := realTrial(t, tt.agent, catalogueCommand, tt.probes)
			o.Self, o.StepLimit = testenv.Binary(t), 2*time.Minute
			o.Program = found(t, tt.agent, tt.path(t, o.Program))
			run, err := Run(t.Context(), Column{Agent: tt.agent, Posture: "bare", Inside: "holdfast"}, o)
			if err != nil {
				t.Fatal(err)
			}
			held := map[string]bool{}
			for _, row := range run.Rows {
				held[row.Class] = held[row.Class] || row.Verdict == report.Held
				if row.Verdict != report.Held && !row.Missing {
					t.Errorf("%s is %s: %s", row.ID, row.Verdict, row.Reason)
				}
			}
			for _, p := range tt.probes {
				if !held[p.Class] {
					t.Errorf("nothing of the class %s could be asked for", p.Class)
				}
			}
		})
	}
}

// found is the program that is found by its command in a directory.
func found(t *testing.T, name, dir string) agent.Installed {
	t.Helper()
	d, err := agent.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := agent.Find(t.Context(), d, []string{"PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin"}, t.TempDir())
	if err != nil || len(all) != 1 || all[0].Version != d.Latest {
		t.Fatalf("%s in %s: %+v, %v", name, dir, all, err)
	}
	return all[0]
}

// npmGlobal lays Claude Code out as `npm install -g` does: the command is a link to
// claude.exe, which is another name of the program of a package for the platform.
func npmGlobal(t *testing.T, i agent.Installed) string {
	dir := t.TempDir()
	pkg := filepath.Join(dir, "lib/node_modules/@anthropic-ai/claude-code")
	below, err := filepath.Rel(i.Dir, i.Program)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(pkg, below)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(program), 0o755), os.MkdirAll(filepath.Join(pkg, "bin"), 0o755), os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		programs.Copy(i.Program, program), os.Link(program, filepath.Join(pkg, "bin/claude.exe")),
		os.Symlink("../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", filepath.Join(dir, "bin/claude")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bin")
}

// ownInstaller lays Claude Code out as its own installer does: the command is a link to
// a file that is called as the version.
func ownInstaller(t *testing.T, i agent.Installed) string {
	dir := t.TempDir()
	program := filepath.Join(dir, "share/claude/versions", i.Version)
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(program), 0o755), os.Mkdir(filepath.Join(dir, "bin"), 0o755),
		programs.Copy(i.Program, program), os.Symlink(program, filepath.Join(dir, "bin/claude")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bin")
}

// npmProject is where npm put the command of a package of a project, a script for node.
func npmProject(_ *testing.T, i agent.Installed) string {
	return filepath.Join(i.Dir, "node_modules/.bin")
}

// TestFlips finds the version from which on a verdict holds.
func TestFlips(t *testing.T) {
	run := func(version, verdict string) report.Run {
		return report.Run{Target: report.Target{Name: "claude bypass", Version: version}, Rows: []report.Row{{ID: "A", Verdict: verdict}, {ID: "B", Verdict: report.Held}}}
	}
	for _, tt := range []struct {
		runs []report.Run
		want string
	}{
		{[]report.Run{run("2.1.2", report.Held), run("2.1.10", report.Held), run("2.1.1", report.Escaped)}, "held from 2.1.2, ESCAPED until 2.1.1"},
		{[]report.Run{run("1.0.0", report.Held), run("1.1.0", report.Escaped), run("1.2.0", report.Inconclusive), run("1.3.0", report.Escaped), run("1.4.0", report.Held)}, "held from 1.4.0, ESCAPED from 1.1.0 until 1.3.0, held until 1.0.0"},
	} {
		got := Flips(tt.runs)
		if len(got) != 1 || got[0].ID != "A" || got[0].String() != tt.want {
			t.Errorf("got %v, not %s", got, tt.want)
		}
	}
}

// TestPublishedFlips looks in results of trials for published flaws of Claude
// Code, with the last version that has each and the first without it.
func TestPublishedFlips(t *testing.T) {
	paths, err := filepath.Glob("testdata/claude-*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no results: %v", err)
	}
	var runs []report.Run
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.ReadBaseline(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		runs = append(runs, r)
	}
	flips := Flips(runs)
	for _, want := range []struct{ cve, id, until, from string }{
		{"CVE-2026-25725", "AGT-KEEP-CLAUDE", "2.1.1", "2.1.2"},
		{"CVE-2026-39861", "AGT-LINK-DIR", "2.1.63", "2.1.64"},
	} {
		i := slices.IndexFunc(Catalogue(), func(p Probe) bool { return p.ID == want.id })
		if i < 0 || !slices.Contains(Catalogue()[i].Refs, want.cve) {
			t.Errorf("%s does not name %s", want.id, want.cve)
		}
		if !slices.ContainsFunc(flips, func(f Flip) bool {
			return f.Target == "claude auto" && f.ID == want.id && slices.ContainsFunc(f.Changes, func(c FlipChange) bool { return c.Verdict == report.Escaped && c.To == want.until }) &&
				slices.ContainsFunc(f.Changes, func(c FlipChange) bool { return c.Verdict == report.Held && c.From == want.from })
		}) {
			t.Errorf("%s: %s is not done until %s and not from %s on: %v", want.cve, want.id, want.until, want.from, flips)
		}
	}
}
