package expr

import (
	"errors"
	"fmt"
	goast "go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

var sample = event.Event{
	Seq: 7, Time: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), Session: "s", Sensor: event.Syscall, N: 3, Action: event.FileWrite,
	Object: "/home/you/.ssh/authorized_keys", Resolved: "/home/you/.ssh/authorized_keys", Verdict: event.Denied, Layer: event.LayerView,
	Rule: "policy.yaml:3", Error: "ENOENT",
	Process: event.Process{PID: 12, Exec: 4, Parent: 11, ParentExec: 2, Executable: "/bin/Sh", SHA256: "ab", Cwd: "/w", Argv: []string{"sh", "-c", "a\nb"}},
	Detail:  map[string]string{"mode": "0600", "empty": ""},
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		condition string
		want      bool
	}{
		{`verdict == "denied" && object.startsWith("/home")`, true},
		{`verdict == "allowed"`, false},
		{`verdict in ["allowed", "denied"]`, true},
		{`sensor == "syscall" && action != "file.open"`, true},
		{`seq == 7 && n == 3 && pid == 12 && exec == 4 && parent == 11 && parent_exec == 2`, true},
		{`session == "s" && layer == "view" && rule.endsWith(":3") && error == "ENOENT" && resolved == object`, true},
		{`executable.base().lowerAscii() == "sh" && cwd == "/w" && sha256 == "ab"`, true},
		{`"".base() == ""`, true},
		{`argv.exists(a, a.contains("\n"))`, true},
		{`argv.all(a, size(a) < 3)`, false},
		{`argv[0] == "sh" && size(argv) == 3`, true},
		{`detail.mode == "0600" && detail["mode"] == "0600"`, true},
		{`detail.nothing == "" && detail["nothing"] == ""`, true},
		{`has(detail.mode) && has(detail.empty)`, true},
		{`has(detail.nothing)`, false},
		{`"mode" in detail && !("nothing" in detail)`, true},
		{`size(detail) == 2`, true},
		{`detail.exists(k, k == "mode")`, true},
		{`size(marks) == 0`, true},
		{`time > timestamp("2026-11-22T00:00:00Z") && time.getHours() == 1`, true},
		{`object.under("/home/you") && object.under("/home/you/") && object.under("/")`, true},
		{`object.under("/home/yo")`, false},
		{`object.matches("^/home/[^/]+/\\.ssh/")`, true},
		{`int(detail.mode) == 600`, true},
		{`true`, true},
	} {
		p, err := Compile(tt.condition)
		if err != nil {
			t.Errorf("%s: %v", tt.condition, err)
			continue
		}
		if got, err := p.Matches(Event(sample)); err != nil || got != tt.want {
			t.Errorf("%s is %v, %v, want %v", tt.condition, got, err, tt.want)
		}
		if p.String() != tt.condition {
			t.Errorf("%q became %q", tt.condition, p)
		}
	}
}

func TestFieldsOfTools(t *testing.T) {
	call := event.Event{Action: event.ToolCall, Object: "Bash", Detail: map[string]string{"agent": "claude", "server": "s",
		"arguments": `{"command":"curl \"x\"","timeout":3,"list":["a","b"],"null":null}`}}
	for _, tt := range []struct {
		e         event.Event
		condition string
		want      bool
	}{
		{call, `tool == "Bash" && agent == "claude" && server == "s"`, true},
		{call, `arguments.command == "curl \"x\"" && arguments.timeout == "3" && arguments.list == "[\"a\",\"b\"]"`, true},
		{call, `arguments.nothing == "" && size(arguments) == 4`, true},
		{call, `arguments.exists(k, arguments[k].contains("curl"))`, true},
		{event.Event{Action: event.ToolCall, Detail: map[string]string{"arguments": `{"comm`}}, `arguments[""] == "{\"comm"`, true},
		{call, `has(arguments.command) && "command" in arguments && !("nothing" in arguments)`, true},
		{call, `arguments.exists(k, k == "command") && arguments["COMM" + "AND"] == "" || true`, true},
		{sample, `tool == "" && agent == "" && size(arguments) == 0`, true},
	} {
		p, err := Compile(tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Matches(Event(tt.e)); got != tt.want || err != nil {
			t.Errorf("%s: %v, %v", tt.condition, got, err)
		}
	}
}

// TestAnArgumentInOtherLettersIsNotKnown asks for a name that is there in other
// letters, in each way that a condition can.
func TestAnArgumentInOtherLettersIsNotKnown(t *testing.T) {
	call := Event(event.Event{Action: event.ToolCall, Object: "Bash", Detail: map[string]string{"arguments": `{"Command":"sudo","ta\u017fk":"x"}`}})
	for _, condition := range []string{
		`arguments.command == ""`, `arguments["command"].contains("sudo")`, `has(arguments.command)`, `"command" in arguments`,
		`arguments["com" + "mand"] == ""`, `arguments.COMMAND != ""`, `arguments.task == "x"`, `!(arguments.command == "x")`,
	} {
		p, err := Compile(condition)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Matches(call); err == nil {
			t.Errorf("%s: %t", condition, got)
		}
	}
}

type none struct{}

func (none) Field(string) (any, bool) { return nil, false }

func TestNothingIsEmpty(t *testing.T) {
	p, err := Compile(`seq == 0 && session == "" && size(argv) == 0 && size(detail) == 0 && detail.x == "" && time < timestamp("0002-01-01T00:00:00Z")`)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []Fields{none{}, Event(event.Event{})} {
		if got, err := p.Matches(v); !got || err != nil {
			t.Errorf("%T: %v, %v", v, got, err)
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct{ condition, want string }{
		{`verdct == "denied"`, `condition, column 1: there is no field and no function "verdct"; did you mean "verdict"?`},
		{`true && objct.startsWith("/")`, `condition, column 9: there is no field and no function "objct"; did you mean "object"?`},
		{`object.startWith("/")`, `did you mean "startsWith"?`},
		{`zzzzzzzz == ""`, `there is no field and no function "zzzzzzzz"`},
		{`verdict == "deny"`, `condition, column 12: verdict is never "deny"; did you mean "denied"?`},
		{"true &&\n  \"file.opne\" == action", `condition, line 2, column 3: action is never "file.opne"; did you mean "file.open"?`},
		{`verdict in ["denied", "alowed"]`, `verdict is never "alowed"; did you mean "allowed"?`},
		{`sensor != "kernel"`, `sensor is never "kernel"`},
		{`object`, `it is of type string: a condition is true or false`},
		{`object == 3`, `== does not apply to (string, int)`},
		{`object ==`, `syntax error`},
		{``, `syntax error`},
		{`object.matches("(")`, `matches`},
		{`argv.exists(a, argv.exists(b, argv.exists(c, a == b)))`, `comprehension`},
		{`has(object)`, `has() needs a detail`},
		{strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000), ``},
		{`object == "` + strings.Repeat("x", maxCondition) + `"`, `longer than`},
		{"object == \"\xff\"", `it is not UTF-8`},
	} {
		_, err := Compile(tt.condition)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v, want %q", tt.condition, err, tt.want)
		}
	}
}

func TestMatchesFails(t *testing.T) {
	for _, tt := range []struct {
		condition string
		v         Fields
		want      string
	}{
		{`argv[9] == ""`, Event(sample), "index"},
		{`int(object) == 1`, Event(sample), "evaluating a condition"},
		{`seq == 1`, one{"seq", "1"}, "the field seq is a string and should be of type int"},
		{`object == ""`, one{"object", []string{"x"}}, "the field object is a []string"},
	} {
		p, err := Compile(tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Matches(tt.v); got || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want %q", tt.condition, got, err, tt.want)
		}
	}
}

type one struct {
	name  string
	value any
}

func (o one) Field(name string) (any, bool) { return o.value, name == o.name }

// A hostile command line has as many arguments as fit: a condition that looks
// at each must still come to its end, and one that multiplies them must not.
func TestCostIsBounded(t *testing.T) {
	argv := slices.Repeat([]string{"x"}, 500_000)
	e := event.Event{Action: event.ProcExec, Object: strings.Repeat("y", 1<<20), Process: event.Process{Argv: append(argv, "--secret")}}
	p, err := Compile(`argv.exists(a, a.startsWith("--sec") || a.lowerAscii() == "-s")`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Matches(Event(e)); !got || err != nil {
		t.Errorf("a long command line: %v, %v", got, err)
	}
	p, err = Compile(`size(argv.map(a, object + object)) == 0`)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if got, err := p.Matches(Event(e)); got || err == nil {
		t.Errorf("a terabyte of text: %v, %v", got, err)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

func TestConcurrent(t *testing.T) {
	p, err := Compile(`object.endsWith("7") && argv.exists(a, a == object)`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				name := fmt.Sprint(i, j)
				got, err := p.Matches(Event(event.Event{Object: name, Process: event.Process{Argv: []string{name}}}))
				if err != nil || got != strings.HasSuffix(name, "7") {
					t.Errorf("%s: %v, %v", name, got, err)
				}
			}
		})
	}
	wg.Wait()
}

// The lists of words are those of package event: one that was forgotten here
// would make a condition on it an error.
func TestWordsAreComplete(t *testing.T) {
	f, err := goparser.ParseFile(gotoken.NewFileSet(), "../event/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	goast.Inspect(f, func(n goast.Node) bool {
		spec, ok := n.(*goast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*goast.BasicLit)
		if !ok || lit.Kind != gotoken.STRING {
			return true
		}
		word, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		list := "action"
		if name := spec.Names[0].Name; strings.HasPrefix(name, "Blind") || strings.HasPrefix(name, "Detail") || strings.HasPrefix(name, "Kept") {
			return true // an object or a detail, which can be any text
		}
		if typ, ok := spec.Type.(*goast.Ident); ok && typ.Name == "Sensor" {
			list = "sensor"
		} else if strings.HasPrefix(spec.Names[0].Name, "Layer") {
			list = "layer"
		}
		seen++
		if !slices.Contains(words()[list], word) {
			t.Errorf("%s %q is not among the words", list, word)
		}
		return true
	})
	if seen < 40 {
		t.Errorf("only %d words found in package event", seen)
	}
}

func TestVocabularyIsWhatAnEventHas(t *testing.T) {
	for _, f := range Vocabulary() {
		if _, found := Event(sample).Field(f.Name); !found && f.Name != "marks" && !slices.Contains([]string{"tool", "server", "agent", "arguments"}, f.Name) {
			t.Errorf("an event has no %s", f.Name)
		}
		if !slices.Contains(fieldTypes, typ(f.Type)) || f.Meaning == "" {
			t.Errorf("%+v", f)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`verdict == "denied"`, `argv.exists(a, a.matches("x+"))`, `detail[object] in argv`, `has(detail.x)`, `{`, `argv[seq] == "\xff"`, `duration("1h") < time - time`} {
		f.Add(s, "/a/b", "x")
	}
	f.Fuzz(func(t *testing.T, condition, object, arg string) {
		p, err := Compile(condition)
		if err != nil {
			if strings.Contains(err.Error(), "preparing") {
				t.Errorf("%q: %v", condition, err)
			}
			return
		}
		_, _ = p.Matches(Event(event.Event{Object: object, Process: event.Process{Argv: []string{arg}}, Detail: map[string]string{arg: object}}))
	})
}

func BenchmarkMatches(b *testing.B) {
	for _, condition := range []string{
		`verdict == "denied" && object.startsWith("/home")`,
		`action == "proc.exec" && argv.exists(a, a == "-c")`,
		`detail.mode == "0600"`,
		`object.matches("\\.ssh/")`,
	} {
		p, err := Compile(condition)
		if err != nil {
			b.Fatal(err)
		}
		v := Event(sample)
		b.Run(condition, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Matches(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(`verdict == "denied" && object.startsWith("/home")`); err != nil {
			b.Fatal(err)
		}
	}
}

// fieldTypes are those that a field can have.
var fieldTypes = []typ{tText, tInt, tBool, tTime, tTexts, tMap}
