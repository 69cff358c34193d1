package expr

import (
	"errors"
	"fmt"
	"sync"
)

// Limits of a condition.
const (
	maxCondition = 16 << 10   // bytes
	maxDepth     = 100        // brackets in one another
	maxPattern   = 1000       // instructions of a regular expression
	maxCost      = 50_000_000 // of one evaluation, see frame.spend: less than two seconds
)

// Program is a condition that was checked. It can be used by several goroutines
// at once.
type Program struct {
	source string
	over   *language
	tree   *node
}

// language is what the conditions on one sort of thing can name.
type language struct {
	fields []Field
	words  map[string][]string                     // what a field can be, where that is a closed list
	index  map[string]int                          // of the fields, by name
	derive func(f Fields, name string) (any, bool) // a field made of others; nil for none
}

// events is the language of conditions on events.
var events = sync.OnceValue(func() *language { return newLanguage(vocabulary, words(), ofTool) })

func newLanguage(fields []Field, words map[string][]string, derive func(Fields, string) (any, bool)) *language {
	l := &language{fields: fields, words: words, derive: derive, index: make(map[string]int, len(fields))}
	for i, f := range fields {
		l.index[f.Name] = i
	}
	return l
}

// Compile checks a condition on events, which must be true or false. The error
// is an *Error that says where and, for a misspelt name, what may have been
// meant.
func Compile(condition string) (*Program, error) { return events().compile(condition) }

func (l *language) compile(condition string) (*Program, error) {
	tree, err := parse(condition)
	if err == nil {
		err = (&checker{over: l}).check(tree)
	}
	if err == nil && tree.typ != tBool {
		err = problem(0, "it is of type %s: a condition is true or false", tree.typ)
	}
	var failure *Error
	if errors.As(err, &failure) {
		failure.setPosition(condition)
	}
	if err != nil {
		return nil, err
	}
	return &Program{source: condition, over: l, tree: tree}, nil
}

// String is the condition as it was written.
func (p *Program) String() string { return p.source }

// Matches reports whether the condition is true of v. What v does not have
// counts as empty: "", 0, no elements. An error means that it could not be
// found out, because an expression failed (a number out of range, an index that
// is not there), because it became too expensive, or because a field of v is
// not of its type.
func (p *Program) Matches(v Fields) (bool, error) {
	f := frame{over: p.over, fields: v}
	f.attempted, _ = v.(*Attempted)
	holds, err := p.tree.evalBool(&f)
	if f.err != nil {
		err = f.err
	}
	if err != nil {
		return false, fmt.Errorf("evaluating a condition: %w", err)
	}
	return holds, nil
}
