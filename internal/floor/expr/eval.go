package expr

import (
	"errors"
	"fmt"
)

var (
	errCost    = errors.New("it would take too long")
	errUnknown = errors.New("it is not known in full")
)

// Unknown is the value of a field that cannot be told, such as a command line
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

func (n *node) eval(f *frame) (value, error) {
	switch n.op {
	case opLiteral:
		return n.value, nil
	case opField:
		return n.ofField(f)
	case opBound:
		return f.bound, nil
	case opAnd:
		return n.decide(f, 0)
	case opOr:
		return n.decide(f, 1)
	case opIf:
		condition, err := n.args[0].eval(f)
		switch {
		case err != nil:
			return value{}, err
		case condition.n != 0:
			return n.args[1].eval(f)
		}
		return n.args[2].eval(f)
	case opList:
		if n.constant {
			return n.value, nil
		}
		return n.list(f)
	case opLoop:
		return n.loop(f)
	}
	return n.strict(f)
}

// decide is && and ||, which one side decides, whatever becomes of the other.
func (n *node) decide(f *frame, decisive int64) (value, error) {
	var failed error
	for _, a := range n.args {
		v, err := a.eval(f)
		switch {
		case err != nil:
			failed = err
		case v.n == decisive:
			return v, nil
		}
	}
	return value{n: 1 - decisive}, failed
}

// strict evaluates what needs the values of all its operands.
func (n *node) strict(f *frame) (out value, err error) {
	var a, b value
	if a, err = n.args[0].eval(f); err != nil {
		return value{}, err
	}
	if len(n.args) > 1 {
		if b, err = n.args[1].eval(f); err != nil {
			return value{}, err
		}
	}
	switch n.op {
	case opEqual:
		return truth(f.equal(a, b)), nil
	case opUnequal:
		return truth(!f.equal(a, b)), nil
	case opOrder:
		return n.order(f, a, b)
	case opIn:
		return f.in(a, b)
	case opIndex:
		return f.index(a, b)
	}
	cost := (len(a.text) + len(b.text)) / 16
	if n.call.cost != nil {
		cost += n.call.cost(a, b)
	}
	if err := f.spend(cost); err != nil {
		return value{}, err
	}
	if n.pattern != nil {
		return truth(n.pattern.MatchString(a.text)), nil
	}
	return n.call.apply(a, b)
}

func (n *node) order(f *frame, a, b value) (value, error) {
	c := compare(a, b)
	var holds bool
	switch n.name {
	case "<":
		holds = c < 0
	case "<=":
		holds = c <= 0
	case ">":
		holds = c > 0
	case ">=":
		holds = c >= 0
	}
	return truth(holds), f.spend(min(len(a.text), len(b.text)) / 16)
}

// equal compares two values of one type.
func (f *frame) equal(a, b value) bool {
	if a.ref == nil {
		if len(a.text) != len(b.text) {
			return false
		}
		_ = f.spend(len(a.text) / 16)
		return a.n == b.n && a.text == b.text
	}
	length := a.length()
	if length != b.length() || length == 0 {
		return length == b.length() && a.time().Equal(b.time())
	}
	for i := range length {
		if f.spend(1) != nil || !f.equal(a.element(i), b.element(i)) {
			return false
		}
	}
	return true
}

// in reports whether a list has an element, or a map a key.
func (f *frame) in(a, b value) (value, error) {
	switch all := b.ref.(type) {
	case []string:
		for i, text := range all {
			if len(text) == len(a.text) {
				_ = f.spend(len(text) / 16)
				if text == a.text {
					return truth(true), f.spend(i)
				}
			}
		}
		return value{}, f.spend(len(all))
	case []value:
		for _, v := range all {
			if f.equal(a, v) {
				return truth(true), nil
			}
		}
		return value{}, f.spend(len(all))
	}
	_, found, err := f.key(b, a.text)
	return truth(found), err
}

func (f *frame) index(a, b value) (value, error) {
	switch a.ref.(type) {
	case []string, []value:
		if b.n < 0 || b.n >= int64(a.length()) {
			return value{}, fmt.Errorf("index %d is not in a list of %d", b.n, a.length())
		}
		return a.element(int(b.n)), nil
	}
	text, _, err := f.key(a, b.text)
	return value{text: text}, err
}

// list makes a list. Of literals it is made once, without a frame.
func (n *node) list(f *frame) (value, error) {
	if n.typ == tTexts {
		all := make([]string, len(n.args))
		for i, a := range n.args {
			v, err := a.eval(f)
			if err != nil {
				return value{}, err
			}
			all[i] = v.text
		}
		return value{ref: all}, nil
	}
	all := make([]value, len(n.args))
	for i, a := range n.args {
		v, err := a.eval(f)
		if err != nil {
			return value{}, err
		}
		all[i] = v
	}
	return value{ref: all}, nil
}

// loop looks at each element of a list, or each key of a map in their order.
func (n *node) loop(f *frame) (value, error) {
	over, err := n.args[0].eval(f)
	if err != nil {
		return value{}, err
	}
	over = over.keys()
	switch n.name {
	case "exists":
		return n.search(f, over, 1)
	case "all":
		return n.search(f, over, 0)
	}
	return n.collect(f, over)
}

// search is exists and all, which one element decides, whatever becomes of the
// others.
func (n *node) search(f *frame, over value, decisive int64) (value, error) {
	var failed error
	for i := range over.length() {
		if err := f.spend(n.size); err != nil {
			return value{}, err
		}
		f.bound = over.element(i)
		v, err := n.args[1].eval(f)
		switch {
		case err != nil:
			failed = err
		case v.n == decisive:
			return v, nil
		}
	}
	return value{n: 1 - decisive}, failed
}

// collect is filter, map and exists_one, which fail with any element.
func (n *node) collect(f *frame, over value) (value, error) {
	var kept []value
	last := n.args[len(n.args)-1]
	for i := range over.length() {
		if err := f.spend(n.size); err != nil {
			return value{}, err
		}
		f.bound = over.element(i)
		if n.name != "map" || len(n.args) > 2 {
			holds, err := n.args[1].eval(f)
			switch {
			case err != nil:
				return value{}, err
			case holds.n == 0:
				continue
			}
		}
		v := f.bound
		if n.name == "map" {
			var err error
			if v, err = last.eval(f); err != nil {
				return value{}, err
			}
		}
		kept = append(kept, v)
	}
	if n.name == "exists_one" {
		return truth(len(kept) == 1), nil
	}
	return value{ref: kept}, nil
}

// ofField asks for the value of a field, which is empty where there is none.
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
	p.tree.visit(func(n *node) {
		for _, f := range fields {
			found = found || n.isField(f)
		}
	})
	return found
}

func (n *node) visit(do func(*node)) {
	do(n)
	for _, a := range n.args {
		a.visit(do)
	}
}

func (n *node) isField(name string) bool {
	return (n.op == opField || n.op == opBound) && n.name == name
}
