package expr

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// answer is what can be said of a condition without the language's own
// evaluator, which takes microseconds where most conditions are told in less
// than a hundred nanoseconds.
type answer int

// The zero value leaves it to the evaluator.
const (
	unsure answer = iota
	no
	yes
)

func sure(b bool) answer {
	if b {
		return yes
	}
	return no
}

// frame is what a condition is evaluated over: fields, and what a comprehension
// binds. A field is asked for once.
type frame struct {
	fields *Attempted
	bound  string // the element of the list that is looked at; comprehensions do not nest
}

type (
	quickBool func(*frame) answer
	quickText func(*frame) (text string, ok bool)
	quickList func(*frame) (list []string, ok bool)
)

// quick compiles what it can of a condition; the rest is unsure.
type quick struct {
	bound string // name of what a comprehension binds; "" outside of one
}

func (q quick) truth(e ast.Expr) quickBool {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return func(*frame) answer { return sure(bool(b)) }
		}
	case ast.IdentKind:
		field := fieldNumber(e.AsIdent())
		if e.AsIdent() == q.bound {
			break
		}
		return func(f *frame) answer {
			if b, ok := f.fields.get(field).(bool); ok {
				return sure(b)
			}
			return unsure
		}
	case ast.CallKind:
		return q.call(e.AsCall())
	case ast.ComprehensionKind:
		return q.loop(e.AsComprehension())
	}
	return func(*frame) answer { return unsure }
}

func (q quick) call(c ast.CallExpr) quickBool {
	args := c.Args()
	switch name := c.FunctionName(); {
	case c.IsMemberFunction() && len(args) == 1:
		return q.member(name, c.Target(), args[0])
	case name == operators.LogicalNot:
		of := q.truth(args[0])
		return func(f *frame) answer {
			switch of(f) {
			case yes:
				return no
			case no:
				return yes
			}
			return unsure
		}
	case name == operators.LogicalAnd:
		return both(q.truth(args[0]), q.truth(args[1]), no)
	case name == operators.LogicalOr:
		return both(q.truth(args[0]), q.truth(args[1]), yes)
	case name == operators.Equals:
		return q.equal(args[0], args[1], true)
	case name == operators.NotEquals:
		return q.equal(args[0], args[1], false)
	case name == operators.In:
		return q.in(args[0], args[1])
	}
	return func(*frame) answer { return unsure }
}

// both are the operators && and ||, each of which one answer decides, whatever
// becomes of the other side.
func both(a, b quickBool, decides answer) quickBool {
	return func(f *frame) answer {
		x := a(f)
		if x == decides {
			return decides
		}
		y := b(f)
		if y == decides || x == y {
			return y
		}
		return unsure
	}
}

func (q quick) equal(a, b ast.Expr, want bool) quickBool {
	left, right := q.text(a), q.text(b)
	if left == nil || right == nil {
		return func(*frame) answer { return unsure }
	}
	return func(f *frame) answer {
		x, ok := left(f)
		if !ok {
			return unsure
		}
		y, ok := right(f)
		if !ok {
			return unsure
		}
		return sure((x == y) == want)
	}
}

func (q quick) in(element, of ast.Expr) quickBool {
	text, list := q.text(element), q.list(of)
	if text == nil || list == nil {
		return func(*frame) answer { return unsure }
	}
	return func(f *frame) answer {
		x, ok := text(f)
		if !ok {
			return unsure
		}
		all, ok := list(f)
		if !ok {
			return unsure
		}
		return sure(slices.Contains(all, x))
	}
}

// member is a function of a text that is true or false.
func (q quick) member(name string, target, argument ast.Expr) quickBool {
	text, other := q.text(target), q.text(argument)
	var test func(a, b string) bool
	switch name {
	case "startsWith":
		test = strings.HasPrefix
	case "endsWith":
		test = strings.HasSuffix
	case "contains":
		test = strings.Contains
	case "under":
		test = under
	case "matches":
		pattern, ok := constant(argument)
		if !ok {
			break
		}
		compiled := sync.OnceValues(func() (*regexp.Regexp, error) { return regexp.Compile(pattern) })
		test = func(a, _ string) bool { return compiledMatch(compiled, a) }
		if _, err := compiled(); err != nil {
			test = nil
		}
	}
	if text == nil || other == nil || test == nil {
		return func(*frame) answer { return unsure }
	}
	return func(f *frame) answer {
		a, ok := text(f)
		if !ok {
			return unsure
		}
		b, ok := other(f)
		if !ok {
			return unsure
		}
		return sure(test(a, b))
	}
}

func compiledMatch(compiled func() (*regexp.Regexp, error), s string) bool {
	re, err := compiled()
	return err == nil && re.MatchString(s)
}

// text is nil for what it does not know.
func (q quick) text(e ast.Expr) quickText {
	switch e.Kind() {
	case ast.LiteralKind:
		if s, ok := constant(e); ok {
			return func(*frame) (string, bool) { return s, true }
		}
	case ast.IdentKind:
		if e.AsIdent() == q.bound {
			return func(f *frame) (string, bool) { return f.bound, true }
		}
		field := fieldNumber(e.AsIdent())
		return func(f *frame) (string, bool) {
			s, ok := f.fields.get(field).(string)
			return s, ok
		}
	case ast.CallKind:
		return q.made(e.AsCall())
	}
	return nil
}

// made is a text that is made of another, or stands in a list.
func (q quick) made(c ast.CallExpr) quickText {
	if c.IsMemberFunction() && len(c.Args()) == 0 {
		change := map[string]func(string) string{"base": base, "lowerAscii": lowerASCII}[c.FunctionName()]
		of := q.text(c.Target())
		if change == nil || of == nil {
			return nil
		}
		return func(f *frame) (string, bool) {
			s, ok := of(f)
			return change(s), ok
		}
	}
	if c.FunctionName() != operators.Index || c.Args()[1].Kind() != ast.LiteralKind {
		return nil
	}
	at, ok := c.Args()[1].AsLiteral().(types.Int)
	list := q.list(c.Args()[0])
	if !ok || list == nil {
		return nil
	}
	return func(f *frame) (string, bool) {
		all, ok := list(f)
		if !ok || at < 0 || int64(at) >= int64(len(all)) {
			return "", false
		}
		return all[at], true
	}
}

// list is nil for what it does not know.
func (q quick) list(e ast.Expr) quickList {
	switch e.Kind() {
	case ast.IdentKind:
		field := fieldNumber(e.AsIdent())
		return func(f *frame) ([]string, bool) {
			l, ok := f.fields.get(field).([]string)
			return l, ok
		}
	case ast.ListKind:
		var all []string
		for _, one := range e.AsList().Elements() {
			s, ok := constant(one)
			if !ok {
				return nil
			}
			all = append(all, s)
		}
		return func(*frame) ([]string, bool) { return all, true }
	}
	return nil
}

// loop is list.exists(x, …) and list.all(x, …), as the macros write them.
func (q quick) loop(c ast.ComprehensionExpr) quickBool {
	leave := func(*frame) answer { return unsure }
	start, ok := literalBool(c.AccuInit())
	list := q.list(c.IterRange())
	if !ok || list == nil || q.bound != "" || c.LoopStep().Kind() != ast.CallKind || !isField(c.Result(), c.AccuVar()) {
		return leave
	}
	step, decides := c.LoopStep().AsCall(), yes
	want := operators.LogicalOr
	if start {
		want, decides = operators.LogicalAnd, no
	}
	if step.FunctionName() != want || !isField(step.Args()[0], c.AccuVar()) {
		return leave
	}
	one := quick{bound: c.IterVar()}.truth(step.Args()[1])
	return func(f *frame) answer {
		all, ok := list(f)
		if !ok {
			return unsure
		}
		out := sure(start)
		for _, f.bound = range all {
			switch one(f) {
			case decides:
				return decides
			case unsure:
				out = unsure
			}
		}
		return out
	}
}

func literalBool(e ast.Expr) (value, ok bool) {
	if e.Kind() != ast.LiteralKind {
		return false, false
	}
	b, ok := e.AsLiteral().(types.Bool)
	return bool(b), ok
}

// Attempted is an attempt that several conditions are evaluated over, each of
// whose fields is asked for once. It is for one goroutine.
type Attempted struct {
	of     Fields
	values [len(attemptVocabulary)]any
	asked  uint64 // a bit for each of values that is there
	frame  frame
}

// Over begins anew with other fields.
func (a *Attempted) Over(f Fields) {
	a.of, a.asked = f, 0
	a.frame.fields = a
}

// Field implements Fields.
func (a *Attempted) Field(name string) (any, bool) {
	v := a.get(fieldNumber(name))
	return v, v != nil
}

// fieldNumber is where a field stands in the vocabulary; -1 for none.
func fieldNumber(name string) int {
	for i := range attemptVocabulary {
		if attemptVocabulary[i].Name == name {
			return i
		}
	}
	return -1
}

func (a *Attempted) get(number int) any {
	if number < 0 {
		return nil
	}
	if a.asked&(1<<number) == 0 {
		a.values[number], _ = a.of.Field(attemptVocabulary[number].Name)
		a.asked |= 1 << number
	}
	return a.values[number]
}

// MatchesAttempt is Matches for an attempt that many conditions are evaluated
// over.
func (p *Program) MatchesAttempt(a *Attempted) (bool, error) {
	switch p.quick()(&a.frame) {
	case yes:
		return true, nil
	case no:
		return false, nil
	}
	return p.Matches(a)
}

// Names reports whether a condition names any of some fields.
func (p *Program) Names(fields ...string) bool {
	found := false
	ast.PreOrderVisit(p.tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.IdentKind && slices.Contains(fields, e.AsIdent())
	}))
	return found
}
