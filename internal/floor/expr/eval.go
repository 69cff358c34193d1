package expr

import (
	"errors"
	"fmt"
)

var (
	errCost    = errors.New("it would take too long")
	errUnknown = errors.New("it is not fully known")
)

// Unknown is the value of a field that is not known, such as a command line
// that was cut: a condition fails whose result depends on it.
var Unknown = unknown{}

type unknown struct{}

// frame is one evaluation.
type frame struct {
	over      *language
	fields    Fields
	attempted *Attempted // the same fields, where they are kept; nil for others
	bound     value      // the element that a loop looks at: loops do not nest
	spent     int
	err       error // ends the evaluation: it became too expensive, or a field was of another type
}

// spend counts the cost of an evaluation: one for each expression in a loop, for
// each comparison with an element, for 16 bytes that are read or compared (of a
// pattern, for 32 of both lengths multiplied), and for each byte or element that
// is made.
func (f *frame) spend(cost int) error {
	f.spent += cost
	if f.spent > maxCost && f.err == nil {
		f.err = errCost
	}
	return f.err
}

// eval gives the value of an expression of any type.
func (n *node) eval(f *frame) (value, error) {
	switch {
	case n.op == opField:
		return n.ofField(f)
	case n.op == opBound:
		return f.bound, nil
	case n.typ == tBool:
		holds, err := n.evalBool(f)
		return boolValue(holds), err
	}
	switch n.op {
	case opLiteral:
		return n.value, nil
	case opIf:
		chosen, err := n.choose(f)
		if err != nil {
			return value{}, err
		}
		return chosen.eval(f)
	case opList:
		return n.list(f)
	case opLoop:
		return n.collect(f)
	case opIndex:
		a, b, err := n.evalBoth(f)
		if err != nil {
			return value{}, err
		}
		return f.index(a, b)
	}
	return n.apply(f)
}

// evalBool gives the value of an expression that is true or false.
func (n *node) evalBool(f *frame) (bool, error) {
	switch n.op {
	case opLiteral:
		return n.value.n != 0, nil
	case opAnd:
		return n.decide(f, false)
	case opOr:
		return n.decide(f, true)
	case opIf:
		chosen, err := n.choose(f)
		if err != nil {
			return false, err
		}
		return chosen.evalBool(f)
	case opEqual:
		return n.equal(f)
	case opUnequal:
		equal, err := n.equal(f)
		return !equal, err
	case opOrder:
		return n.order(f)
	case opIn:
		return n.evalIn(f)
	case opLoop:
		if n.name == "exists" || n.name == "all" {
			return n.search(f, n.name == "exists")
		}
		one, err := n.collect(f)
		return one.length() == 1, err
	case opCall:
		if n.call.test != nil {
			return n.test(f)
		}
		v, err := n.apply(f)
		return v.n != 0, err
	case opField:
		v, err := n.ofField(f)
		return v.n != 0, err
	case opBound:
		return f.bound.n != 0, nil
	}
	a, b, err := n.evalBoth(f) // opIndex: there is no other
	if err != nil {
		return false, err
	}
	v, err := f.index(a, b)
	return v.n != 0, err
}

// choose gives the branch that a ?: takes.
func (n *node) choose(f *frame) (*node, error) {
	holds, err := n.args[0].evalBool(f)
	if err != nil || holds {
		return n.args[1], err
	}
	return n.args[2], nil
}

// words gives the value of an expression that is a text.
func (n *node) words(f *frame) (string, error) {
	switch n.op {
	case opLiteral:
		return n.value.text, nil
	case opBound:
		return f.bound.text, nil
	case opField:
		if f.attempted != nil {
			if text, ok := f.attempted.get(n.field).(string); ok {
				return text, nil
			}
		}
	case opIndex:
		if at := n.args[1]; at.op == opLiteral && at.typ == tInt {
			all, err := n.args[0].elements(f)
			if err != nil {
				return "", err
			}
			if texts, ok := all.([]string); ok && at.value.n >= 0 && at.value.n < int64(len(texts)) {
				return texts[at.value.n], nil
			}
			v, err := f.index(value{ref: all}, at.value)
			return v.text, err
		}
	}
	v, err := n.eval(f)
	return v.text, err
}

// elements gives the value of an expression that is a list or a map, as value.ref.
func (n *node) elements(f *frame) (any, error) {
	switch {
	case n.constant:
		return n.value.ref, nil
	case n.op == opField && f.attempted != nil:
		v := f.attempted.get(n.field)
		if _, ok := v.([]string); ok {
			return v, nil
		}
	}
	v, err := n.eval(f)
	return v.ref, err
}

// decide is && and ||, which one side decides, whatever becomes of the other.
func (n *node) decide(f *frame, decisive bool) (bool, error) {
	var failed error
	for _, a := range n.args {
		holds, err := a.evalBool(f)
		switch {
		case err != nil:
			failed = err
		case holds == decisive:
			return decisive, nil
		}
	}
	return !decisive, failed
}

// evalBoth gives the values of two operands.
func (n *node) evalBoth(f *frame) (a, b value, err error) {
	if a, err = n.args[0].eval(f); err == nil {
		b, err = n.args[1].eval(f)
	}
	return a, b, err
}

// texts gives the values of two operands that are texts.
func (n *node) texts(f *frame) (a, b string, err error) {
	if a, err = n.args[0].words(f); err == nil {
		b, err = n.args[1].words(f)
	}
	return a, b, err
}

// test calls a function that asks something of one text with another.
func (n *node) test(f *frame) (bool, error) {
	a, b, err := n.texts(f)
	if err != nil {
		return false, err
	}
	cost := (len(a) + len(b)) / 16
	if n.name == "matches" {
		cost += len(a) * len(b) / 32
	}
	switch err := f.spend(cost); {
	case err != nil:
		return false, err
	case n.pattern != nil:
		return n.pattern.MatchString(a), nil
	}
	return n.call.test(a, b)
}

// apply calls any other function.
func (n *node) apply(f *frame) (value, error) {
	a, err := n.args[0].eval(f)
	if err != nil {
		return value{}, err
	}
	var b value
	if len(n.args) > 1 {
		if b, err = n.args[1].eval(f); err != nil {
			return value{}, err
		}
	}
	cost := (len(a.text) + len(b.text)) / 16
	if n.call.cost != nil {
		cost += n.call.cost(a, b)
	}
	if err := f.spend(cost); err != nil {
		return value{}, err
	}
	return n.call.apply(a, b)
}

// ofField reads the value of a field; a missing one is empty.
func (n *node) ofField(f *frame) (value, error) {
	var v any
	var found bool
	if f.attempted != nil {
		v = f.attempted.get(n.field)
		found = v != nil
	} else if v, found = f.fields.Field(n.name); !found && f.over.derive != nil {
		v, found = f.over.derive(f.fields, n.name)
	}
	if !found {
		return n.value, nil
	}
	if v == Unknown {
		return value{}, errUnknown
	}
	out, got := convert(v)
	if got != n.typ {
		if f.err == nil {
			f.err = fmt.Errorf("the field %s is a %T and should be of type %s", n.name, v, n.typ)
		}
		return value{}, f.err
	}
	return out, nil
}

// text is the value of a literal text.
func (n *node) text() (string, bool) { return n.value.text, n.op == opLiteral && n.typ == tText }

// Names reports whether a condition names any of some fields.
func (p *Program) Names(fields ...string) bool {
	found := false
	p.tree.walk(func(n *node) {
		for _, f := range fields {
			found = found || n.isField(f)
		}
	})
	return found
}

// walk calls do with each expression of a condition.
func (n *node) walk(do func(*node)) {
	do(n)
	for _, a := range n.args {
		a.walk(do)
	}
}

func (n *node) isField(name string) bool {
	return (n.op == opField || n.op == opBound) && n.name == name
}
