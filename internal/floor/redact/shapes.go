package redact

import "strings"

// shape is a token that is known by its beginning, or by its middle.
type shape struct {
	prefix string
	kind   string
	set    *charset
	least  int               // bytes after the prefix, at least
	most   int               // at most, 0 for any: more, and it is something else
	check  func(string) bool // of the token from the prefix on; nil for none
	leads  *charset          // what may be before the prefix; nil for tokens that begin with it
	lead   int               // bytes of that, at least
}

// charset is the characters that belong to a token: a bit for each of those below 64,
// and for each from there to 127. The sets are constants, which cost no start.
type charset struct{ low, high uint64 }

func (s *charset) contains(c byte) bool {
	if c < 64 {
		return s.low>>c&1 != 0
	}
	return c < 128 && s.high>>(c-64)&1 != 0
}

const (
	digit  = (1<<10 - 1) << '0'
	upper  = (1<<26 - 1) << ('A' - 64)
	lower  = (1<<26 - 1) << ('a' - 64)
	score  = 1 << ('_' - 64)
	signs  = 1<<'+' | 1<<'/' | 1<<'=' | 1<<'-' // of both alphabets of base64
	aToF   = (1<<6 - 1) << ('A' - 64)
	letter = upper | lower
)

var (
	alnum     = &charset{digit, letter}
	word      = &charset{digit | 1<<'-', letter | score}
	dotted    = &charset{digit | 1<<'-' | 1<<'.', letter | score}
	capitals  = &charset{digit, upper}
	digits    = &charset{digit, 0}
	hexDigits = &charset{digit, aToF | aToF<<('a'-'A')}
	webPath   = &charset{digit | 1<<'-' | 1<<'/', letter | score}
	tilded    = &charset{digit | 1<<'-' | 1<<'.', letter | score | 1<<('~'-64)}
	base64ish = &charset{digit | signs, letter | score}
	anyToken  = &charset{digit | signs | 1<<'.', letter | score}
)

// match returns where the token with its prefix at s[from:] begins and ends; an end of
// 0 means that there is none.
func (p *shape) match(s string, from int) (begin, end int) {
	if !strings.HasPrefix(s[from:], p.prefix) {
		return 0, 0
	}
	begin = from
	for begin > 0 && from-begin < leadMost && p.leads != nil && p.leads.contains(s[begin-1]) {
		begin--
	}
	// A word that merely ends in the prefix is something else. Where a token can be
	// too long or not one after all, the signs in it count as well: each text is then
	// looked at once, however often the prefix is in it.
	// A = is before a value more often than in it, and what is looked at behind one is
	// bounded.
	within := begin > 0 && (alnum.contains(s[begin-1]) || (p.check != nil || p.most > 0) && s[begin-1] != '=' && p.set.contains(s[begin-1]))
	if from-begin < p.lead || within && p.leads == nil && !escapeEnds(s, begin) {
		return 0, 0
	}
	first, last := from+len(p.prefix), len(s)
	if p.set.contains('=') && (p.check != nil || p.most > 0) {
		last = min(last, first+checkedMost)
	}
	for end = first; end < last && p.set.contains(s[end]); end++ {
	}
	for end > first && s[end-1] == '.' { // the end of a sentence
		end--
	}
	if n := end - first; n < p.least || p.most > 0 && n > p.most || p.check != nil && !p.check(s[from:end]) {
		return 0, 0
	}
	return begin, end
}

const (
	leadMost    = 64  // how much of a token may be before what it is known by
	checkedMost = 512 // how much of one may have to be looked at again
)

// escapeEnds reports whether an escape sequence such as \n or %3D ends before
// s[at:].
func escapeEnds(s string, at int) bool {
	if at >= 2 && s[at-2] == '\\' {
		return true
	}
	return at >= 3 && s[at-3] == '%' && strings.Trim(s[at-2:at], "0123456789abcdefABCDEF") == ""
}

// shapeAt returns the token that begins at s[from:].
func shapeAt(s string, from int) (*shape, int) {
	for i := range shapes {
		if begin, end := shapes[i].match(s, from); end > 0 && begin == from {
			return &shapes[i], end
		}
	}
	return nil, 0
}

// rarity orders the bytes of prefixes by how rare they are in what is written
// down: letters as in English, then signs, digits and capitals.
const rarity = "etaoinsrhldcumfpgwybvkxjqz/-._$0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// anchor is where in the prefix the two bytes are that it is looked for by:
// those that are rarest elsewhere.
func (p *shape) anchor() int {
	best, most := 0, -1
	for i := range len(p.prefix) - 1 {
		if n := strings.IndexByte(rarity, p.prefix[i]) + strings.IndexByte(rarity, p.prefix[i+1]); n > most {
			best, most = i, n
		}
	}
	return best
}

// isMixed reports whether a token has a digit and letters of both cases, as one that was
// drawn has and a name in a program rarely.
func isMixed(s string) bool {
	return hasDigit(s) && strings.ToLower(s) != s && strings.ToUpper(s) != s
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// isJWT reports whether a text is a signed or encrypted token in compact form (RFC
// 7515, 7516): three or five parts, the first of which is a JSON object.
func isJWT(s string) bool {
	parts := strings.Count(s, ".") + 1
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	return (parts == 3 || parts == 5) && len(first) >= 12 && (len(second) >= 8 || parts == 5)
}
