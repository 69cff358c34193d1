package policy

import (
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// listedWorld has programs in a directory of PATH that nothing inside can write,
// links to them, and others of the same names where the command can write.
func listedWorld(t *testing.T, list string) *world {
	w := newWorld(t)
	for _, name := range []string{"usr/bin/git", "usr/bin/node", "usr/bin/python3.11", "usr/bin/env", "usr/bin/dash", "usr/lib/npm/cli.js", "usr/lib/git-core/git-remote-http",
		"home/u/ws/git", "home/u/ws/build.sh", "home/u/ws/scripts/lint", "home/u/ws/scripts/deep/x", "outside/tool"} {
		w.tool(name)
	}
	w.link("python3.11", "usr/bin/python3")
	w.link("../lib/npm/cli.js", "usr/bin/npm")
	w.link("/home/u/ws/build.sh", "usr/bin/strayed")
	w.link("/home/u/ws/back", "usr/bin/round")
	w.link("/usr/bin/dash", "home/u/ws/back")
	w.link("/outside", "home/u/linked")
	w.write(userFile, "version: 1\nprograms:\n  allow: ["+list+"]\n  else: refuse\n", 0o644)
	return w
}

func consentOf(t *testing.T, p Plan) *Consent {
	t.Helper()
	g, err := p.Consent()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestProgramsAreListed compares what would be executed with lists.
func TestProgramsAreListed(t *testing.T) {
	for _, row := range []struct{ list, file, want string }{
		{"git", "usr/bin/git", ""},
		{"git", "home/u/ws/git", "home/u/ws/git"}, // a name is that of no file that the command wrote
		{"git", "usr/bin/node", "usr/bin/node"},
		{"git", "usr/bin/git (deleted)", "usr/bin/git (deleted)"},
		{"python3", "usr/bin/python3.11", ""},
		{"npm", "usr/lib/npm/cli.js", ""},
		{"python3*", "usr/bin/python3.11", ""},
		{"python3*", "usr/bin/git", "usr/bin/git"},
		{"strayed", "home/u/ws/build.sh", "home/u/ws/build.sh"},
		{"round", "usr/bin/dash", "usr/bin/dash"}, // by a link that the command could lead elsewhere
		{"ROOT/usr/bin/python3", "usr/bin/python3.11", ""},
		{"ROOT/usr/lib/git-core/*", "usr/lib/git-core/git-remote-http", ""},
		{"~/linked/tool", "outside/tool", ""},
		{"~/linked/*", "outside/tool", ""},
		{"~/linked/*", "outside/to/tool", "outside/to/tool"},
		{"./build.sh", "home/u/ws/build.sh", ""},
		{"scripts/lint", "home/u/ws/scripts/lint", ""},
		{"./scripts/*", "home/u/ws/scripts/lint", ""},
		{"./scripts/*", "home/u/ws/scripts/deep/x", "home/u/ws/scripts/deep/x"},
		{"./scripts/*", "home/u/ws/scripts", "home/u/ws/scripts"},
		{"./scripts/**", "home/u/ws/scripts/deep/x", ""},
		{"./scripts/**", "home/u/ws/scripts", "home/u/ws/scripts"},
		{"./s*/**", "home/u/ws/scripts/made/later", ""},
		{"./later", "home/u/ws/later", ""},
		{"", "usr/bin/git", "usr/bin/git"},
	} {
		t.Run(row.list+" "+row.file, func(t *testing.T) {
			w := listedWorld(t, row.list)
			w.write(userFile, strings.ReplaceAll("version: 1\nprograms:\n  allow: ["+row.list+"]\n  else: refuse\n", "ROOT", w.root), 0o644)
			g := consentOf(t, w.plan(w.options()))
			j := g.Judge(event.Attempt{Kind: event.KindExec, Process: event.Process{Executable: w.at(row.file)}})
			if got := strings.TrimPrefix(j.Unlisted, w.root+"/"); got != row.want || (j.Verdict == event.Denied) != (row.want != "") {
				t.Errorf("unlisted %q and %v, want %q", got, j.Verdict, row.want)
			}
			if row.want != "" && j.Rule.Origin != w.at(userFile)+":4" {
				t.Errorf("by %s", j.Rule.Origin)
			}
		})
	}
}

// TestScriptsAreListedTwice compares scripts and what interprets them, and the
// command of the run.
func TestScriptsAreListedTwice(t *testing.T) {
	w := listedWorld(t, "dash, ./scripts/*, npm")
	g := consentOf(t, w.plan(w.options()))
	lint, build, dash, env := w.at("home/u/ws/scripts/lint"), w.at("home/u/ws/build.sh"), w.at("usr/bin/dash"), "/usr/bin/env"
	for _, row := range []struct {
		name, script string
		between      []string
		executable   string
		command      bool
		want         string
	}{
		{"both are", lint, nil, dash, false, ""},
		{"the script is not", build, nil, dash, false, build},
		{"the interpreter is not", lint, nil, w.at("usr/bin/node"), false, w.at("usr/bin/node")},
		{"one between is not", lint, []string{build}, dash, false, build},
		{"env executes what is judged then", w.at("usr/lib/npm/cli.js"), nil, env, false, ""},
		{"another env", lint, nil, w.at("home/u/ws/env"), false, w.at("home/u/ws/env")},
		{"env by itself", "", nil, env, false, env},
		{"what could not be found out", "", nil, "", false, "?"},
		{"the command of the run", build, nil, w.at("usr/bin/node"), true, ""},
	} {
		a := event.Attempt{Kind: event.KindExec, Script: row.script, Between: row.between, Command: row.command, Process: event.Process{Executable: row.executable}}
		if j := g.Judge(a); j.Unlisted != row.want {
			t.Errorf("%s: unlisted %q, want %q", row.name, j.Unlisted, row.want)
		}
	}
	if j := g.Judge(event.Attempt{Kind: event.KindFile, Path: build, Operation: "write"}); j.Unlisted != "" || j.Verdict != event.Allowed {
		t.Errorf("a change of a file: %+v", j)
	}
}

// TestProgramsBesideConsent says which rule decides where there are both.
func TestProgramsBesideConsent(t *testing.T) {
	for _, row := range []struct {
		mode, ask string
		want      event.Verdict
	}{
		{"refuse", "", event.Denied}, {"refuse", `ask: [{when: 'program == "node"'}]`, event.Denied},
		{"report", "", event.Allowed}, {"report", `ask: [{when: 'program == "node"'}]`, event.Unknown},
		{"report", `deny: [{when: 'program == "node"'}]`, event.Denied},
	} {
		w := listedWorld(t, "git")
		w.write(userFile, "version: 1\nprograms: {allow: [git], else: "+row.mode+"}\n"+row.ask+"\n", 0o644)
		g := consentOf(t, w.plan(w.options()))
		j := g.Judge(event.Attempt{Kind: event.KindExec, Process: event.Process{Executable: w.at("usr/bin/node"), Argv: []string{"node"}}})
		if j.Verdict != row.want || j.Unlisted != w.at("usr/bin/node") {
			t.Errorf("%s %s: %v, %q", row.mode, row.ask, j.Verdict, j.Unlisted)
		}
	}
	w := newWorld(t)
	for _, text := range []string{"", "programs: {else: off}\n", "programs: {allow: [git], else: off}\n"} {
		w.write(userFile, "version: 1\n"+text, 0o644)
		if g := consentOf(t, w.plan(w.options())); g.Wants(event.KindExec) {
			t.Errorf("%q: executions are looked at", text)
		}
	}
}

// TestProgramsOfPolicies tests which lists are refused, and for whom.
func TestProgramsOfPolicies(t *testing.T) {
	const user = "programs: {allow: [git, ./scripts/*], else: report}\n"
	for _, row := range []struct{ name, user, project, want string }{
		{"a list alone", "programs: {allow: [git]}\n", "", "p.yaml:2: programs.allow names programs, but programs.else does not say what happens to the others"},
		{"an unknown word", "programs: {else: deny}\n", "", `programs.else: unknown value "deny"`},
		{"a directory", "programs: {allow: [./scripts], else: report}\n", "", "programs.allow: ./scripts is a directory"},
		{"a directory by its end", "programs: {allow: [./scripts/], else: report}\n", "", "is not a program"},
		{"a pattern that is none", "programs: {allow: ['[a'], else: report}\n", "", "syntax error in pattern"},
		{"** in between", "programs: {allow: ['./**/x'], else: report}\n", "", "** is allowed only after a slash at the end"},
		{"a path that goes up", "programs: {allow: [../x], else: report}\n", "", "goes up with .."},
		{"a link of the workspace", "programs: {allow: [./back], else: report}\n", "", "where what runs inside could have made it"},
		{"a project that adds", user, "programs: {allow: [node]}\n", "programs.allow: node would widen"},
		{"a project that switches off", user, "programs: {else: off}\n", "programs.else: off would widen"},
		{"a project that names the same and refuses", user, "programs: {allow: [git], else: refuse}\n", ""},
		{"a project that takes all away", user, "programs: {allow: []}\n", ""},
		{"a project with a list where there is none", "", "programs: {allow: [node], else: refuse}\n", ""},
		{"a project with a list where it is off", "programs: {allow: [git], else: off}\n", "programs: {allow: [node], else: report}\n", ""},
	} {
		w := listedWorld(t, "")
		w.write(userFile, "version: 1\n"+row.user, 0o644)
		if row.project != "" {
			w.write("home/u/ws/holdfast.yaml", "version: 1\n"+row.project, 0o644)
		}
		_, err := w.compile(w.options())
		text := ""
		if err != nil {
			text = strings.ReplaceAll(err.Error(), w.at(userFile), "p.yaml")
		}
		if row.want == "" && err != nil || !strings.Contains(text, row.want) {
			t.Errorf("%s: %q, want %q", row.name, text, row.want)
		}
	}
}

// TestProgramsAreExplained explains whether a file may be started, and notes the
// entries of a list that are not what they seem.
func TestProgramsAreExplained(t *testing.T) {
	w := listedWorld(t, "git, nosuch, ./scripts/*")
	p := w.plan(w.options())
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "nosuch is in no directory of PATH") || !strings.Contains(notes, "./scripts/* can be written inside") || strings.Contains(notes, "allow: git") {
		t.Errorf("notes: %s", notes)
	}
	for _, row := range []struct {
		mode, query string
		allowed     bool
		want        string
	}{
		{"refuse", "usr/bin/git", true, "programs.allow has it"},
		{"refuse", "usr/bin/node", false, "programs.allow does not list it"},
		{"report", "usr/bin/node", true, "which is reported"},
	} {
		p.Programs.Else = row.mode
		a, err := ExplainPath(p, w.host, nil, w.at(row.query))
		if err != nil || a.Execute.Allowed != row.allowed || !strings.Contains(a.Execute.Why, row.want) {
			t.Errorf("%s %s: %+v, %v", row.mode, row.query, a.Execute, err)
		}
	}
}

// TestHooksMayBeStarted has the program of agents' hooks in every list.
func TestHooksMayBeStarted(t *testing.T) {
	w := listedWorld(t, "git")
	a := event.Attempt{Kind: event.KindExec, Process: event.Process{Executable: w.host.Executable}}
	if j := consentOf(t, w.plan(w.options())).Judge(a); j.Unlisted != "" {
		t.Errorf("unlisted %q", j.Unlisted)
	}
}
