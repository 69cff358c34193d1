// Package expr evaluates conditions on events, in the Common Expression Language
// (cel-spec): the queries of the log and the rules of detection read the same
// fields by the same names.
//
// A condition is checked before it is used: names and types, the words that a
// field can have, and that it ends soon. Whoever wrote the record cannot make a
// condition expensive: without a comprehension its cost is that of the record's
// size, comprehensions do not nest, and where there is one the cost is counted.
package expr

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Limits of a condition.
const (
	maxCondition = 16 << 10   // bytes
	maxCost      = 50_000_000 // of one evaluation, in CEL's units: some five for each argument of the longest command line
)

// Program is a condition that was checked. It can be used by several goroutines
// at once.
type Program struct {
	source string
	over   *language
	eval   cel.Program
	tree   *ast.AST
	quick  func() quickBool
}

// language is what the conditions on one sort of thing can name.
type language struct {
	fields []Field
	words  map[string][]string // what a field can be, where that is a closed list
	env    func() (*cel.Env, error)
	kinds  func() map[string]kind                  // of the fields, by name
	derive func(f Fields, name string) (any, bool) // a field made of others; nil for none
}

// events is the language of conditions on events.
var events = newLanguage(vocabulary, words, ofTool)

// newLanguage prepares nothing: what CEL needs is made on first use, for it
// costs some milliseconds, and most runs have no condition to look at.
func newLanguage(fields []Field, words map[string][]string, derive func(Fields, string) (any, bool)) *language {
	l := &language{fields: fields, words: words, derive: derive}
	l.kinds = sync.OnceValue(func() map[string]kind { return kindsOf(fields) })
	l.env = sync.OnceValues(l.environment)
	return l
}

func (l *language) environment() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.ClearMacros(),
		cel.Macros(macros()...),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ParserRecursionLimit(100),
		cel.RegexProgramSizeLimit(1000),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(),
			cel.ValidateHomogeneousAggregateLiterals(), cel.ValidateComprehensionNestingLimit(1)),
	}
	for _, f := range l.fields {
		options = append(options, cel.Variable(f.Name, l.kinds()[f.Name].cel))
	}
	return cel.NewEnv(append(options, functions()...)...)
}

// Compile checks a condition on events, which must be true or false. The error
// is an *Error that says where and, for a misspelt name, what may have been
// meant.
func Compile(condition string) (*Program, error) { return events.compile(condition) }

func (l *language) compile(condition string) (*Program, error) {
	env, err := l.env()
	if err != nil {
		return nil, fmt.Errorf("preparing for conditions: %w", err)
	}
	if len(condition) > maxCondition {
		return nil, &Error{Line: 1, Column: 1, Problem: fmt.Sprintf("it is longer than %d bytes", maxCondition)}
	}
	if !utf8.ValidString(condition) {
		return nil, &Error{Line: 1, Column: 1, Problem: "it is not UTF-8"}
	}
	checked, issues := env.Compile(condition)
	if issues.Err() != nil {
		return nil, l.explain(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) {
		return nil, &Error{Line: 1, Column: 1, Problem: fmt.Sprintf("it is of type %s: a condition is true or false", t)}
	}
	loops, err := l.examine(checked)
	if err != nil {
		return nil, err
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if loops {
		options = append(options, cel.CostLimit(maxCost))
	}
	eval, err := env.Program(checked, options...)
	if err != nil {
		return nil, fmt.Errorf("preparing a condition: %w", err)
	}
	tree := checked.NativeRep()
	return &Program{source: condition, over: l, eval: eval, tree: tree,
		quick: sync.OnceValue(func() quickBool { return quick{}.truth(tree.Expr()) })}, nil
}

// String is the condition as it was written.
func (p *Program) String() string { return p.source }

// Matches reports whether the condition is true of v. What v does not have
// counts as empty: "", 0, no elements. An error means that it could not be
// found out, because an expression failed (a number out of range, an index that
// is not there), because it became too expensive, or because a field of v is
// not of its type.
func (p *Program) Matches(v Fields) (bool, error) {
	a := activations.Get().(*activation)
	defer activations.Put(a)
	a.over, a.fields, a.err = p.over, v, nil
	out, _, err := p.eval.Eval(a)
	a.fields = nil
	switch {
	case a.err != nil:
		return false, a.err
	case err != nil:
		return false, fmt.Errorf("evaluating a condition: %w", err)
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("evaluating a condition: the result is neither true nor false")
	}
	return bool(b), nil
}
