package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// everySet are rules of every kind that the index knows.
func everySet(t testing.TB) *Matcher {
	t.Helper()
	ask := []Rule{{When: `"needle" in argv`}, {When: `verb == "needle"`}, {When: `args.exists(a, a == "needle")`}}
	for _, name := range SetNames {
		ask = append(ask, Rule{Set: name})
	}
	g, err := New(ask, nil, Host{Find: byHash})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func execution(executable string, argv ...string) event.Attempt {
	return event.Attempt{Kind: event.KindExec, Path: executable, ParentExecutable: "/usr/bin/dash",
		ScriptSHA256: ordinaryHash,
		Process:      event.Process{Executable: executable, SHA256: ordinaryHash, Argv: argv}}
}

// unread is an execution of something of unknown content.
func unread(a event.Attempt) event.Attempt {
	a.Process.SHA256 = ""
	return a
}

// boxed is git push through that many nested busyboxes.
func boxed(n int) event.Attempt {
	return execution("/usr/bin/busybox", append(slices.Repeat([]string{"busybox"}, n), "git", "push")...)
}

// TestOddExecutions tries what no honest program does.
func TestOddExecutions(t *testing.T) {
	g, err := New([]Rule{{Set: "git-push"}, {Set: "install"}, {When: `argv[0].endsWith("/git") && "push" in argv`}}, nil, Host{Find: byHash})
	if err != nil {
		t.Fatal(err)
	}
	with := func(a event.Attempt, change func(*event.Attempt)) event.Attempt { change(&a); return a }
	for _, row := range []struct {
		name string
		a    event.Attempt
		asks bool
	}{
		{"git under the name of a shell", execution("/usr/bin/git", "sh", "push"), true},
		{"git under no name", execution("/usr/bin/git", "", "push"), true},
		{"git under a name that is a path", execution("/usr/bin/git", "/", "push"), true},
		{"git under a dashed name of its own", execution("/usr/bin/git", "/x/git-push"), true},
		{"git under a name that is not UTF-8", execution("/usr/bin/git", "\xff\xfe", "push"), true},
		{"no arguments at all, for which half a condition fails", execution("/usr/bin/make"), false},
		{"an argument that is not UTF-8", execution("/usr/bin/git", "git", "-C", "\xff", "push"), true},
		{"an empty option", execution("/usr/bin/git", "git", "", "push"), false},
		{"options that end nowhere", execution("/usr/bin/git", "git", "-C"), false},
		{"a verb with a line break, which git can take for it", execution("/usr/bin/git", "git", "push\n"), true},
		{"a verb with a space, likewise", execution("/usr/bin/git", "git", " push"), true},
		{"the loader of a file that may be anything", execution("/lib64/ld-linux-x86-64.so.2", "x", "./y", "push"), true},
		{"the loader of a descriptor", execution("/lib64/ld-linux-x86-64.so.2", "x", "/proc/self/fd/7", "push"), true},
		{"the loader of a path that is not what it looks", execution("/lib64/ld-linux-x86-64.so.2", "x", "/usr/../home/you/y", "push"), true},
		{"an emulator", execution("/usr/bin/qemu-x86_64-static", "q", "-L", "/usr/x86", "/usr/bin/git", "push"), true},
		{"an emulator of a file that may be anything", execution("/usr/bin/qemu-aarch64", "q", "./x", "push"), true},
		{"an emulator of another program", execution("/usr/bin/qemu-x86_64", "q", "-cpu", "max", "/usr/bin/ls", "push"), false},
		{"a disk of an emulator", execution("/usr/bin/qemu-img", "q", "info", "push"), false},
		{"valgrind", execution("/usr/bin/valgrind", "v", "--tool=none", "git", "push"), true},
		{"the loader of another program", execution("/lib64/ld-linux-x86-64.so.2", "x", "/usr/bin/ls", "push"), false},
		{"a script whose interpreter is a copy of the loader", with(execution("/home/you/project/z", "push", "HEAD"), func(a *event.Attempt) {
			a.Process.SHA256, a.Script, a.Path, a.Interpreted = "hash-of-ld-linux-x86-64.so.2", "/home/you/project/push", "push", []string{"./y", "push"}
		}), true},
		{"a verb in another case", execution("/usr/bin/git", "git", "PUSH"), false},
		{"the end of options before the verb", execution("/usr/bin/git", "git", "--", "push"), true},
		{"a copy in the workspace", with(execution("/home/you/project/ls", "ls", "push"), func(a *event.Attempt) { a.Process.SHA256 = "hash-of-git" }), true},
		{"another program called with the same word", execution("/home/you/project/ls", "ls", "push"), false},
		{"what may be a copy, for its content could not be read", unread(execution("/home/you/project/ls", "ls", "push")), true},
		{"likewise, of which the arguments tell nothing", unread(execution("/home/you/project/ls", "ls")), true},
		{"what could not be read where nothing inside can put it", unread(execution("/usr/bin/ls", "ls", "push")), false},
		{"a script that could not be read", with(execution("/usr/bin/node", "n", "install"), func(a *event.Attempt) { a.Script, a.ScriptSHA256 = "/home/you/project/n", "" }), true},
		{"what could not be read, called as a proxy", unread(execution("/home/you/project/rustup", "ls", "push")), true},
		{"another program by that name", execution("/home/you/project/git", "git", "push"), true},
		{"the loader in the loader", execution("/lib64/ld-linux-x86-64.so.2", "x", "/lib64/ld-linux-x86-64.so.2", "--argv0", "a", "/usr/bin/git", "push"), true},
		{"a copy of the loader", with(execution("/home/you/project/x", "x", "/usr/bin/git", "push"), func(a *event.Attempt) { a.Process.SHA256 = "hash-of-ld-linux-x86-64.so.2" }), true},
		{"the loader with an unknown option", execution("/lib64/ld-linux-x86-64.so.2", "x", "--new", "/usr/bin/git", "push"), true},
		{"busybox in busybox", execution("/usr/bin/busybox", "busybox", "busybox", "git", "push"), true},
		{"busybox in busybox, six deep", boxed(6), true},
		{"busybox in busybox, seven deep", boxed(7), true},
		{"busybox in busybox, eight deep", boxed(8), true},
		{"the loader in the loader, deep", execution("/lib64/ld-linux-x86-64.so.2", append(slices.Repeat([]string{"/lib64/ld-linux-x86-64.so.2"}, 20), "/usr/bin/git", "push")...), true},
		{"a module in a module, deep", execution("/usr/bin/python3", append(append([]string{"python3"}, slices.Repeat([]string{"-m", "python3"}, 20)...), "-m", "pip", "install")...), true},
		{"an applet by coreutils", execution("/usr/bin/coreutils", "x", "--coreutils-prog=git", "push"), true},
		{"a hundred options", execution("/usr/bin/git", append(append([]string{"git"}, slices.Repeat([]string{"-c", "a=b"}, 100)...), "push")...), true},
		{"a hundred options of which nothing is known", execution("/usr/bin/npm", append(append([]string{"npm"}, slices.Repeat([]string{"--x"}, 100)...), "install")...), true},
		{"options with and without a value", execution("/usr/bin/npm", "npm", "--a", "b", "--c", "d", "install"), true},
		{"a script of env is judged when env executes it", with(execution("/usr/bin/env", "npm", "install"), func(a *event.Attempt) { a.Script, a.Path = "/usr/bin/npm", "/usr/bin/npm" }), false},
		{"a script of something called env", with(execution("/home/you/project/env", "npm", "install"), func(a *event.Attempt) { a.Script, a.Path = "/usr/bin/npm", "/usr/bin/npm" }), true},
		{"a proxy is judged when it executes", with(execution("/usr/bin/rustup", "cargo", "install", "x"), func(a *event.Attempt) { a.Path = "/usr/bin/cargo" }), false},
		{"something called as a proxy", execution("/home/you/project/rustup", "cargo", "install", "x"), true},
	} {
		if j := g.Judge(row.a); (j.Verdict == event.Unknown) != row.asks || row.asks && j.Reason == "" {
			t.Errorf("%s: %v by %s, %q", row.name, j.Verdict, j.Rule, j.Reason)
		}
	}
}

// TestCopiesWhereTheyCanBePut: a copy is known by its content wherever
// something inside can have put it, even below a tree of the system.
func TestCopiesWhereTheyCanBePut(t *testing.T) {
	fixed := func(path string) bool {
		return strings.HasPrefix(path, "/home/you/bin/") || SystemFile(path) && !strings.HasPrefix(path, "/usr/local/src/") && !strings.HasPrefix(path, "/etc/written/")
	}
	g, err := New([]Rule{{Set: "git-push"}}, nil, Host{Find: byHash, Fixed: fixed})
	if err != nil {
		t.Fatal(err)
	}
	for path, asks := range map[string]bool{
		"/usr/local/src/project/ls": true, "/etc/written/ls": true, "/dev/shm/ls": true, "/run/ls": true, "/proc/1/fd/3": true, "/tmp/ls": true,
		"/usr/bin/ls": false, "/home/you/bin/ls": false,
	} {
		a := execution(path, "ls", "push")
		a.Process.SHA256 = "hash-of-git"
		if j := g.Judge(a); (j.Verdict == event.Unknown) != asks {
			t.Errorf("%s: %v", path, j.Verdict)
		}
	}
}

// TestMoreReadingsThanAreLookedAt has so many names and options that the
// reading that a rule is about would be one too many.
func TestMoreReadingsThanAreLookedAt(t *testing.T) {
	g, err := New([]Rule{{When: `program == "c" && verb == "needle"`}, {When: `args.size() == 99`}}, nil, Host{Find: byHash})
	if err != nil {
		t.Fatal(err)
	}
	few := execution("/usr/bin/node22.1", "c1.2", "--a", "needle", "last")
	few.Script, few.Path = "/home/you/project/a1.2.js", "/home/you/project/b1.2.js"
	many := few
	many.Process.Argv = []string{"c1.2", "--a", "needle", "--b", "2", "--c", "3", "--d", "4", "--e", "5", "last"}
	none := few
	none.Process.Argv = []string{"c1.2", "--a", "1", "last"}
	for name, row := range map[string]struct {
		a    event.Attempt
		asks bool
	}{"few": {few, true}, "many": {many, true}, "none": {none, false}} {
		readings := g.readings(row.a)
		if full := len(readings) >= maxReadings; full != (name == "many") || len(readings) > maxReadings {
			t.Errorf("%s: %d readings", name, len(readings))
		}
		if j := g.Judge(row.a); (j.Verdict == event.Unknown) != row.asks {
			t.Errorf("%s: %v", name, j.Verdict)
		}
	}
}

// TestConditionsThatFail: a condition that cannot be evaluated counts as met.
func TestConditionsThatFail(t *testing.T) {
	g, err := New([]Rule{{When: `argv[0] == "x"`, Attended: true}, {When: `program == "make" && argv[1] == "x"`}}, []Rule{{When: `program == "make" && argv[7] == "x"`}}, Host{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		a    event.Attempt
		want event.Verdict
		rule string
	}{
		{execution("/usr/bin/make"), event.Denied, `program == "make" && argv[7] == "x"`},
		{execution("/usr/bin/cmake"), event.Unknown, `argv[0] == "x"`},
		{execution("/usr/bin/cmake", "y"), event.Allowed, ""},
		{event.Attempt{Kind: event.KindFile, Path: "/x"}, event.Allowed, ""},
	} {
		if j := g.Judge(row.a); j.Verdict != row.want || j.Rule.When != row.rule || row.want != event.Allowed && j.Reason == "" {
			t.Errorf("%q: %v by %q, %q", row.a.Process.Argv, j.Verdict, j.Rule.When, j.Reason)
		}
	}
}

// TestWhichRuleDecides: deny, then ask, then ask while attended, then the order
// of the policy.
func TestWhichRuleDecides(t *testing.T) {
	attended := Rule{When: `verb == "c"`, Attended: true}
	first, second := Rule{When: `program == "a" && verb == "b"`}, Rule{When: `program == "a"`}
	denied := Rule{When: `"no" in argv`, Reason: "never"}
	g, err := New([]Rule{attended, first, second}, []Rule{denied}, Host{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		line string
		want Rule
	}{
		{"a b", first}, {"a x", second}, {"a c", second}, {"d c", attended}, {"a b no", denied}, {"d c no", denied},
	} {
		words := strings.Fields(row.line)
		if j := g.Judge(execution("/usr/bin/"+words[0], words...)); j.Rule.When != row.want.When {
			t.Errorf("%s: %q decides, want %q", row.line, j.Rule.When, row.want.When)
		}
	}
	for _, k := range expr.Kinds() {
		if g.Wants(k) != (k == event.KindExec) || g.Asks(k, false) != (k == event.KindExec) {
			t.Errorf("%s is wanted", k)
		}
	}
	for _, row := range []struct {
		ask  []Rule
		firm bool
	}{{[]Rule{attended}, false}, {[]Rule{attended, first}, true}} {
		if g, err := New(row.ask, nil, Host{}); err != nil || g.Firm(event.KindExec) != row.firm || g.Firm(event.KindConnect) {
			t.Errorf("%v: %v", row.ask, err)
		}
	}
}

// A rule that names a set may say why; otherwise the rule of the set does.
func TestTheReasonOfASet(t *testing.T) {
	for _, row := range []struct{ name, reason, want string }{
		{"of the policy", "releases are made by CI", "releases are made by CI"},
		{"of the set", "", "commits would be sent to a remote repository"},
	} {
		g, err := New(nil, []Rule{{Set: "git-push", Reason: row.reason}}, Host{})
		if err != nil {
			t.Fatal(err)
		}
		if j := g.Judge(execution("/usr/bin/git", "git", "push")); j.Verdict != event.Denied || !strings.Contains(j.Reason, row.want) {
			t.Errorf("%s: %v, %q, want %q", row.name, j.Verdict, j.Reason, row.want)
		}
	}
}

// TestJudgeTogether is for the race detector.
func TestJudgeTogether(t *testing.T) {
	g := everySet(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 50 {
				a := execution("/usr/bin/git", "git", "-c", fmt.Sprint(i, j), "push")
				if got := g.Judge(a); got.Verdict != event.Unknown {
					t.Errorf("%v is %v", a.Process.Argv, got.Verdict)
				}
				if got := g.Judge(execution("/home/you/x", "x", fmt.Sprint(j))); got.Verdict != event.Allowed {
					t.Errorf("x is %v", got.Verdict)
				}
			}
		})
	}
	wait.Wait()
}

// TestCutArguments: the missing part of cut arguments of an execution may be anything.
func TestCutArguments(t *testing.T) {
	for _, rule := range []Rule{{Set: "git-push"}, {When: `verb == "push"`}, {When: `program == "git" && verb == "push"`}} {
		g, err := New([]Rule{rule}, nil, Host{Find: byHash})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			argv []string
			cut  bool
			asks bool
		}{
			{[]string{"git"}, true, true},
			{[]string{"git"}, false, false},
			{[]string{"git", "-C"}, true, true},
			{[]string{"git", "log"}, true, false},
			{[]string{"git", "push"}, false, true},
		} {
			a := execution("/usr/bin/git", row.argv...)
			a.Cut = row.cut
			if j := g.Judge(a); (j.Verdict == event.Unknown) != row.asks {
				t.Errorf("%v, %q, cut %v: %v, %q", rule, row.argv, row.cut, j.Verdict, j.Reason)
			}
		}
	}
}

// FuzzJudge: whatever is executed, in whatever way, is judged; git with the verb
// push behind options of its own always asks, and what is cut never asks less.
func FuzzJudge(f *testing.F) {
	f.Add("/usr/bin/git", "git\x00-c\x00a=b\x00push", "", uint8(0))
	f.Add("/usr/bin/python3.11", "python3\x00-Im\x00pip\x00install", "", uint8(1))
	f.Add("/usr/bin/bash", "bash\x00-eo\x00pipefail\x00-s", "/usr/bin/x", uint8(2))
	f.Add("/lib64/ld-linux-x86-64.so.2", "ld.so\x00--argv0\x00x\x00git\x00push", "", uint8(3))
	f.Add("/usr/bin/busybox", "busybox\x00sh\x00-c\x00x", "", uint8(4))
	f.Add("/usr/bin/npm", "npm\x00--x\x00installTest", "", uint8(5))
	f.Add("", "", "", uint8(255))
	g := everySet(f)
	f.Fuzz(func(t *testing.T, executable, line, script string, how uint8) {
		a := execution(executable, strings.Split(line, "\x00")...)
		a.Script, a.Cut = script, how&1 != 0
		if how&2 != 0 {
			a.Process.SHA256 = "hash-of-git"
		}
		if how&4 != 0 {
			a.Path = script
		}
		j := g.Judge(a)
		if n := len(g.readings(a)); n > maxReadings {
			t.Errorf("%d readings", n)
		}
		whole := a
		whole.Cut = false
		cut := a
		cut.Cut = true
		if g.Judge(whole).Verdict == event.Unknown && g.Judge(cut).Verdict != event.Unknown {
			t.Errorf("%q asks, and does not when it is cut", a.Process.Argv)
		}
		if j.Verdict == event.Unknown && (j.Reason == "" || j.Rule.Set == "" && j.Rule.When == "") {
			t.Errorf("it is not said why: %+v", j)
		}
		push := execution("/usr/bin/git", "git", "-c", line, "-C", executable, "push", script)
		if script != "--help" && script != "-h" && g.Judge(push).Verdict != event.Unknown {
			t.Errorf("%q does not ask", push.Process.Argv)
		}
	})
}

// TestAConnectionOfAnyProcess: while the process of a connection is not known,
// what a rule says of the process counts as met, and the rest as it is.
func TestAConnectionOfAnyProcess(t *testing.T) {
	for condition, want := range map[string]bool{
		`action == "connect" && executable == "/x"`: true, `action == "connect" && executable != "/x"`: true,
		`action == "connect" && program == "x"`: true, `action == "connect" && sha256 == "0"`: true, `action == "connect" && cwd.under("/x")`: true,
		`action == "connect" && !known`: false, `action == "connect" && !known && executable == "/x"`: false,
		`host == "a.example.org"`: true, `host == "b.example.org" || executable == "/x"`: true, `method == "GET" && executable == "/x"`: false,
	} {
		g, err := New([]Rule{{When: condition}}, nil, Host{})
		if err != nil {
			t.Fatal(err)
		}
		if j := g.Judge(event.Attempt{Kind: event.KindConnect, Host: "a.example.org", Port: 443, Known: true, Cut: true}); (j.Verdict == event.Unknown) != want {
			t.Errorf("%s: %v", condition, j.Verdict)
		}
	}
}
