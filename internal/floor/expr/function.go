package expr

import (
	"errors"
	"fmt"
	"math"
	"path"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// function is a function or an operator with the types that it takes. Several
// may have one name.
type function struct {
	name           string
	global, member bool // only called as f(x), or only as x.f(); neither: both
	params         []typ
	result         typ                             // "": a list, of the one type of both
	test           func(a, b string) (bool, error) // of two texts
	apply          func(a, b value) (value, error) // of others
	cost           func(a, b value) int            // of apply, in addition to reading texts; nil for none
}

// accepts reports whether a function takes arguments, and what it returns then.
func (f *function) accepts(args []*node) (result typ, ok bool) {
	if len(args) != len(f.params) {
		return "", false
	}
	if f.result == "" {
		t := join(args[0].typ, args[1].typ)
		return t, t.element() != ""
	}
	for i, a := range args {
		t := a.typ
		if f.params[i] == tSize && (t == tText || t == tMap || t.element() != "") {
			continue
		}
		if t != f.params[i] {
			return "", false
		}
	}
	return f.result, true
}

// functions are all functions, except those that are not strict: operators that need
// not evaluate both sides, loops and has.
var functions = [...]function{
	{name: "!", global: true, params: []typ{tBool}, result: tBool, apply: func(a, _ value) (value, error) { return boolValue(a.n == 0), nil }},
	{name: "-", global: true, params: []typ{tInt}, result: tInt, apply: func(a, _ value) (value, error) { return subtract(value{}, a) }},
	{name: "+", global: true, params: []typ{tInt, tInt}, result: tInt, apply: add},
	{name: "+", global: true, params: []typ{tDuration, tDuration}, result: tDuration, apply: add},
	{name: "+", global: true, params: []typ{tTime, tDuration}, result: tTime, apply: later},
	{name: "+", global: true, params: []typ{tDuration, tTime}, result: tTime, apply: func(a, b value) (value, error) { return later(b, a) }},
	{name: "+", global: true, params: []typ{tText, tText}, result: tText, cost: textLengths, apply: func(a, b value) (value, error) { return value{text: a.text + b.text}, nil }},
	{name: "+", global: true, params: []typ{"", ""}, cost: listLengths, apply: func(a, b value) (value, error) { return concatenate(a, b), nil }},
	{name: "-", global: true, params: []typ{tInt, tInt}, result: tInt, apply: subtract},
	{name: "-", global: true, params: []typ{tDuration, tDuration}, result: tDuration, apply: subtract},
	{name: "-", global: true, params: []typ{tTime, tDuration}, result: tTime, apply: earlier},
	{name: "-", global: true, params: []typ{tTime, tTime}, result: tDuration, apply: durationBetween},
	{name: "*", global: true, params: []typ{tInt, tInt}, result: tInt, apply: multiply},
	{name: "/", global: true, params: []typ{tInt, tInt}, result: tInt, apply: divide},
	{name: "%", global: true, params: []typ{tInt, tInt}, result: tInt, apply: remainder},

	{name: "size", params: []typ{tSize}, result: tInt, apply: size},
	{name: "contains", member: true, params: []typ{tText, tText}, result: tBool, test: always(strings.Contains)},
	{name: "startsWith", member: true, params: []typ{tText, tText}, result: tBool, test: always(strings.HasPrefix)},
	{name: "endsWith", member: true, params: []typ{tText, tText}, result: tBool, test: always(strings.HasSuffix)},
	{name: "under", member: true, params: []typ{tText, tText}, result: tBool, test: always(isPathUnder)},
	{name: "matches", params: []typ{tText, tText}, result: tBool, test: matches},
	{name: "base", member: true, params: []typ{tText}, result: tText, apply: func(a, _ value) (value, error) { return value{text: base(a.text)}, nil }},
	{name: "lowerAscii", member: true, params: []typ{tText}, result: tText, cost: textLengths, apply: func(a, _ value) (value, error) { return value{text: lowerASCII(a.text)}, nil }},

	{name: "int", global: true, params: []typ{tInt}, result: tInt, apply: firstOperand},
	{name: "int", global: true, params: []typ{tText}, result: tInt, apply: parseInt},
	{name: "int", global: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return t.Unix() })},
	{name: "int", global: true, params: []typ{tDuration}, result: tInt, apply: firstOperand},
	{name: "bool", global: true, params: []typ{tBool}, result: tBool, apply: firstOperand},
	{name: "bool", global: true, params: []typ{tText}, result: tBool, apply: parseBool},
	{name: "string", global: true, params: []typ{tText}, result: tText, apply: firstOperand},
	{name: "string", global: true, params: []typ{tInt}, result: tText, apply: func(a, _ value) (value, error) { return value{text: strconv.FormatInt(a.n, 10)}, nil }},
	{name: "string", global: true, params: []typ{tBool}, result: tText, apply: func(a, _ value) (value, error) { return value{text: strconv.FormatBool(a.n != 0)}, nil }},
	{name: "string", global: true, params: []typ{tTime}, result: tText, apply: func(a, _ value) (value, error) { return value{text: a.time().Format(time.RFC3339Nano)}, nil }},
	{name: "string", global: true, params: []typ{tDuration}, result: tText, apply: func(a, _ value) (value, error) {
		return value{text: strconv.FormatFloat(time.Duration(a.n).Seconds(), 'f', -1, 64) + "s"}, nil
	}},
	{name: "timestamp", global: true, params: []typ{tTime}, result: tTime, apply: firstOperand},
	{name: "timestamp", global: true, params: []typ{tText}, result: tTime, apply: parseTime},
	{name: "timestamp", global: true, params: []typ{tInt}, result: tTime, apply: func(a, _ value) (value, error) { return timeWithin(a.n, 0, time.UTC) }},
	{name: "duration", global: true, params: []typ{tDuration}, result: tDuration, apply: firstOperand},
	{name: "duration", global: true, params: []typ{tText}, result: tDuration, apply: parseDuration},

	{name: "getFullYear", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Year()) })},
	{name: "getMonth", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Month()) - 1 })},
	{name: "getDayOfYear", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.YearDay()) - 1 })},
	{name: "getDate", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Day()) })},
	{name: "getDayOfMonth", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Day()) - 1 })},
	{name: "getDayOfWeek", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Weekday()) })},
	{name: "getHours", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Hour()) })},
	{name: "getMinutes", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Minute()) })},
	{name: "getSeconds", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Second()) })},
	{name: "getMilliseconds", member: true, params: []typ{tTime}, result: tInt, apply: ofTime(func(t time.Time) int64 { return int64(t.Nanosecond() / 1e6) })},
	{name: "getHours", member: true, params: []typ{tDuration}, result: tInt, apply: ofDuration(time.Hour)},
	{name: "getMinutes", member: true, params: []typ{tDuration}, result: tInt, apply: ofDuration(time.Minute)},
	{name: "getSeconds", member: true, params: []typ{tDuration}, result: tInt, apply: ofDuration(time.Second)},
	{name: "getMilliseconds", member: true, params: []typ{tDuration}, result: tInt, apply: ofDuration(time.Millisecond)},
}

func firstOperand(a, _ value) (value, error) { return a, nil }

// always makes a test that cannot fail.
func always(test func(a, b string) bool) func(a, b string) (bool, error) {
	return func(a, b string) (bool, error) { return test(a, b), nil }
}

// ofTime reads a part of a time in UTC.
func ofTime(part func(time.Time) int64) func(a, _ value) (value, error) {
	return func(a, _ value) (value, error) { return value{n: part(a.time().UTC())}, nil }
}

func ofDuration(unit time.Duration) func(a, _ value) (value, error) {
	return func(a, _ value) (value, error) { return value{n: a.n / int64(unit)}, nil }
}

func textLengths(a, b value) int { return len(a.text) + len(b.text) }
func listLengths(a, b value) int { return a.length() + b.length() }

// size counts the code points of a text, or elements.
func size(a, _ value) (value, error) {
	if a.ref != nil {
		return value{n: int64(a.length())}, nil
	}
	return value{n: int64(utf8.RuneCountInString(a.text))}, nil
}

func matches(text, pattern string) (bool, error) {
	re, err := compilePattern(pattern)
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

// compilePattern refuses a pattern whose counted repetitions make it large.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		var at *syntax.Error
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%s in the pattern: %q", at.Code, at.Expr)
		}
		return nil, err
	}
	if program, err := syntax.Compile(parsed.Simplify()); err != nil || len(program.Inst) > maxPattern {
		return nil, fmt.Errorf("the pattern compiles to more than %d instructions", maxPattern)
	}
	return regexp.Compile(pattern)
}

func parseInt(a, _ value) (value, error) {
	n, err := strconv.ParseInt(a.text, 10, 64)
	if err != nil {
		return value{}, fmt.Errorf("%.100q is not a 64-bit integer", a.text)
	}
	return value{n: n}, nil
}

func parseBool(a, _ value) (value, error) {
	b, err := strconv.ParseBool(a.text)
	if err != nil {
		return value{}, fmt.Errorf("%.100q is neither true nor false", a.text)
	}
	return boolValue(b), nil
}

func parseDuration(a, _ value) (value, error) {
	d, err := time.ParseDuration(a.text)
	if err != nil {
		return value{}, fmt.Errorf("%.100q is not a duration, such as \"1h30m\"", a.text)
	}
	return value{n: int64(d)}, nil
}

// parseTime takes what RFC 3339 does, and less than time.Parse: no comma, no
// number of one digit, no offset of more than a day.
func parseTime(a, _ value) (value, error) {
	s := a.text
	t, err := time.Parse(time.RFC3339, s)
	zone := len(s) - len("+00:00")
	if strings.HasSuffix(s, "Z") {
		zone = len(s) - 1
	}
	switch {
	case err != nil, strings.Contains(s, ","), len(s) < len("2006-01-02T15:04:05Z"), s[len("2006-01-02T15")] != ':':
	case s[zone] != 'Z' && (s[zone+1:zone+3] > "23" || s[zone+4:] > "59"):
	default:
		return timeWithin(t.Unix(), int64(t.Nanosecond()), t.Location())
	}
	return value{}, fmt.Errorf("%.100q is not an RFC 3339 time, such as \"2026-01-31T12:00:00Z\"", a.text)
}

var (
	errOverflow = errors.New("a number is out of range")
	errZero     = errors.New("division by zero")
	errTime     = errors.New("a time is outside the years 1 to 9999")
)

func add(a, b value) (value, error) {
	sum := a.n + b.n
	if (sum > a.n) != (b.n > 0) {
		return value{}, errOverflow
	}
	return value{n: sum}, nil
}

func subtract(a, b value) (value, error) {
	difference := a.n - b.n
	if (difference < a.n) != (b.n > 0) {
		return value{}, errOverflow
	}
	return value{n: difference}, nil
}

func multiply(a, b value) (value, error) {
	product := a.n * b.n
	if a.n != 0 && (product/a.n != b.n || a.n == -1 && b.n == math.MinInt64) {
		return value{}, errOverflow
	}
	return value{n: product}, nil
}

func divide(a, b value) (value, error) {
	switch {
	case b.n == 0:
		return value{}, errZero
	case b.n == -1 && a.n == math.MinInt64:
		return value{}, errOverflow
	}
	return value{n: a.n / b.n}, nil
}

func remainder(a, b value) (value, error) {
	if _, err := divide(a, b); err != nil {
		return value{}, err
	}
	return value{n: a.n % b.n}, nil
}

// timeWithin is a time of the years that CEL knows.
func timeWithin(seconds, nanoseconds int64, zone *time.Location) (value, error) {
	const first, last = -62135596800, 253402300799
	if seconds < first || seconds > last {
		return value{}, errTime
	}
	return value{ref: time.Unix(seconds, nanoseconds).In(zone)}, nil
}

func later(a, b value) (value, error) {
	t := a.time().Add(time.Duration(b.n))
	return timeWithin(t.Unix(), int64(t.Nanosecond()), t.Location())
}

func earlier(a, b value) (value, error) {
	minus, err := subtract(value{}, b)
	if err != nil {
		return value{}, err
	}
	return later(a, minus)
}

func durationBetween(a, b value) (value, error) {
	seconds, err := multiply(value{n: a.time().Unix() - b.time().Unix()}, value{n: int64(time.Second)})
	if err != nil {
		return value{}, err
	}
	return add(seconds, value{n: int64(a.time().Nanosecond() - b.time().Nanosecond())})
}

// isPathUnder reports whether the path name is dir or below it. Both are taken literally:
// dots and links are up to the recorder of the path.
func isPathUnder(name, dir string) bool {
	rest, ok := strings.CutPrefix(name, strings.TrimRight(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// base is the last name of a path; "" of "".
func base(name string) string {
	if name == "" {
		return ""
	}
	return path.Base(name)
}

// lowerASCII changes A to Z alone, so that bytes that are not UTF-8 stay.
func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
