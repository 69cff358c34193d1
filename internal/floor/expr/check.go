package expr

import (
	"fmt"
	"slices"
	"strings"

	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// typ is the type of an expression, as messages name it.
type typ string

const (
	tText      typ = "string"
	tInt       typ = "int"
	tBool      typ = "bool"
	tTime      typ = "timestamp"
	tDuration  typ = "duration"
	tMap       typ = "map(string, string)"
	tTexts     typ = "list(string)"
	tAny       typ = "?" // of the elements of []
	tSize      typ = "text, list or map"
	listPrefix     = "list("
)

func listOf(t typ) typ { return listPrefix + t + ")" }

// element is the type of what is in a list; "" of what is no list.
func (t typ) element() typ {
	if !strings.HasPrefix(string(t), listPrefix) {
		return ""
	}
	return t[len(listPrefix) : len(t)-1]
}

// join is the one type of two expressions; "" where they have none. The empty
// list is of the type of any other.
func join(a, b typ) typ {
	switch {
	case a == b || b == tAny:
		return a
	case a == tAny:
		return b
	case a.element() == "" || b.element() == "":
		return ""
	}
	if t := join(a.element(), b.element()); t != "" {
		return listOf(t)
	}
	return ""
}

// checker gives each expression its type.
type checker struct {
	over  *language
	bound string // name of the element that a loop looks at; "" outside of one
	elem  typ
}

func (c *checker) check(n *node) error {
	switch n.op {
	case opName:
		return c.resolve(n)
	case opCall:
		return c.checkCall(n)
	case opSelect:
		key := &node{op: opLiteral, at: n.at, typ: tText, value: value{text: n.name}}
		n.op, n.name, n.args = opIndex, ".", append(n.args, key)
	}
	for _, a := range n.args {
		if err := c.check(a); err != nil {
			return err
		}
	}
	switch n.op {
	case opAnd, opOr:
		n.typ = tBool
		for _, a := range n.args {
			if a.typ != tBool {
				return mismatch(n, n.args)
			}
		}
	case opIf:
		n.typ = join(n.args[1].typ, n.args[2].typ)
		if n.args[0].typ != tBool || n.typ == "" {
			return mismatch(n, n.args)
		}
	case opList:
		return checkList(n)
	case opIndex:
		return checkIndex(n)
	case opEqual, opUnequal, opOrder, opIn:
		return c.checkComparison(n)
	}
	return nil
}

// mismatch reports that an operator or function does not take its arguments.
func mismatch(n *node, args []*node) error {
	var types []string
	for _, a := range args {
		types = append(types, string(a.typ))
	}
	to := "(" + strings.Join(types, ", ") + ")"
	if n.member {
		to = types[0] + ".(" + strings.Join(types[1:], ", ") + ")"
	}
	return problem(n.at, "%s does not apply to %s", n.name, to)
}

// resolve settles what a name is: the element of a loop, or a field.
func (c *checker) resolve(n *node) error {
	if n.name == c.bound {
		n.op, n.typ = opBound, c.elem
		return nil
	}
	i, found := c.over.index[n.name]
	if !found {
		return c.unknown(n)
	}
	n.op, n.field, n.typ = opField, i, typ(c.over.fields[i].Type)
	n.value = empty(n.typ)
	return nil
}

// outside are the functions of CEL that conditions do not have.
var outside = []string{"bytes", "double", "dyn", "list", "map", "type", "uint", "existsOne"}

func (c *checker) unknown(n *node) error {
	if n.op == opCall && slices.Contains(outside, n.name) {
		return unsupported(n.at, n.name+"() of CEL")
	}
	return &Error{at: n.at, Problem: fmt.Sprintf("there is no field and no function %q", n.name), Near: floortext.Nearest(n.name, c.over.names())}
}

func checkList(n *node) error {
	element, constant := tAny, true
	for _, a := range n.args {
		t := join(element, a.typ)
		if t == "" {
			return problem(a.at, "all elements of a list have one type: this is %s, others are %s", a.typ, element)
		}
		element = t
		constant = constant && a.op == opLiteral
	}
	n.typ = listOf(element)
	if constant {
		n.value, _ = n.list(nil) // literals do not fail
	}
	n.constant = constant
	return nil
}

func checkIndex(n *node) error {
	of, index := n.args[0].typ, n.args[1].typ
	switch {
	case of == tMap && index == tText:
		n.typ = tText
	case n.name == "." && of != tMap:
		return problem(n.at, "%q is looked up in %s: only maps have keys", n.args[1].value.text, of)
	case of.element() == tAny:
		return problem(n.at, "the empty list has no elements")
	case of.element() != "" && index == tInt:
		n.typ = of.element()
	default:
		return mismatch(n, n.args)
	}
	return nil
}

func (c *checker) checkComparison(n *node) error {
	a, b := n.args[0].typ, n.args[1].typ
	n.typ = tBool
	common := join(a, b)
	if n.op == opIn {
		common = join(a, b.element())
		if b == tMap {
			common = join(a, tText)
		} else if b.element() == "" {
			common = ""
		}
	}
	ordered := []typ{tText, tInt, tBool, tTime, tDuration}
	if common == "" || n.op == opOrder && !slices.Contains(ordered, common) {
		return mismatch(n, n.args)
	}
	if strings.Contains(string(common), string(tMap)) {
		return problem(n.at, "maps cannot be compared")
	}
	if n.op == opOrder {
		return nil
	}
	return c.over.misspelt(n.args[0], n.args[1])
}

// checkCall settles which function a call is of.
func (c *checker) checkCall(n *node) error {
	switch {
	case !n.member && n.name == "has":
		return c.checkHas(n)
	case n.member && loops[n.name] != 0:
		return c.checkLoop(n)
	}
	for _, a := range n.args {
		if err := c.check(a); err != nil {
			return err
		}
	}
	known := false
	for i := range functions {
		f := &functions[i]
		if f.name != n.name || f.global && n.member || f.member && !n.member {
			continue
		}
		known = true
		if result, ok := f.accepts(n.args); ok {
			n.call, n.typ = f, result
			return n.tryLiteral()
		}
	}
	if !known {
		return c.unknown(n)
	}
	return mismatch(n, n.args)
}

// tryLiteral refuses a literal that its function cannot use.
func (n *node) tryLiteral() (err error) {
	last := n.args[len(n.args)-1]
	switch {
	case last.op != opLiteral:
	case n.name == "matches":
		if n.pattern, err = compilePattern(last.value.text); err != nil {
			return problem(last.at, "matches: %v", err)
		}
	case n.name == "timestamp" || n.name == "duration":
		if _, err = n.call.apply(last.value, value{}); err != nil {
			return problem(last.at, "%v", err)
		}
	}
	return nil
}

// checkHas makes has(detail.x) what it asks: whether the key is there.
func (c *checker) checkHas(n *node) error {
	if len(n.args) != 1 || n.args[0].op != opSelect {
		return problem(n.at, "has() needs a detail, such as has(detail.status)")
	}
	asked := n.args[0]
	of := asked.args[0]
	if err := c.check(of); err != nil {
		return err
	}
	if of.typ != tMap {
		return problem(asked.at, "%q is looked up in %s: only maps have keys", asked.name, of.typ)
	}
	key := &node{op: opLiteral, at: asked.at, typ: tText, value: value{text: asked.name}}
	n.op, n.typ, n.args = opIn, tBool, []*node{key, of}
	return nil
}

// loops are the functions that look at each element of a list, or each key of a
// map: the most arguments that they have.
var loops = map[string]int{"exists": 2, "all": 2, "exists_one": 2, "filter": 2, "map": 3}

func (c *checker) checkLoop(n *node) error {
	if most := loops[n.name]; len(n.args) < 3 || len(n.args)-1 > most || n.args[1].op != opName || n.args[1].name == "__result__" {
		return problem(n.at, "%s needs a variable and an expression, such as argv.%s(a, a == \"-c\")", n.name, n.name)
	}
	over, name, body := n.args[0], n.args[1].name, n.args[2:]
	inner := counter{loops: 0}
	for _, a := range n.args {
		inner.count(a)
	}
	if inner.loops > 0 {
		return problem(n.at, "nested comprehensions are not supported: %s", n.name)
	}
	if err := c.check(over); err != nil {
		return err
	}
	element := over.typ.element()
	switch {
	case over.typ == tMap:
		element = tText
	case element == "" || element == tAny:
		return problem(n.at, "%s needs a list or a map: this is %s", n.name, over.typ)
	}
	inside := checker{over: c.over, bound: name, elem: element}
	for _, b := range body {
		if err := inside.check(b); err != nil {
			return err
		}
	}
	n.op, n.args, n.size, n.typ = opLoop, append([]*node{over}, body...), inner.nodes, tBool
	last := body[len(body)-1]
	switch {
	case n.name == "map":
		n.typ = listOf(last.typ)
	case n.name == "filter":
		n.typ = listOf(element)
	}
	if n.name != "map" && last.typ != tBool || len(body) == 2 && body[0].typ != tBool {
		return problem(last.at, "%s needs a condition that is true or false: this is %s", n.name, last.typ)
	}
	return nil
}

// counter counts expressions that are not checked yet.
type counter struct{ nodes, loops int }

func (c *counter) count(n *node) {
	c.nodes++
	if n.op == opCall && n.member && loops[n.name] != 0 {
		c.loops++
	}
	for _, a := range n.args {
		c.count(a)
	}
}
