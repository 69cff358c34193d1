package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"an empty file", "", "p.yaml: is empty"},
		{"a file of comments", "# nothing\n", "p.yaml: is empty"},
		{"a file without version", "without: []\n", "p.yaml:1: the key version is missing"},
		{"another version", "version: 2\n", "p.yaml:1: version is the number 2"},
		{"a version that is text", "version: '1'\n", "p.yaml:1: version is the text"},
		{"an unknown key, with the nearest one", "version: 1\nworkspce: {}\n", `p.yaml:2: unknown key "workspce", did you mean "workspace"?`},
		{"an unknown key in a section", "version: 1\nlimits:\n  memry: 1GiB\n", `p.yaml:3: unknown key "memry" in limits, did you mean "memory"?`},
		{"a dotted key", "version: 1\nlimits.memory: 1GiB\n", "p.yaml:2: unknown key"},
		{"a key given twice", "version: 1\nlimits: {files: 1}\nlimits: {}\n", `p.yaml:3: the key "limits" is repeated; it was first given on line 2`},
		{"a variable given twice", "version: 1\nenvironment:\n  set: {A: x, A: y}\n", "is repeated"},
		{"a second document", "version: 1\n---\nversion: 1\n", "p.yaml:2: a second document"},
		{"an anchor", "version: 1\nwithout: &a [seccomp]\n", "p.yaml:2: the anchor &a"},
		{"an alias", "version: 1\nlimits: {memory: &m 1GiB, disk: *m}\n", "p.yaml:2: the alias *m"},
		{"a merge", "version: 1\nlimits:\n  <<: {files: 5}\n", "p.yaml:3: a merge"},
		{"a tag", "version: 1\nwithout: [!!binary c2VjY29tcA==]\n", "p.yaml:2: the tag !!binary"},
		{"a tag on the document", "!!map {version: 1}\n", "p.yaml:1: the tag !!map"},
		{"a list as the document", "- version: 1\n", "p.yaml:1: a policy is a list"},
		{"a section that is empty", "version: 1\nlimits:\n", "p.yaml:2: limits is empty"},
		{"a list that is empty text", "version: 1\nfilesystem:\n  read:\n", "p.yaml:3: filesystem.read is empty; a list is expected"},
		{"a list that is a word", "version: 1\nfilesystem:\n  read: /data\n", "p.yaml:3: filesystem.read is the text"},
		{"a number in a list of paths", "version: 1\nfilesystem:\n  read: [1e300]\n", "an entry of filesystem.read is the number 1e300"},
		{"nothing in a list of paths", "version: 1\nfilesystem:\n  read: [~]\n", "an entry of filesystem.read is empty"},
		{"a path with ..", "version: 1\nfilesystem:\n  read: [../up]\n", "p.yaml:3: filesystem.read: the path \"../up\" goes up"},
		{"a path with a line break", "version: 1\nfilesystem:\n  read: [\"a\\nb\"]\n", "line break"},
		{"a path with a NUL", "version: 1\nfilesystem:\n  read: [\"a\\0b\"]\n", "NUL"},
		{"the home of somebody else", "version: 1\nfilesystem:\n  read: [~bob/x]\n", "another user"},
		{"an empty path", "version: 1\nfilesystem:\n  read: ['']\n", "an empty path"},
		{"ask as a mapping", "version: 1\nask: {}\n", "p.yaml:2: ask is a mapping; a list is expected"},
		{"a size without a unit", "version: 1\nlimits: {memory: 8}\n", `limits.memory: "8" is not a size`},
		{"a negative size", "version: 1\nlimits: {memory: -8GiB}\n", "is not a size"},
		{"a size beyond counting", "version: 1\nlimits: {disk: 9999999999TiB}\n", "larger than can be counted"},
		{"a size with too many digits", "version: 1\nlimits: {disk: 99999999999999999999B}\n", "is not a size"},
		{"a limit of nothing", "version: 1\nlimits: {files: 0}\n", "not a whole number above 0"},
		{"an octal count", "version: 1\nlimits: {files: 010}\n", "not a whole number above 0"},
		{"a count with an exponent", "version: 1\nlimits: {files: 1e309}\n", "not a whole number above 0"},
		{"cores beyond all numbers", "version: 1\nlimits: {cpus: 1e309}\n", "not a number of cores"},
		{"cores that are no number", "version: 1\nlimits: {cpus: .nan}\n", "not a number of cores"},
		{"a negative duration", "version: 1\nlimits: {time: -4h}\n", "not a duration"},
		{"a duration without a unit", "version: 1\nlimits: {time: 60}\n", "not a duration"},
		{"a duration beyond counting", "version: 1\nlimits: {time: 99999999h}\n", "not a duration"},
		{"an unknown guarantee", "version: 1\nwithout: [secomp]\n", `unknown guarantee "secomp", did you mean "seccomp"?`},
		{"a secret by its name", "version: 1\nenvironment: {pass: [NPM_TOKEN]}\n", "NPM_TOKEN looks like a secret"},
		{"a preload variable", "version: 1\nenvironment: {pass: [LD_PRELOAD]}\n", "LD_PRELOAD makes programs load"},
		{"a socket of the host", "version: 1\nenvironment: {pass: [SSH_AUTH_SOCK]}\n", "SSH_AUTH_SOCK leads to a helper"},
		{"every variable", "version: 1\nenvironment: {pass: ['*']}\n", "the whole environment"},
		{"a variable with a strange name", "version: 1\nenvironment: {pass: ['A=B']}\n", "is not a variable name"},
		{"a variable that is ours", "version: 1\nenvironment: {set: {HOME: /x}}\n", "HOME is set by holdfast"},
		{"a value with a NUL", "version: 1\nenvironment: {set: {A: \"x\\0y\"}}\n", "contains a NUL"},
		{"a port beyond the last", "version: 1\nnetwork: {publish: [65536]}\n", "not a port"},
		{"a host with a path", "version: 1\nnetwork: {allow: [example.org/x]}\n", "not a kind"},
		{"a host in other letters", "version: 1\nnetwork: {allow: [exämple.org]}\n", "outside ASCII"},
		{"a byte order mark", "\xef\xbb\xbfversion: 1\n", "byte order mark"},
		{"bytes that are not UTF-8", "version: 1 # \xff\n", "is not UTF-8"},
		{"a control character", "version: 1\n# \x1b[2J\n", "p.yaml:2: contains the control character U+001B"},
		{"text that runs backwards", "version: 1 # \u202e\n", "control character U+202E"},
		{"text that is not YAML", "version: 1\nlimits: {memory\n", "not YAML"},
		{"deep nesting", "version: 1\nwithout: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "\n", "nested more than"},
		{"very deep nesting", "version: 1\nwithout: " + strings.Repeat("[", 200000), "not YAML"},
		{"a key that is a list", "version: 1\n? [a]\n: b\n", "a key is a list"},
		{"too many bytes", "version: 1\n#" + strings.Repeat("x", MaxFile), "a policy may have"},
		{"too many entries", "version: 1\nfilesystem:\n  read:\n" + strings.Repeat("  - a\n", 1001), "has 1001 entries; at most 1000 are allowed"},
		{"an absolute pattern of the home", "version: 1\nworkspace: {protect: [~/x]}\n", "patterns are names"},
		{"a broken pattern", "version: 1\nworkspace: {protect: ['[']}\n", "syntax error in pattern"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte(row.text))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestParseReportsEverythingThatIsWrong(t *testing.T) {
	_, err := Parse("p.yaml", "/", []byte("version: 1\nlimits:\n  memory: 1\n  disk: 2\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 || all[1].Origin.Line != 4 || all.Hint() == "" {
		t.Fatalf("got %v", err)
	}
}

func TestErrorsStayShort(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	_, err := Parse("p.yaml", "/", []byte(b.String()))
	if n := strings.Count(err.Error(), "\n"); n > shownErrors {
		t.Fatalf("%d lines", n)
	}
}

func TestParseKeepsLines(t *testing.T) {
	f, err := Parse("p.yaml", "/base", []byte(`version: 1
extends: ci
filesystem:
  read:
    - /data
    - ~/x?
network:
  allow: [{host: Example.ORG., ports: [443]}, "[2001:DB8::1]:8080"]
  host-ports: [5432]
  publish: [3000, "8080:80"]
limits: {memory: 8 GiB, cpus: 2.5, time: 90m}
without: []
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range f.Entries {
		got = append(got, fmt.Sprintf("%d %s=%s %v %d %v", e.Origin.Line, e.Key, e.Value, e.Ports, e.Amount, e.Clear))
	}
	want := `5 filesystem.read=/data [] 0 false
6 filesystem.read=~/x? [] 0 false
8 network.allow=example.org:443 [] 0 false
8 network.allow=[2001:db8::1]:8080 [] 0 false
9 network.host-ports=5432 [5432 5432] 0 false
10 network.publish=3000 [3000 3000] 0 false
10 network.publish=8080:80 [8080 80] 0 false
11 limits.memory=8 GiB [] 8589934592 false
11 limits.cpus=2.5 [] 2500 false
11 limits.time=90m [] 5400000000000 false
12 without= [] 0 true`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s", s)
	}
	if f.Extends != "ci" || f.ExtendsAt.Line != 2 {
		t.Errorf("extends %q at %v", f.Extends, f.ExtendsAt)
	}
}

func TestAmountsReadBackTheSame(t *testing.T) {
	for _, row := range []struct {
		kind *kind
		text string
	}{{&sizes, "8GiB"}, {&sizes, "1536MiB"}, {&sizes, "7B"}, {&sizes, none}, {&counts, "4096"}, {&counts, none}, {&cores, "0.5"}, {&spans, "4h"}, {&spans, "1h30m"}, {&spans, "45s"}, {&patience, "0s"}} {
		n, err := row.kind.amount(row.text)
		if got := row.kind.format(n); err != nil || got != row.text {
			t.Errorf("%s became %s (%v)", row.text, got, err)
		}
	}
}

func TestProfilesParse(t *testing.T) {
	for _, name := range Profiles {
		f, err := Profile(name)
		if err != nil || len(f.Entries) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		for _, e := range f.Entries {
			if e.Key == "environment.set" || e.Key == "without" || strings.HasPrefix(e.Key, "filesystem.") {
				t.Errorf("%s: a profile gives away %s", e.Origin, e)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"version: 1\n", "version: 1\nextends: local\nlimits: {memory: 8GiB, time: 4h, cpus: 1.5}\n",
		"version: 1\nnetwork: {allow: [a.b, {host: c.d, ports: [1]}], publish: [1, \"2:3\"]}\n",
		"version: 1\nnetwork: {allow: [{host: a.b, kind: tls, methods: [GET], paths: [/x/**], credential: c, internal: true, inspect: true}], host-ports: [1]}\n",
		"version: 1\nenvironment: {pass: [LANG, LC_*], set: {A: \"1\"}}\nwithout: []\n",
		"version: 1\ncredentials: [{name: a, source: {command: \"x 'y z'\"}, hosts: [a.b], header: 'X-Key: {}', env: [A, B], ttl: 5m, uses: 3, paths: [/a/*]}]\n",
		"version: 1\ncredentials: [{name: a, source: {vault: {path: a/b, field: c}}, sign: aws-sigv4}, {name: b, source: {github-app: {app-id: 1, installation-id: 2, key-file: ~/k, repositories: [r], permissions: {contents: read}}}}]\n",
		"version: 1\nrecord: {level: full, anchor: ['file:~/x', syslog, 'https://a.b']}\nhoneytokens: off\n",
		"version: 1\nalerts: {rules: [/r], sinks: [{terminal: true}, {file: /f, severity: high}, {webhook: 'https://a.b/c', headers: /h, secret: /s, authority: /a, timeout: 5s}, {syslog: 'tls://a.b:1'}, {otlp: 'http://a.b', insecure: true}]}\n",
		"a: &a [*a]\n", "? [x]\n: {y: z}\n", "version: !!int \"1\"\n", "<<: {}\n", "--- 1\n...\n---\n",
		"version: 1\nfilesystem: {read: ['~/x?', /y, z], write: [], copy: [~]}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("p.yaml", "/base", data)
		if err != nil {
			if len(err.Error()) > 64<<10 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
			if strings.ContainsAny(err.Error(), "\x00\x1b\r") {
				t.Errorf("a message with control characters: %q", err)
			}
			return
		}
		for _, e := range file.Entries {
			if _, ok := lookup(e.Key); !ok || e.Amount < 0 || e.Origin.Line < 1 {
				t.Errorf("entry %+v", e)
			}
			if e.Rule != nil {
				for _, r := range e.Rule.expand() {
					name, err := hostName(r.Host)
					if err != nil || name != r.Host || r.Kind == "" || len(r.Ports) == 0 || r.Kind == TCP && r.requests() || len(r.Credentials) > 0 && !r.Inspect {
						t.Errorf("rule %+v", r)
					}
				}
			}
			if c := e.Credential; c != nil && (c.Name == "" || c.Source.Kind == "" || c.TTL <= 0 || c.Sign == "" && strings.Count(c.Format, "{}") != 1 || strings.ContainsAny(c.Header+c.Format, "\r\n")) {
				t.Errorf("credential %+v", *c)
			}
			if s := e.Sink; s != nil && (s.Kind == "" || s.Severity == "" || s.Address == "" && s.Kind != "terminal" || strings.ContainsAny(s.full(), "\x00\r\n")) {
				t.Errorf("sink %+v", *s)
			}
			if strings.ContainsAny(e.Value, "\x00\n") {
				t.Errorf("value %q", e.Value)
			}
		}
	})
}
