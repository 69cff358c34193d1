package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// op is what a node of a condition does.
type op int

const (
	opLiteral op = iota
	opField      // a field of what the condition is about
	opBound      // the element that a loop looks at
	opAnd
	opOr
	opIf // ?:
	opEqual
	opUnequal
	opOrder // < <= > >=
	opIn
	opIndex
	opList
	opCall // of a function, or an operator that is one
	opLoop // exists, all, exists_one, filter, map

	// Only between parser and checker.
	opName
	opSelect
)

// node is one expression of a condition. The parser makes it; the checker gives
// it its type and settles what it does.
type node struct {
	op     op
	at     int    // byte offset in the condition
	name   string // of a name, field, function or operator
	args   []*node
	member bool // a call that has its target before the dot, as first of args

	typ      typ
	value    value // of a literal; of a field, its default; of a list of literals, the list
	constant bool  // a list of literals
	field    int   // number of a field
	call     *function
	pattern  *regexp.Regexp // of matches() with a literal
	size     int            // of a loop: how many expressions are evaluated for each element
}

// parser reads a condition by recursive descent, with the grammar of cel-spec.
type parser struct {
	lexer
	token token
	depth int
}

func parse(source string) (*node, error) {
	if len(source) > maxCondition {
		return nil, problem(0, "it is longer than %d bytes", maxCondition)
	}
	if !utf8.ValidString(source) {
		return nil, problem(0, "it is not UTF-8")
	}
	p := &parser{lexer: lexer{source: source}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.expression()
	if err == nil && p.token.kind != tokenEnd {
		err = p.unexpected("an operator")
	}
	return n, err
}

func (p *parser) advance() (err error) {
	p.token, err = p.next()
	return err
}

func (p *parser) is(signs ...string) bool {
	return p.token.kind == tokenSign && slices.Contains(signs, p.token.text)
}

func (p *parser) expect(sign string) error {
	if !p.is(sign) {
		return p.unexpected(strconv.Quote(sign))
	}
	return p.advance()
}

func (p *parser) unexpected(wanted string) error {
	switch {
	case p.token.kind == tokenEnd:
		return problem(p.token.at, "syntax error: it ends where %s is expected", wanted)
	case p.is("{"):
		return unsupported(p.token.at, "a map or a message in braces")
	case p.is("?"):
		return unsupported(p.token.at, "an optional value")
	}
	return problem(p.token.at, "syntax error: found %q, expected %s", p.token.text, wanted)
}

// expression is a choice (a ? b : c), or what may be in one.
func (p *parser) expression() (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, problem(p.token.at, "its expressions are nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	condition, err := p.chain(0)
	if err != nil || !p.is("?") {
		return condition, err
	}
	n := &node{op: opIf, at: p.token.at, name: "?:", args: []*node{condition}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	then, err := p.chain(0)
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	otherwise, err := p.expression()
	n.args = append(n.args, then, otherwise)
	return n, err
}

// precedence lists the binary operators, from those that bind least.
var precedence = [...][]string{{"||"}, {"&&"}, {"<", "<=", ">=", ">", "==", "!=", "in"}, {"+", "-"}, {"*", "/", "%"}}

// chain reads operators of a level, the left ones first, between what binds more.
func (p *parser) chain(level int) (*node, error) {
	if level == len(precedence) {
		return p.unary()
	}
	left, err := p.chain(level + 1)
	for err == nil && (p.is(precedence[level]...) || level == 2 && p.token.kind == tokenName && p.token.text == "in") {
		t := p.token
		if err = p.advance(); err != nil {
			break
		}
		var right *node
		if right, err = p.chain(level + 1); err != nil {
			break
		}
		if kind := binary(t.text); (kind == opAnd || kind == opOr) && left.op == kind {
			left.args = append(left.args, right)
		} else {
			left = &node{op: kind, at: t.at, name: t.text, args: []*node{left, right}}
		}
	}
	return left, err
}

func binary(sign string) op {
	switch sign {
	case "&&":
		return opAnd
	case "||":
		return opOr
	case "==":
		return opEqual
	case "!=":
		return opUnequal
	case "<", "<=", ">", ">=":
		return opOrder
	case "in":
		return opIn
	}
	return opCall
}

// unary reads signs of one sort before a value: two of them cancel out. A minus before
// a number belongs to it, so that the least number can be written.
func (p *parser) unary() (*node, error) {
	sign, odd := p.token, false
	for p.is("!", "-") && p.token.text == sign.text {
		odd = !odd
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if sign.text == "-" && odd && p.token.kind == tokenInt {
		return p.member("-")
	}
	n, err := p.member("")
	if err == nil && odd {
		n = &node{op: opCall, at: sign.at, name: sign.text, args: []*node{n}}
	}
	return n, err
}

// member reads a value and what is asked of it: fields, calls, elements.
func (p *parser) member(negative string) (*node, error) {
	n, err := p.primary(negative)
	for err == nil {
		t := p.token
		switch {
		case p.is("."):
			n, err = p.selected(n)
		case p.is("["):
			if err = p.advance(); err != nil {
				break
			}
			var index *node
			if index, err = p.expression(); err == nil {
				err = p.expect("]")
			}
			n = &node{op: opIndex, at: t.at, name: "[]", args: []*node{n, index}}
		default:
			return n, nil
		}
	}
	return nil, err
}

func (p *parser) selected(of *node) (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	t := p.token
	if t.kind != tokenName || keyword(t.text) {
		return nil, p.unexpected("a name")
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.is("(") {
		return &node{op: opSelect, at: t.at, name: t.text, args: []*node{of}}, nil
	}
	args, err := p.list("(", ")")
	return &node{op: opCall, at: t.at, name: t.text, member: true, args: append([]*node{of}, args...)}, err
}

// list reads expressions between brackets.
func (p *parser) list(open, end string) (all []*node, err error) {
	if err := p.expect(open); err != nil {
		return nil, err
	}
	for !p.is(end) {
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		all = append(all, n)
		if !p.is(",") {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.is(end) && end == ")" {
			return nil, p.unexpected("a value")
		}
	}
	return all, p.expect(end)
}

func keyword(name string) bool { return slices.Contains([]string{"true", "false", "null", "in"}, name) }

// reserved are the words of cel-spec that name nothing.
const reserved = " as break const continue else for function if import let loop package namespace return var void while "

func (p *parser) primary(negative string) (*node, error) {
	t := p.token
	switch {
	case t.kind == tokenInt:
		return p.integer(negative)
	case t.kind == tokenText:
		return &node{op: opLiteral, at: t.at, typ: tText, value: value{text: t.text}}, p.advance()
	case t.kind == tokenName:
		return p.named()
	case p.is("["):
		args, err := p.list("[", "]")
		return &node{op: opList, at: t.at, args: args}, err
	case p.is("."):
		return nil, unsupported(t.at, "a name with a dot before it")
	case p.is("("):
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.expression()
		if err == nil {
			err = p.expect(")")
		}
		return n, err
	}
	return nil, p.unexpected("a value")
}

func (p *parser) integer(negative string) (*node, error) {
	t := p.token
	digits, base := strings.CutPrefix(t.text, "0x")
	n, err := strconv.ParseInt(negative+digits, map[bool]int{true: 16, false: 10}[base], 64)
	if err != nil {
		return nil, problem(t.at, "%s%s does not fit in 64 bits", negative, t.text)
	}
	return &node{op: opLiteral, at: t.at, typ: tInt, value: value{n: n}}, p.advance()
}

func (p *parser) named() (*node, error) {
	t := p.token
	switch {
	case t.text == "true" || t.text == "false":
		return &node{op: opLiteral, at: t.at, typ: tBool, value: boolValue(t.text == "true")}, p.advance()
	case t.text == "null":
		return nil, unsupported(t.at, "null")
	case keyword(t.text) || strings.Contains(reserved, fmt.Sprintf(" %s ", t.text)):
		return nil, problem(t.at, "syntax error: %q is a reserved word", t.text)
	}
	if err := p.advance(); err != nil || !p.is("(") {
		return &node{op: opName, at: t.at, name: t.text}, err
	}
	args, err := p.list("(", ")")
	return &node{op: opCall, at: t.at, name: t.text, args: args}, err
}
