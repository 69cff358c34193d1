//go:build linux

package native

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Names in the table that are not those of one call.
const (
	nameForeign = "*foreign" // a call of any other architecture
	nameX32     = "*x32"     // a number with the x32 bit
	nameUnknown = "*unknown" // a number without a row
)

// generated are the filters that the table compiles to (ARCH-LEVEL.bpf, in the
// kernel's own format), and the messages that set up the inner network
// (NAME.netlink).
//
//go:embed generated
var generated embed.FS

//go:embed syscalls.tsv
var tableText string

// numberText is generated from the SYS_ constants of golang.org/x/sys/unix.
//
//go:embed syscalls_numbers.tsv
var numberText string

// callRule is one row of the table.
type callRule struct {
	names     []string
	group     string
	verdict   string    // allow, kill, record, record-full, record-lookup or the name of an errno, as written
	level     level     // of filters that have it; levelNone for every filter
	answer    uint32    // verdict as a return value of the filter
	condition string    // as written; "" matches always
	tests     []argTest // all must hold
	reason    string
	reference string
}

// argTest compares the low 32 bits of one argument. The kernel declares every
// argument that a refusal looks at as a 32 bit or shorter integer and drops the
// rest, so a filter that looked at more could be passed by by setting a high
// bit (CVE-2019-10063). Where a pointer decides whether a call is recorded, a
// second test looks at its upper half.
type argTest struct {
	arg    int    // index, 0 to 5
	high   bool   // look at the upper half: pointers
	mask   uint32 // applied first
	values []uint32
	anyBit bool // holds when a masked bit is set; values is empty then
	negate bool // holds when no value equals
}

func (r *callRule) matches(args [6]uint64) bool {
	for _, t := range r.tests {
		if !t.holds(uint32(args[t.arg] >> t.shift())) {
			return false
		}
	}
	return true
}

func (t argTest) shift() int {
	if t.high {
		return 32
	}
	return 0
}

func (t argTest) holds(low uint32) bool {
	masked := low & t.mask
	if t.anyBit {
		return masked != 0
	}
	for _, v := range t.values {
		if v == masked {
			return !t.negate
		}
	}
	return t.negate
}

var tableRules = sync.OnceValues(func() ([]callRule, error) { return parseTable(tableText) })

// parseTable reads rows of six tab-separated columns: names, group, answer,
// condition, reason, reference. Lines that begin with # are comments.
func parseTable(text string) ([]callRule, error) {
	var rules []callRule
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return nil, fmt.Errorf("system call table, line %d: %w", i+1, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(line string) (callRule, error) {
	col := strings.Split(line, "\t")
	if len(col) != 6 {
		return callRule{}, fmt.Errorf("%d columns, want 6", len(col))
	}
	r := callRule{
		names: strings.Fields(col[0]), group: col[1], verdict: col[2],
		condition: col[3], reason: col[4], reference: col[5],
	}
	if len(r.names) == 0 || r.group == "" || r.reason == "" || r.reference == "" {
		return callRule{}, fmt.Errorf("only the condition may be empty: %q", line)
	}
	var err error
	if r.answer, err = parseAnswer(r.verdict); err != nil {
		return callRule{}, err
	}
	switch r.verdict {
	case "record":
		r.level = levelStandard
	case "record-full":
		r.level = levelFull
	case "record-lookup":
		r.level = levelLookups
	}
	if r.condition == "" {
		return r, nil
	}
	for _, part := range strings.Split(r.condition, " and ") {
		t, err := parseTest(strings.Fields(part))
		if err != nil {
			return callRule{}, fmt.Errorf("condition %q: %w", part, err)
		}
		r.tests = append(r.tests, t)
	}
	return r, nil
}

// errnoAnswers are the errors the table may give; the list is short so that a
// program meets only errors its authors have met on other systems.
var errnoAnswers = [...]unix.Errno{unix.EPERM, unix.ENOSYS, unix.EBUSY, unix.EINVAL, unix.ENOMEM, unix.ENOTTY,
	unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT}

func parseAnswer(s string) (uint32, error) {
	switch s {
	case "allow":
		return unix.SECCOMP_RET_ALLOW, nil
	case "kill":
		return unix.SECCOMP_RET_KILL_PROCESS, nil
	case "record", "record-full", "record-lookup":
		return unix.SECCOMP_RET_USER_NOTIF, nil
	}
	if i := slices.IndexFunc(errnoAnswers[:], func(e unix.Errno) bool { return unix.ErrnoName(e) == s }); i >= 0 {
		return unix.SECCOMP_RET_ERRNO | uint32(errnoAnswers[i]), nil
	}
	return 0, fmt.Errorf("unknown answer %q", s)
}

// parseTest reads "argN", an optional "& MASK", and one of nothing (any bit),
// "== V", "in V V …" and "not in V V …". A mask or value is a number, the name
// of a constant, or several joined by |; ~( ) around them complements.
func parseTest(f []string) (argTest, error) {
	t := argTest{mask: ^uint32(0)}
	if len(f) == 0 {
		return t, fmt.Errorf("want arg0 to arg5 first")
	}
	var name string
	name, t.high = strings.CutSuffix(f[0], "high")
	if len(name) != 4 || !strings.HasPrefix(name, "arg") || name[3] < '0' || name[3] > '5' {
		return t, fmt.Errorf("want arg0 to arg5 first")
	}
	t.arg = int(name[3] - '0')
	f = f[1:]
	if len(f) >= 2 && f[0] == "&" {
		m, err := parseConstant(f[1])
		if err != nil {
			return t, err
		}
		t.mask, f = m, f[2:]
	}
	switch {
	case len(f) == 0 && t.mask != ^uint32(0):
		t.anyBit = true
		return t, nil
	case len(f) == 2 && f[0] == "==":
		f = f[1:]
	case len(f) >= 2 && f[0] == "in":
		f = f[1:]
	case len(f) >= 3 && f[0] == "not" && f[1] == "in":
		t.negate, f = true, f[2:]
	default:
		return t, fmt.Errorf("want a comparison after %s", fmt.Sprint("arg", t.arg))
	}
	for _, s := range f {
		v, err := parseConstant(s)
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
	}
	return t, nil
}

func parseConstant(s string) (uint32, error) {
	body, complement := s, false
	if inner, ok := strings.CutPrefix(s, "~("); ok && strings.HasSuffix(inner, ")") {
		body, complement = strings.TrimSuffix(inner, ")"), true
	}
	var v uint32
	for _, part := range strings.Split(body, "|") {
		if c, ok := callConstants()[part]; ok {
			v |= c
			continue
		}
		n, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return 0, fmt.Errorf("neither a constant nor a 32 bit number: %q", part)
		}
		v |= uint32(n)
	}
	if complement {
		v = ^v
	}
	return v, nil
}

// callNumbers gives the numbers of arch by name, in lower case.
func callNumbers(arch string) (map[string]uint32, error) {
	head, body, _ := strings.Cut(strings.TrimSpace(numberText), "\n")
	column := slices.Index(strings.Split(head, "\t"), arch)
	if column < 1 {
		return nil, fmt.Errorf("no system call numbers for architecture %q", arch)
	}
	numbers := make(map[string]uint32, 400)
	for line := range strings.SplitSeq(body, "\n") {
		name, cell, _ := strings.Cut(line, "\t")
		for range column - 1 {
			_, cell, _ = strings.Cut(cell, "\t")
		}
		cell, _, _ = strings.Cut(cell, "\t")
		if cell == "-" {
			continue // this architecture lacks the call
		}
		n, err := strconv.ParseUint(cell, 10, 30)
		if err != nil {
			return nil, fmt.Errorf("system call number of %q for %s: %w", name, arch, err)
		}
		numbers[name] = uint32(n)
	}
	return numbers, nil
}
