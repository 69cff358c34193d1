package agent

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

const small = `
name: tiny
title: Tiny
package: "@example/tiny"
command: tiny
latest: 1.2.0
tried: [1.0.0, 1.1.0]
since: 1.0.0
spec:
  dialect: chat
  programs: [bin/tiny]
  env: {A: "{base}", B: two}
  argv: ["{posture}", "{prompt}"]
  postures:
    default: {title: asks, asks: true}
    bare: {title: asks nothing, argv: [--yes]}
ranges:
  - versions: "<1.2.0"
    why: another name
    spec: {env: {B: old}, argv: [run, "{posture}", "{prompt}"]}
  - versions: ">=1.0.0 <1.1.0"
    why: asks always
    spec: {postures: {default: {}}}
`

func TestRanges(t *testing.T) {
	d, err := parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, b, argv, postures string }{
		{"1.2.0", "two", "{posture} {prompt}", "default bare"},
		{"", "two", "{posture} {prompt}", "default bare"},
		{"9.0.0", "two", "{posture} {prompt}", "default bare"},
		{"1.2.0-beta.1", "old", "run {posture} {prompt}", "default bare"},
		{"1.1.7", "old", "run {posture} {prompt}", "default bare"},
		{"1.0.9", "old", "run {posture} {prompt}", "bare"},
	} {
		s, err := d.At(c.version)
		if err != nil {
			t.Errorf("%s: %v", c.version, err)
			continue
		}
		if s.Env["A"] != "{base}" {
			t.Errorf("%s: a range took away a variable that it does not name", c.version)
		}
		got := [3]string{s.Env["B"], strings.Join(s.Argv, " "), strings.Join(s.PostureNames(), " ")}
		if got != [3]string{c.b, c.argv, c.postures} {
			t.Errorf("%s: got %q", c.version, got)
		}
	}
	again, err := d.At("1.2.0")
	if err != nil || again.Env["B"] != "two" || len(again.Postures) != 2 {
		t.Errorf("a range wrote into what all versions share: %+v %v", again.Env, err)
	}
}

func TestStrict(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a key that is not known", "  dialect: chat", "  dialect: chat\n  nodes: 20.0.0", "field nodes not found"},
		{"a key of a range that is not known", "why: another name\n    spec: {env", "why: another name\n    spec: {environment: {}, env", "field environment not found"},
		{"a key of a posture in a range that is not known", "{default: {}}", "{default: {titel: x}}", "field titel not found"},
		{"a range without a reason", "    why: asks always\n", "", "does not say why"},
		{"a range of no version", `">=1.0.0 <1.1.0"`, `"1.0.x"`, "does not begin with"},
		{"an empty range", `">=1.0.0 <1.1.0"`, `""`, "empty"},
		{"no name", "name: tiny\n", "", "name is missing"},
		{"a version that is none", "latest: 1.2.0", "latest: latest", "not a version"},
		{"a package elsewhere", `"@example/tiny"`, `"git+https://example.org/x"`, "not the name of a package"},
		{"an unknown dialect", "dialect: chat", "dialect: smalltalk", "unknown dialect"},
		{"an unknown posture", "default: {title: asks", "asking: {title: asks", "unknown posture"},
		{"no posture without a sandbox", "bare: {title", "auto: {title", "the posture bare is missing"},
		{"a file that is not there", "argv: [--yes]}", "files: {settings: {a: 1}}}", "no file"},
		{"a pattern that is none", "  env:", "  layers: {tool: [\"(\"]}\n  env:", "missing closing"},
		{"an unknown layer", "  env:", "  layers: {luck: [a]}\n  env:", "unknown layer"},
		{"two documents", "", "---\nname: other\n", "more than one document"},
		{"a tried version before the first known", "since: 1.0.0", "since: 1.1.0", "older than 1.1.0"},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		if c.old == "" {
			text = small + c.new
		}
		if text == small {
			t.Fatalf("%s: the row changes nothing", c.name)
		}
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	if _, err := Named("clade"); err == nil || !strings.Contains(err.Error(), "claude") {
		t.Errorf("an unknown name must say what there is: %v", err)
	}
	d, err := Named("claude")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"2.0.23", "0.2.9"} {
		if _, err := d.At(v); err == nil || !strings.Contains(err.Error(), "older than") {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, v := range []string{"latest", "2.1", "^2.1.0", "2.1.0 || 1.0.0", "../2.1.0", "2.1.0/..", "-g", "2.1.0-", "2.1.0-a..b", "02.1.0", "2.1.0+x", "2.1.0\n", strings.Repeat("1", 70) + ".1.1"} {
		if _, err := d.At(v); err == nil {
			t.Errorf("%q was taken for a version", v)
		}
	}
}

func TestPackageNames(t *testing.T) {
	for _, name := range []string{"", "@x", "@/x", "x/y", "@x/y/z", "../x", "@../x", "--global", "-g", "x@npm:y", "file:x", "git+ssh://x/y", "https://example.org/x.tgz", "a b", "a\nb", "@x/..", "a..b"} {
		if checkPackage(name) == nil {
			t.Errorf("%q was taken for the name of a package", name)
		}
	}
	for _, name := range []string{"cline", "opencode-ai", "@anthropic-ai/claude-code"} {
		if err := checkPackage(name); err != nil {
			t.Error(err)
		}
	}
}

func TestCompare(t *testing.T) {
	order := []string{"x", "0.0.1", "1.2.3-alpha", "1.2.3-beta", "1.2.3", "1.2.10", "1.10.0", "2.0.0"}
	for i := range order {
		for j := range order {
			if got, want := Compare(order[i], order[j]), min(max(i-j, -1), 1); got != want {
				t.Errorf("Compare(%s, %s) = %d", order[i], order[j], got)
			}
		}
	}
}

// TestGolden expands every driver at every version in every posture.
func TestGolden(t *testing.T) {
	all, err := Drivers()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 7 {
		t.Fatalf("%d drivers", len(all))
	}
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			got := expanded(t, d)
			file := filepath.Join("testdata", d.Name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; if that is meant: go test ./internal/prove/agent -run Golden -update\n%s", file, got)
			}
		})
	}
}

// expanded prints a launch for each version and posture; one that equals an
// earlier one takes one line.
func expanded(t *testing.T, d Driver) string {
	t.Helper()
	var b strings.Builder
	before := map[string]string{}
	versions := append(slices.Clone(d.Tried), d.Latest)
	slices.Reverse(versions)
	for _, v := range versions {
		s, err := d.At(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, posture := range s.PostureNames() {
			text := launchText(t, d, s, posture)
			name := v + " " + posture
			if other := before[text]; other != "" {
				fmt.Fprintf(&b, "== %s: as %s\n", name, other)
				continue
			}
			fmt.Fprintf(&b, "== %s\n%s", name, text)
			before[text] = name
		}
	}
	return b.String()
}

func launchText(t *testing.T, d Driver, s Spec, posture string) string {
	t.Helper()
	program := Installed{Agent: d.Name, Version: s.Version, Dir: "/agents/x", Program: "/agents/x/program"}
	if s.Node != "" {
		program.Node = "/agents/node/node"
	}
	l, err := s.Launch(Params{
		Program: program, Home: "/home/agent", Workspace: "/home/agent/project", BaseURL: "http://127.0.0.1:8080/", Key: "KEY",
		Prompt: "go {key} [[script:m]]", Posture: posture, Path: []string{"/usr/bin", "/bin"}, Secrets: []string{"TOKEN", "SECOND"},
		Servers: []Server{{Name: "probe", Command: []string{"/prober", "-serve", "{home}"}, Env: map[string]string{"E": "f"}}},
	})
	if err != nil {
		t.Fatalf("%s %s: %v", s.Version, posture, err)
	}
	p := s.Postures[posture]
	var b strings.Builder
	fmt.Fprintf(&b, "own=%v asks=%v once=%v dialect=%s node=%s dir=%s needs=%v\n", p.Own, p.Asks, p.Once, s.Dialect, s.Node, l.Dir, l.Needs)
	for _, e := range l.Env {
		fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(strings.ReplaceAll(e, "arm64", "x64"), "aarch64", "x86_64"))
	}
	fmt.Fprintf(&b, "  %q\n", l.Argv)
	for _, f := range l.Files {
		fmt.Fprintf(&b, "--- %s %v\n%s", f.Path, f.Mode, f.Content)
	}
	return b.String()
}

func TestLaunchRefuses(t *testing.T) {
	d, err := Named("claude")
	if err != nil {
		t.Fatal(err)
	}
	good := Params{Program: Installed{Program: "/p"}, Home: "/h", Workspace: "/h/w", BaseURL: "http://127.0.0.1:1", Prompt: "x", Posture: "bare"}
	s, err := d.At("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Launch(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Params){
		"a home that depends on where one stands": func(p *Params) { p.Home = "h" },
		"no program":                       func(p *Params) { p.Program = Installed{} },
		"no model server":                  func(p *Params) { p.BaseURL = "" },
		"a posture that it does not have":  func(p *Params) { p.Posture = "open" },
		"a server without a command":       func(p *Params) { p.Servers = []Server{{Name: "a"}} },
		"a server with a name like a path": func(p *Params) { p.Servers = []Server{{Name: "../a", Command: []string{"x"}}} },
		"two servers of a name": func(p *Params) {
			p.Servers = []Server{{Name: "a", Command: []string{"x"}}, {Name: "a", Command: []string{"y"}}}
		},
		"a variable without a value": func(p *Params) { p.Env = []string{"NAME"} },
	} {
		p := good
		change(&p)
		if l, err := s.Launch(p); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
	old, err := d.At("2.1.1")
	if err != nil {
		t.Fatal(err)
	}
	p := good
	p.Program.Dir = "/agents/x"
	if _, err := old.Launch(p); err == nil || !strings.Contains(err.Error(), "needs Node.js") {
		t.Errorf("a program for node without one: %v", err)
	}
}

// TestKeysStay checks that the agent's key is only in its environment or home,
// and never in an argument, which every process can read.
func TestKeysStay(t *testing.T) {
	all, err := Drivers()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		s, err := d.At("")
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range append(slices.Collect(maps.Values(postureArgs(s))), s.Argv, s.Servers.Argv) {
			if strings.Contains(strings.Join(words, " "), "{key}") {
				t.Errorf("%s: the key is an argument", d.Name)
			}
		}
	}
}

func postureArgs(s Spec) map[string][]string {
	all := map[string][]string{}
	for n, p := range s.Postures {
		all[n] = p.Argv
	}
	return all
}
