package agent

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// number is a version in npm's form: three numbers, and a tag for a prerelease.
type number struct {
	parts [3]int
	tag   string
}

// parseVersion accepts only what is a version in the registry: no range, no tag,
// no address of a package. An accepted version is safe in a file name and in an
// argument.
func parseVersion(s string) (number, error) {
	bad := fmt.Errorf("%q is not a version: write three numbers, such as 1.2.3", s)
	if len(s) > 64 {
		return number{}, errors.New("a version has at most 64 characters")
	}
	core, tag, tagged := strings.Cut(s, "-")
	if tagged && !isPlain(tag) {
		return number{}, bad
	}
	fields := strings.Split(core, ".")
	if len(fields) != 3 {
		return number{}, bad
	}
	n := number{tag: tag}
	for i, f := range fields {
		v, err := strconv.ParseUint(f, 10, 31)
		if err != nil || strconv.FormatUint(v, 10) != f {
			return number{}, bad
		}
		n.parts[i] = int(v)
	}
	return n, nil
}

// isPlain reports whether s consists of letters and digits with single dots or
// dashes between them.
func isPlain(s string) bool {
	last := byte('.')
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
		case (c == '.' || c == '-') && last != '.' && last != '-':
		default:
			return false
		}
		last = c
	}
	return last != '.' && last != '-'
}

// compare orders versions; a prerelease comes before its release, and two
// prereleases of one release are ordered as text, which is enough for bounds of
// ranges.
func (n number) compare(m number) int {
	for i := range n.parts {
		if c := cmp.Compare(n.parts[i], m.parts[i]); c != 0 {
			return c
		}
	}
	switch {
	case n.tag == m.tag:
		return 0
	case n.tag == "":
		return 1
	case m.tag == "":
		return -1
	}
	return cmp.Compare(n.tag, m.tag)
}

// Compare orders two versions of one program, as cmp.Compare does. An invalid
// version comes first.
func Compare(a, b string) int {
	x, errX := parseVersion(a)
	y, errY := parseVersion(b)
	switch {
	case errX != nil && errY != nil:
		return cmp.Compare(a, b)
	case errX != nil:
		return -1
	case errY != nil:
		return 1
	}
	return x.compare(y)
}

// bounds are conditions that must all hold.
type bounds []bound

type bound struct {
	op string // <, <=, >=, >, =
	at number
}

func parseBounds(s string) (bounds, error) {
	var all bounds
	for f := range strings.FieldsSeq(s) {
		var b bound
		for _, op := range []string{"<=", ">=", "<", ">", "="} {
			rest, ok := strings.CutPrefix(f, op)
			if !ok {
				continue
			}
			at, err := parseVersion(rest)
			if err != nil {
				return nil, err
			}
			b = bound{op: op, at: at}
			break
		}
		if b.op == "" {
			return nil, fmt.Errorf("%q does not begin with <, <=, >=, > or =", f)
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		return nil, errors.New("it is empty")
	}
	return all, nil
}

func (b bounds) contain(v number) bool {
	for _, x := range b {
		c := v.compare(x.at)
		ok := false
		switch x.op {
		case "<":
			ok = c < 0
		case "<=":
			ok = c <= 0
		case ">=":
			ok = c >= 0
		case ">":
			ok = c > 0
		case "=":
			ok = c == 0
		}
		if !ok {
			return false
		}
	}
	return true
}
