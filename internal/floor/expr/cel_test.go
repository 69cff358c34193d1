package expr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	celparser "cel.dev/cel-go/parser"

	"holdfast.dev/holdfast/internal/floor/canonical"
)

// The tests of this file hold package expr against cel-go: what expr accepts,
// CEL accepts, and both give the same answer, or both fail. The reverse does not
// hold: expr refuses parts of CEL.

// celFor prepares cel-go for the conditions of a language.
func celFor(l *language) *cel.Env {
	byName := map[string]*cel.Type{"string": cel.StringType, "int": cel.IntType, "bool": cel.BoolType, "timestamp": cel.TimestampType,
		"list(string)": cel.ListType(cel.StringType), "map(string, string)": cel.MapType(cel.StringType, cel.StringType)}
	has := celparser.NewGlobalMacro(operators.Has, 1, func(h celparser.ExprHelper, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		if args[0].Kind() != ast.SelectKind {
			return nil, h.NewError(args[0].ID(), "no select")
		}
		s := args[0].AsSelect()
		return h.NewCall(operators.In, h.NewLiteral(types.String(s.FieldName())), s.Operand()), nil
	})
	text := cel.StringType
	options := []cel.EnvOption{
		cel.ClearMacros(), cel.Macros(has, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.MapMacro, cel.MapFilterMacro, cel.FilterMacro),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.RegexProgramSizeLimit(maxPattern),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(1)),
		cel.Function("under", cel.MemberOverload("under", []*cel.Type{text, text}, cel.BoolType, cel.BinaryBinding(func(a, b ref.Val) ref.Val {
			return types.Bool(isPathUnder(string(a.(types.String)), string(b.(types.String))))
		}))),
		cel.Function("base", cel.MemberOverload("base", []*cel.Type{text}, text, cel.UnaryBinding(func(a ref.Val) ref.Val { return types.String(base(string(a.(types.String)))) }))),
		cel.Function("lowerAscii", cel.MemberOverload("lower", []*cel.Type{text}, text, cel.UnaryBinding(func(a ref.Val) ref.Val { return types.String(lowerASCII(string(a.(types.String)))) }))),
	}
	for _, f := range l.fields {
		options = append(options, cel.Variable(f.Name, byName[f.Type]))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		panic(err)
	}
	return env
}

// celMap is a map in which missing keys have the value "".
type celMap struct {
	traits.Mapper
	m    map[string]string
	fold bool
}

func (d celMap) Get(key ref.Val) ref.Val {
	k := string(key.(types.String))
	v, found := d.m[k]
	for other := range d.m {
		if !found && d.fold && canonical.FoldName(other) == canonical.FoldName(k) {
			return types.NewErr("in other letters")
		}
	}
	return types.String(v)
}

func (d celMap) Find(key ref.Val) (ref.Val, bool) { return d.Get(key), true }

func (d celMap) Contains(key ref.Val) ref.Val {
	if v := d.Get(key); types.IsError(v) {
		return v
	}
	return d.Mapper.Contains(key)
}

// celFields gives cel-go the fields of a sample.
func celFields(l *language, f Fields) map[string]any {
	out := map[string]any{}
	for _, field := range l.fields {
		v, found := f.Field(field.Name)
		if !found {
			v = map[typ]any{tText: "", tInt: 0, tBool: false, tTime: time.Time{}, tTexts: []string(nil), tMap: map[string]string(nil)}[typ(field.Type)]
		}
		switch x := v.(type) {
		case unknown:
			v = types.NewErr("unknown")
		case map[string]string:
			v = celMap{types.NewStringStringMap(types.DefaultTypeAdapter, x), x, false}
		case ToolArguments:
			v = celMap{types.NewStringStringMap(types.DefaultTypeAdapter, x), x, true}
		}
		out[field.Name] = v
	}
	return out
}

// compareWithCEL evaluates a condition with both. It reports whether expr accepted it.
func compareWithCEL(t *testing.T, env *cel.Env, condition string, samples []Fields) bool {
	p, err := attempts().compile(condition)
	if err != nil {
		return false
	}
	checked, issues := env.Compile(condition)
	if issues.Err() != nil {
		t.Fatalf("%s: accepted, and CEL says %v", condition, issues.Err())
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		t.Fatalf("%s: accepted, and CEL says it is %v", condition, checked.OutputType())
	}
	program, err := env.Program(checked)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	for _, sample := range samples {
		out, _, err := program.Eval(celFields(attempts(), sample))
		want := "fails"
		if err == nil {
			want = fmt.Sprint(out.Value())
		}
		for _, fields := range []Fields{sample, over(sample)} {
			got, failed := p.Matches(fields)
			is := fmt.Sprint(got)
			if failed != nil {
				is = "fails"
			}
			if is != want {
				t.Fatalf("%s of %v: %s (%v), CEL says %s (%v)", condition, sample, is, failed, want, err)
			}
		}
	}
	return true
}

func over(f Fields) *Attempted {
	a := new(Attempted)
	a.Reset(f)
	return a
}

// samples are attempts of all sorts, with fields that are not known among them.
// Their maps have one key, for CEL visits more in no order.
func samples(random *rand.Rand, n int) (out []Fields) {
	pick := func(all ...any) any { return all[random.IntN(len(all))] }
	words := []any{"", "git", "push", "hub", "/etc/passwd", "/home/you/.ENV", "\xff", "a.example.org", "Ünï", "12", "-9223372036854775808", "2026-01-31T12:00:00Z", "1h30m", "true", "^a+"}
	lists := []any{[]string(nil), []string{"git"}, []string{"/usr/bin/git", "push"}, []string{"sh", "-c", "git push"}, []string{"\xff", "--version", ""}, []string{"x", "--help", "push", "push"}, Unknown}
	for range n {
		a := attempt{"action": "exec", "program": pick(words...), "verb": pick(words...), "argv": pick(lists...), "args": pick(lists...),
			"path": pick(words...), "cwd": pick(words...), "host": pick(words...), "port": pick(0, 443, 8080, -1), "known": pick(true, false), "outside": pick(true, false, Unknown),
			"arguments": pick(map[string]string{}, map[string]string{"x": "y"}, map[string]string{"git": "12"}, ToolArguments{"X": "y"}, Unknown)}
		if random.IntN(4) == 0 {
			a["program"], a["verb"] = Unknown, Unknown
		}
		out = append(out, a)
	}
	return out
}

// generator writes expressions of a type.
type generator struct {
	*rand.Rand
	bound string
}

func (g *generator) generate(t typ, depth int) string {
	var forms []string
	e := func(t typ) string { return g.generate(t, depth-1) }
	pick := func(all ...string) string { return all[g.IntN(len(all))] }
	if depth <= 0 || g.IntN(5) == 0 {
		return g.leaf(t)
	}
	switch any := pick("string", "int", "bool", "timestamp", "duration", "list(string)", "list(int)"); t {
	case tBool:
		forms = []string{"!(%b)", "(%b && %b)", "%b || %b", "(%b || %b || %b)", "(%b ? %b : %b)", "%s.contains(%s)", "%s.startsWith(%s)", "%s.endsWith(%s)", "%s.under(%s)",
			`%s.matches("^[a-g]+|[.]org$")`, "matches(%s, %s)", "%s in %l", "%i in [%i, %i]", "%s in arguments", "has(arguments.x)", "has(arguments.GIT)", "bool(%s)", "!!%s.contains(%s)",
			"(" + e(typ(any)) + " == " + e(typ(any)) + ")", "(" + e(typ(any)) + " != " + e(typ(any)) + ")", "(%s " + pick("<", "<=", ">", ">=") + " %s)", "(%i " + pick("<", "<=", ">", ">=") + " %i)", "(%t < %t)", "(%d >= %d)", "(%b > %b)", "%l == %l", "%l in [%l, %l]"}
		if g.bound == "" {
			forms = append(forms, "%l."+pick("exists", "all", "exists_one")+"(%x)", "arguments."+pick("exists", "all", "exists_one")+"(%x)", "%l.exists(%x) || %b", "%l.all(%x) && %b")
		}
	case tInt:
		forms = []string{"(%i + %i)", "(%i - %i)", "(%i * %i)", "(%i / %i)", "(%i %% %i)", "-(%i)", "size(%s)", "%s.size()", "%l.size()", "size(arguments)", "int(%s)", "int(%t)", "int(%d)", "(%b ? %i : %i)", "[%i, %i][%i]",
			"%t." + pick("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours", "getMinutes", "getSeconds", "getMilliseconds") + "()",
			"%d." + pick("getHours", "getMinutes", "getSeconds", "getMilliseconds") + "()"}
	case tText:
		forms = []string{"(%s + %s)", "%s.base()", "%s.lowerAscii()", "%l[%i]", "arguments[%s]", "string(%i)", "string(%b)", "string(%t)", "string(%d)", "(%b ? %s : %s)"}
	case tTime:
		forms = []string{"(%t + %d)", "(%d + %t)", "(%t - %d)", "timestamp(%s)", "timestamp(%i)", "(%b ? %t : %t)"}
	case tDuration:
		forms = []string{"(%d + %d)", "(%d - %d)", "(%t - %t)", "duration(%s)"}
	case tTexts:
		forms = []string{"(%l + %l)", "[%s, %s]", "(%b ? %l : %l)"}
		if g.bound == "" {
			forms = append(forms, "%l.filter(%x)", "%l.map(%y)", "arguments.filter(%x)", "arguments.map(%y)")
		}
	default:
		return "[" + e(tInt) + ", " + e(tInt) + "]"
	}
	return g.fill(pick(forms...), depth)
}

// fill replaces placeholders by expressions of their types.
func (g *generator) fill(form string, depth int) string {
	var out strings.Builder
	for i := 0; i < len(form); i++ {
		if form[i] != '%' {
			out.WriteByte(form[i])
			continue
		}
		i++
		switch c := form[i]; c {
		case '%':
			out.WriteByte('%')
		case 'x', 'y':
			g.bound = []string{"a", "program", "x"}[g.IntN(3)]
			body := g.generate(map[byte]typ{'x': tBool, 'y': tText}[c], depth-1)
			if c == 'y' && g.IntN(2) == 0 {
				body = g.generate(tBool, depth-1) + ", " + body
			}
			out.WriteString(g.bound + ", " + body)
			g.bound = ""
		default:
			out.WriteString(g.generate(map[byte]typ{'b': tBool, 'i': tInt, 's': tText, 't': tTime, 'd': tDuration, 'l': tTexts}[c], depth-1))
		}
	}
	return out.String()
}

func (g *generator) leaf(t typ) string {
	leaves := map[typ][]string{
		tBool:     {"true", "false", "known", "outside"},
		tInt:      {"0", "1", "2", "-1", "0x1f", "port", "9223372036854775807", "-9223372036854775808", "3600"},
		tText:     {`""`, `"git"`, `'push'`, `"\x41\u00fc"`, `r"\d"`, `"""a"b"""`, "program", "verb", "path", "host", "arguments.x", `arguments["git"]`, "argv[0]", `"12"`, `"1h"`, `"2026-01-31T12:00:00+02:00"`},
		tTime:     {`timestamp("2026-01-31T23:59:59.5Z")`, `timestamp("0001-01-01T00:00:00Z")`, `timestamp("9999-12-31T23:59:59Z")`, `timestamp("2024-02-29T01:00:00-05:30")`, "timestamp(0)"},
		tDuration: {`duration("1h30m")`, `duration("-1.5s")`, `duration("2562047h47m16s")`, `duration("0")`},
		tTexts:    {"argv", "args", `["git", 'push']`, "[]", `["a"]`},
	}[t]
	if t == tText && g.bound != "" && g.IntN(2) == 0 {
		return g.bound
	}
	if leaves == nil {
		return "[1, 2]"
	}
	return leaves[g.IntN(len(leaves))]
}

// TestConditionsMeanWhatCELSays generates conditions.
func TestConditionsMeanWhatCELSays(t *testing.T) {
	env := celFor(attempts())
	random := rand.New(rand.NewPCG(1, 2))
	all := samples(random, 40)
	g := &generator{Rand: random}
	for range 3000 {
		condition := g.generate(tBool, 1+random.IntN(5))
		if compareWithCEL(t, env, condition, all) {
			continue
		}
		_, issues := env.Compile(condition)
		_, err := attempts().compile(condition)
		if issues.Err() == nil && !strings.Contains(err.Error(), "list(?)") && !strings.Contains(err.Error(), "the empty list") && !strings.Contains(err.Error(), "nested comprehensions") {
			t.Errorf("only CEL accepts %s: %v", condition, err)
		}
	}
}

// FuzzAgainstCEL takes conditions from the fuzzer.
func FuzzAgainstCEL(f *testing.F) {
	for _, s := range celSeeds {
		f.Add(s)
	}
	env := celFor(attempts())
	all := samples(rand.New(rand.NewPCG(3, 4)), 8)
	f.Fuzz(func(t *testing.T, condition string) { compareWithCEL(t, env, condition, all) })
}

// celSeeds are corners of the grammar.
var celSeeds = []string{
	`[1, 2].exists(a, a == 3) || [["x"]].exists(a, a == []) || argv.exists(a, [a] == ["git"] || a in [verb])`, `[true, false].exists(a, a) && [[true]].all(a, a[0])`,
	`program == "git" && verb in ["push", "pull"] || !known`, `argv.exists(a, a.startsWith("--") && a != "--help")`, `args.filter(a, !a.startsWith("-")).size() > 1`,
	`known ? outside : !outside`, `known ? (known ? true : false) : outside ? true : false`, `known ? known ? true : false : false`, `argv[7] == "x" || program == "git"`,
	`-9223372036854775808 < port`, `9223372036854775808 == port`, `--1 == 1`, `---1 == -1`, `- 1 == -1`, `-port == 0`, `!!known`, `!-1`, `1 -1 == 0`, `1--1 == 2`, `0x10 == 16 && 010 == 10`,
	`1.5 == port`, `1u == port`, `1e3 == port`, `.5 < port`, `b"x" == b"x"`, `null == program`, `{"a": "b"} == arguments`, `{}.size() == 0`, `program.?x == ""`, `[?program].size() == 1`,
	"'''a\r\nb''' == \"a\\nb\"", "\"a\rb\" == program", `r'\' == "\\"`, `R"""\"""" == program`, `"\377" == "ÿ"`, `"\400" == ""`, `"\ud800" == ""`, `"\U00110000" == ""`, `"\q" == ""`, `'' == ""`, `''' ''' == " "`,
	`program == // comment` + "\n" + `"git"`, "program\f==\"\"", "program\v==\"\"", `.program == ""`, `program . size ( ) == 0`, `program.size == 0`, `arguments.as == ""`, `arguments.in == ""`, `arguments.true == ""`, "arguments.`x` == \"\"",
	`as == ""`, `argv.exists(if, true)`, `argv.exists(__result__, true)`, `argv.exists(a.b, true)`, `argv.exists(a, a)`, `argv.exists(a, true, true)`, `argv.map(a, a == "x", a).size() == 1`, `argv.existsOne(a, a == "x")`,
	`[1,].size() == 1`, `[,].size() == 0`, `program.contains("x",)`, `[] == []`, `[[]] == [["a"]]`, `["a"] in [[]]`, `[].exists(a, a == "")`, `[][0] == ""`, `argv == []`, `[1, "a"].size() == 2`, `"x" in []`, `[argv, args][0] == args`,
	`argv.exists(a, argv.exists(b, a == b))`, `argv.filter(a, a != "").exists(a, a == "")`, `argv.exists(a, [].all(b, true))`, `arguments == arguments`, `[arguments] == [arguments]`, `has(arguments.x.y)`, `has(program.x)`, `has(arguments)`, `has(arguments["x"])`,
	`duration("1h") < timestamp(0) - timestamp("1970-01-01T00:00:00Z")`, `timestamp("2026-13-01T00:00:00Z") == timestamp(0)`, `timestamp("2026-01-01T00:00:60Z") == timestamp(0)`, `timestamp("2026-01-01T24:00:00Z") == timestamp(0)`, `timestamp("2026-01-01 00:00:00Z") == timestamp(0)`, `timestamp("2026-01-01T00:00:00,5Z") == timestamp(0)`, `timestamp("2026-01-01T00:00:00+24:00") == timestamp(0)`, `timestamp("2026-01-01T0:00:00Z") == timestamp(0)`, `timestamp("2026-01-01T00:00:00.Z") == timestamp(0)`,
	`timestamp(0).getHours("+02:00") == 2`, `int(duration("1s")) == 1`, `duration(1) == duration("1ns")`, `string(timestamp("2026-01-31T12:00:00.120+02:00")) == "2026-01-31T12:00:00.12+02:00"`, `int("+1") == 1 && int(" 1") == 1`, `bool("T")`, `int("0x10") == 16`, `duration("1d") == duration("24h")`, `timestamp(253402300800) == timestamp(0)`,
	`program.matches("(")`, `program.matches("a{1000}")`, `program.matches("(?i)GIT")`, `program.matches(verb)`, `matches(program, "g")`, `size(program) == program.size()`, `contains(program, "x")`, `program.under("/") == under(program, "/")`, `string == string`, `argv.exists(string, string == "x")`, `int(int) == 1`, `type(program) == string`, `dyn(program) == 1`, `double(port) == 0.0`, `program < verb == known`, `1 < 2 < 3`, `known < outside`, `argv < args`, `argv + [1] == []`, `(known && outside) && (known || outside)`, `program == "a" == (verb == "b")`,
}

// TestCornersOfCEL runs celSeeds in each test run.
func TestCornersOfCEL(t *testing.T) {
	env := celFor(attempts())
	all := samples(rand.New(rand.NewPCG(5, 6)), 20)
	var refused []string
	for _, s := range celSeeds {
		if _, issues := env.Compile(s); !compareWithCEL(t, env, s, all) && issues.Err() == nil {
			_, err := attempts().compile(s)
			refused = append(refused, fmt.Sprintf("%s: %v", s, err))
		}
	}
	slices.Sort(refused)
	t.Logf("only CEL accepts:\n%s", strings.Join(refused, "\n"))
}
