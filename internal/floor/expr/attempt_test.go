package expr

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// attempt is one as a condition reads it.
type attempt map[string]any

func (a attempt) Field(name string) (any, bool) { v, ok := a[name]; return v, ok }

func TestConditionsOnAttempts(t *testing.T) {
	push := attempt{"action": "exec", "program": "git", "verb": "push", "argv": []string{"/usr/bin/git", "push", "origin"}}
	write := attempt{"action": "file", "path": "/etc/x", "operation": "write", "outside": true}
	for _, row := range []struct {
		when string
		of   attempt
		want bool
		fail bool
	}{
		{when: `action == "exec" && argv[0].endsWith("/git") && "push" in argv`, of: push, want: true},
		{when: `action == "exec" && argv[0].endsWith("/git") && "push" in argv`, of: write},
		{when: `program == "git" && verb == "push"`, of: push, want: true},
		{when: `action == "file" && outside`, of: write, want: true},
		{when: `action == "file" && outside`, of: push},
		{when: `action == "connect" && !known`, of: attempt{"action": "connect", "host": "a"}, want: true},
		{when: `port == 0 && host == "" && arguments.x == "" && args.size() == 0 && !known`, of: attempt{"action": "exec"}, want: true},
		{when: `argv[0] == "x"`, of: attempt{"action": "exec"}, fail: true},
		{when: `program == "git" && "push" in argv`, of: attempt{"program": "git", "argv": Unknown}, fail: true},
		{when: `program == "git" && argv.exists(a, a == "push")`, of: attempt{"program": "git", "argv": Unknown}, fail: true},
		{when: `"push" in argv && program == "git"`, of: attempt{"program": "go", "argv": Unknown}},
		{when: `argv.size() > 1`, of: attempt{"argv": Unknown}, fail: true},
		{when: `path.under("/etc") && path.base() == "x"`, of: write, want: true},
	} {
		p, err := CompileAttempt(row.when)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Matches(row.of); got != row.want || (err != nil) != row.fail {
			t.Errorf("%s of %v: %v, %v", row.when, row.of, got, err)
		}
	}
}

func TestConditionsOnAttemptsAreRefused(t *testing.T) {
	for _, row := range []struct{ when, want string }{
		{`action == "exce"`, `action is never "exce"; did you mean "exec"?`},
		{`operation in ["write", "delete"]`, `operation is never "delete"`},
		{`kind == "https"`, `kind is never "https"`},
		{`progam == "git"`, `no field and no function "progam"; did you mean "program"?`},
		{`object == "x"`, `no field and no function "object"`},
		{`argv == "x"`, "does not apply to"},
		{`argv`, "a condition is true or false"},
		{`port == "443"`, "does not apply to"},
	} {
		_, err := CompileAttempt(row.when)
		var at *Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.when, err, row.want)
		}
	}
}

func TestWhatAConditionIsAbout(t *testing.T) {
	for _, row := range []struct{ when, about, program string }{
		{`program == "git"`, "exec", "git"},
		{`action == "file" && program == "git"`, "file", "git"},
		{`program == "git" && host == "x"`, "connect credential exec request", "git"},
		{`action in ["exec", "file"] && path == "/x"`, "exec file", "*"},
		{`action == "exec" && action == "file"`, "", "*"},
		{`action != "exec"`, "connect credential exec file request tool", "*"},
		{`!known`, "connect credential request", "*"},
		{`"push" in argv`, "exec", "*"},
		{`true`, "connect credential exec file request tool", "*"},
		{`"git" == program || program in ["hub", "git"]`, "exec", "git hub"},
		{`program == "git" || verb == "push"`, "exec", "*"},
		{`(program == "a" || program == "b") && program in ["b", "c"]`, "exec", "b"},
		{`!(program == "git")`, "exec", "*"},
		{`program in args`, "exec", "*"},
		{`args.exists(program, program == "x")`, "exec", "*"},
		{`program == verb`, "exec", "*"},
		{`(program == "git") == false`, "exec", "*"},
	} {
		p, err := CompileAttempt(row.when)
		if err != nil {
			t.Fatal(err)
		}
		about := texts(p.About())
		slices.Sort(about)
		if got := strings.Join(about, " "); got != row.about {
			t.Errorf("%s is about %q, want %q", row.when, got, row.about)
		}
		programs, bounded := p.Only("program")
		got := strings.Join(programs, " ")
		if !bounded {
			got = "*"
		}
		if got != row.program {
			t.Errorf("%s: of programs only %q, want %q", row.when, got, row.program)
		}
	}
}

// TestVocabularyOfAttempts keeps the table whole.
func TestVocabularyOfAttempts(t *testing.T) {
	for _, f := range attemptVocabulary {
		if !slices.Contains(fieldTypes, typ(f.Type)) || f.Meaning == "" {
			t.Errorf("%s has no type, or no meaning", f.Name)
		}
		for _, k := range f.about {
			if !slices.Contains(Kinds(), event.Kind(k)) {
				t.Errorf("%s is about %q", f.Name, k)
			}
		}
	}
}

// BenchmarkAttempt evaluates conditions on one command line.
func BenchmarkAttempt(b *testing.B) {
	config := attempt{"action": "exec", "program": "git", "verb": "config",
		"argv": []string{"git", "config", "--global", "user.name", "You"}, "args": []string{"--global", "user.name", "You"}}
	for _, condition := range []string{
		`program == "git" && verb == "push"`,
		`program == "git" && argv.exists(a, a.startsWith("--for"))`,
		`program == "git" && verb == "config" && args.exists(a, a.lowerAscii().matches("^(remote|url|credential)"))`,
		`program == "git" && args.filter(a, !a.startsWith("-")).size() > 1`,
	} {
		p, err := CompileAttempt(condition)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(condition, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Matches(over(config)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
