package expr

import (
	"math/rand/v2"
	"testing"
)

// TestQuickAnswersAreTheEvaluators compares what is told without the evaluator
// with what it says, for conditions and attempts of all sorts.
func TestQuickAnswersAreTheEvaluators(t *testing.T) {
	conditions := []string{
		`program == "git" && verb == "push"`, `program != "git"`, `program in ["git", "hub"] || verb == "x"`,
		`!(program == "git") && !known`, `known || outside`, `"push" in argv`, `verb in args`, `program == verb`,
		`argv[0].endsWith("/git") && "push" in argv`, `argv[1] == "push"`, `argv[7] == "x" || program == "git"`, `argv[7] == "x" && program == "git"`,
		`argv[-1] == "x"`, `argv.exists(a, a.startsWith("--") && a != "--help")`, `argv.all(a, a.size() < 9)`, `args.all(a, a in ["--version", "-h"])`,
		`args.exists(a, argv[7] == a)`, `args.exists(a, argv[7] == a || a == "push")`, `args.all(a, argv[7] == a && a == "no")`,
		`path.under("/etc") && path.base() == "passwd"`, `path.lowerAscii().contains("env")`, `path.matches("^/(etc|home)/") && !path.matches("x$")`,
		`executable.base() == program`, `cwd.under("")`, `"".under("/")`, `host.endsWith(".example.org") && port == 443`, `port > 1000 || host == ""`,
		`argv.size() > 1 && argv[1] == "-c"`, `args.filter(a, !a.startsWith("-")).size() > 1`, `arguments.x == "y"`, `arguments["x"] == ""`, `has(arguments.x)`,
		`args.exists(program, program == "git")`, `args.exists(a, a == program)`, `args.exists_one(a, a == "push")`, `true`, `false || known`, `(program == "git") == known`,
		`known == true`, `program == "git" ? known : outside`, `method == "GET" && url_path.startsWith("/v1/")`, `verb.matches("^(in|add)") || "\xff" in args`,
		`argv == args`, `["a", "b"] == argv`, `program < "h"`, `"push" in ["push", verb]`,
	}
	random := rand.New(rand.NewPCG(7, 7))
	pick := func(all ...any) any { return all[random.IntN(len(all))] }
	told := 0
	for _, condition := range conditions {
		p, err := CompileAttempt(condition)
		if err != nil {
			t.Fatalf("%s: %v", condition, err)
		}
		for range 200 {
			lists := []any{[]string(nil), []string{"git"}, []string{"/usr/bin/git", "push"}, []string{"sh", "-c", "git push"}, []string{"\xff", "--version"}, []string{"x", "--help", "push", "push"}, Unknown}
			words := []any{"", "git", "push", "hub", "/etc/passwd", "/home/you/.ENV", "\xff", "a.example.org", "GET", "/v1/x"}
			a := attempt{"action": "exec", "program": pick(words...), "verb": pick(words...), "argv": pick(lists...), "args": pick(lists...),
				"path": pick(words...), "executable": pick("/usr/bin/git", "git", ""), "cwd": pick(words...), "host": pick(words...), "port": pick(0, 443, 8080),
				"known": pick(true, false), "outside": pick(true, false), "method": pick(words...), "url_path": pick(words...),
				"arguments": pick(map[string]string{}, map[string]string{"x": "y"}, Unknown)}
			if random.IntN(4) == 0 {
				a["program"], a["verb"] = Unknown, Unknown
			}
			var over Attempted
			over.Over(a)
			want, wantErr := p.Matches(a)
			quick := p.quick()(&over.frame)
			if quick != unsure {
				told++
			}
			if quick != unsure && (wantErr != nil || quick != sure(want)) {
				t.Fatalf("%s of %v: %v, the evaluator says %v, %v", condition, a, quick, want, wantErr)
			}
			if got, err := p.MatchesAttempt(&over); got != want || (err != nil) != (wantErr != nil) {
				t.Fatalf("%s of %v: %v, %v; the evaluator says %v, %v", condition, a, got, err, want, wantErr)
			}
		}
	}
	if told < len(conditions)*100 {
		t.Errorf("only %d of %d are told at once", told, len(conditions)*200)
	}
}
