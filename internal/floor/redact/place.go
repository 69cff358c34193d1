package redact

import (
	"encoding/base64"
	"strings"
)

// How far is looked from a sign, in bytes: each sign costs a bounded time.
const (
	wordMost     = 64      // of a name before it
	userinfoMost = 1 << 10 // of user:password before a host
	scriptMost   = 256     // of the command that a flag is for
	fileMost     = 128     // of what may be the name of a file
	gapMost      = 64      // between the values of a list
	labelMost    = 48      // of what a PEM block is called
	templateMost = 256     // of a template instead of a value
)

// lasts are the letters in which names of secrets end.
const lasts = "dDtTnNyYeEsSgGhHkK"

// placePairs are the signs beside which secrets are found: the end of a name and what
// separates it from its value.
func placePairs() []string {
	pairs := []string{"//", "-B", "[r", "\"=", "'=", " =", "\":", "':", "\",", "',", "u ", "U "}
	for _, last := range lasts {
		pairs = append(pairs, string(last)+"=", string(last)+":", string(last)+" ")
	}
	return append(pairs, "r ", "R ", "c ", "C ")
}

// findPlaced looks for a secret by the pair at s[at-1:at+1]. The hit has no mark if the
// text should be skipped.
func (r *Redactor) findPlaced(s string, at, free int) (hit, bool) {
	switch s[at] {
	case 'r':
		end := isMark(s, at-1)
		return hit{from: at - 1, to: end}, end > 0
	case '/':
		return r.address(s, at, free)
	case 'B':
		return r.pem(s, at, free)
	case ' ':
		return r.spaced(s, at, free)
	case ',':
		return r.findListed(s, at, free)
	default:
		return r.assigned(s, at, free)
	}
}

// nameBefore returns the name that ends at s[end-1].
func nameBefore(s string, end int) string {
	from := end
	for from > 0 && end-from < wordMost && (word.contains(s[from-1]) || s[from-1] == '.') {
		from--
	}
	return s[from:end]
}

// assigned looks for name=value, name: value and the like; at is the sign.
func (r *Redactor) assigned(s string, at, free int) (hit, bool) {
	end := at
	for end > 0 && at-end < 2 && s[at] == '=' && s[end-1] == ' ' {
		end--
	}
	if end > 0 && (s[end-1] == '"' || s[end-1] == '\'') {
		end--
		if end > 0 && s[end-1] == '\\' {
			end--
		}
	}
	c := classOf(nameBefore(s, end))
	if c == ordinary {
		return hit{}, false
	}
	from := at + 1
	for from < len(s) && from-at <= 2 && s[from] == ' ' && (s[at] == ':' || end < at) {
		from++
	}
	from = max(from, free)
	if isFile(s, from) {
		return hit{}, false
	}
	v := valueAt(s, from)
	switch c {
	case scheme:
		return r.authentication(s, v)
	case cookies:
		return r.value(s, cookieAt(s, v.from), token)
	}
	// In what people write, "the token: expired" is no secret.
	prose := s[at] == ':' && !v.quoted && from > at+1 && c == token && !isHeader(nameBefore(s, end))
	if prose && (v.to-v.from < 16 || !hasDigit(s[v.from:v.to])) {
		return hit{}, false
	}
	if s[at] == ':' && end == at && digitsOnly(s[v.from:v.to]) && !v.quoted { // host:port
		return hit{}, false
	}
	return r.value(s, v, c)
}

func isHeader(name string) bool { return strings.Contains(name, "-") && !strings.HasPrefix(name, "-") }

// span is a value in a text.
type span struct {
	from, to int
	quoted   bool
}

// valueAt returns the value that begins at s[from:]. It ends where a shell or an
// address would begin something new.
func valueAt(s string, from int) span {
	v := span{from: from}
	for v.from < len(s) && v.from-from < 3 && s[v.from] == '\\' {
		v.from++
	}
	if v.from < len(s) && (s[v.from] == '"' || s[v.from] == '\'') {
		v.from, v.quoted = v.from+1, true
	} else {
		v.from = from
	}
	if end := templateAt(s, v.from); end > 0 {
		v.to = end
		return v
	}
	for v.to = v.from; v.to < len(s) && !valueEnds(s, v.to); v.to++ {
	}
	for v.quoted && v.to > v.from && v.to < len(s) && s[v.to-1] == '\\' { // of a quotation within another
		v.to--
	}
	return v
}

// templateAt returns the end of the template that begins at s[from:], such as
// {{ .Token }}; 0 for none. It is not looked for further than a template is long:
// the rest is a value, and each text is looked at once.
func templateAt(s string, from int) int {
	text := s[min(from, len(s)):min(from+templateMost, len(s))]
	if !strings.HasPrefix(text, "{{") {
		return 0
	}
	end := strings.Index(text, "}}")
	if end < 0 {
		return 0
	}
	return from + end + len("}}")
}

// valueEnds reports whether a value ends before s[i].
func valueEnds(s string, i int) bool {
	switch s[i] {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ';', '&', '|', '<', '>', '(', ')', 0:
		return true
	case '$':
		if i > 0 && s[i-1] == '$' && (i < 2 || s[i-2] != '$') { // $$ is one sign
			return false
		}
		return i+1 < len(s) && (alnum.contains(s[i+1]) && !(s[i+1] >= '0' && s[i+1] <= '9') || strings.IndexByte("({_@*", s[i+1]) >= 0)
	case '}', ']':
		return i+1 == len(s) || strings.IndexByte(",}] \n\"'", s[i+1]) >= 0
	case ',': // of JSON and of lists of assignments
		return i+1 < len(s) && s[i+1] == '"'
	}
	return false
}

// value makes a hit of a value that may be a secret of this class.
func (r *Redactor) value(s string, v span, c class) (hit, bool) {
	text := s[min(v.from, len(s)):min(v.to, len(s))]
	if text == "" {
		return hit{}, false
	}
	if end := isMark(s, v.from); end > 0 {
		return hit{from: v.from, to: end}, true
	}
	if harmless(text) || c != password && (len(text) < 6 || digitsOnly(text)) {
		return hit{}, false
	}
	if p, end := shapeAt(s, v.from); end == v.to {
		return hit{v.from, v.to, byShape, mark(p.kind, text, sum(text))}, true
	}
	return hit{v.from, v.to, byPlace, r.markOf(c.kind(), text)}, true
}

// longToken is the fewest bytes of a token that cannot be guessed.
const longToken = 20

func (r *Redactor) markOf(kind, text string) string {
	if kind == "token" && len(text) >= longToken {
		return mark(kind, text, sum(text))
	}
	return mark(kind, text, r.guessable(text))
}

// harmless reports whether a text is not a secret but something instead of it: a
// switch, a file or a template.
func harmless(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "yes", "no", "on", "off", "null", "none", "nil", "undefined", "prompt", "%s", "%v", "%q":
		return true
	}
	if strings.Trim(text, "*") == "" || strings.Trim(text, "x") == "" || strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}") || text == "{{" {
		return true
	}
	return false
}

// isFile reports whether the value at s[from:] names a file or another source of a
// secret. A secret in base64 may begin with a slash, but has few of them.
func isFile(s string, from int) bool {
	text := s[min(from, len(s)):min(from+fileMost, len(s))]
	for _, begin := range []string{"/", "./", "../", "~/", "@/", "@./", "file:", "id=", "env:", "stdin"} {
		if !strings.HasPrefix(text, begin) {
			continue
		}
		v := valueAt(text, 0)
		return v.to < 40 || strings.Count(text[:v.to], "/") > 3
	}
	return false
}

func digitsOnly(s string) bool { return strings.Trim(s, "0123456789") == "" }

// authentication masks what follows the scheme in the value of an Authorization
// header (RFC 9110, section 11.4).
func (r *Redactor) authentication(s string, v span) (hit, bool) {
	if v.to < len(s) && s[v.to] == ' ' && v.to-v.from < 20 && !strings.ContainsAny(s[v.from:v.to], "=/+:") {
		v = valueAt(s, v.to+1)
	}
	return r.value(s, v, scheme)
}

// cookieAt returns the run of name=value pairs at s[from:].
func cookieAt(s string, from int) span {
	v := span{from: from, to: from}
	for at := from; at < len(s); {
		name := at
		for at < len(s) && (word.contains(s[at]) || s[at] == '.') {
			at++
		}
		if at == name || at == len(s) || s[at] != '=' {
			break
		}
		v.to = valueAt(s, at+1).to
		if at = v.to; !strings.HasPrefix(s[at:], "; ") {
			break
		}
		at += 2
	}
	return v
}

// spaced looks for a flag with its value behind it, and for the scheme of an
// Authorization header without its name; at is the space.
func (r *Redactor) spaced(s string, at, free int) (hit, bool) {
	name := nameBefore(s, at)
	v := valueAt(s, max(at+1, free))
	text := s[v.from:v.to]
	switch {
	case name == "-u" || name == "--user":
		if strings.Contains(s[max(0, at-scriptMost):at], "curl ") {
			return r.afterColon(s, v)
		}
	case strings.HasPrefix(name, "--") && !strings.HasPrefix(text, "-"):
		if c := classOf(name); (c == password || c == token) && !isFile(s, v.from) {
			return r.value(s, v, c)
		}
	case strings.EqualFold(name, "bearer") && len(text) >= 16:
		return r.value(s, v, scheme)
	case strings.EqualFold(name, "basic"):
		plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
		if err == nil && strings.Contains(string(plain), ":") {
			return r.value(s, v, scheme)
		}
	}
	return hit{}, false
}

// findListed looks for a flag with its value behind it in a list of arguments, as JSON
// and TOML write them; at is the comma behind the flag.
func (r *Redactor) findListed(s string, at, free int) (hit, bool) {
	end := at - 1
	if end > 0 && s[end-1] == '\\' { // of a text within another
		end--
	}
	name := nameBefore(s, end)
	if !strings.HasPrefix(name, "-") {
		return hit{}, false
	}
	from := max(at+1, free)
	for from < len(s) && from-at < gapMost && strings.IndexByte(" \t\r\n", s[from]) >= 0 {
		from++
	}
	v := valueAt(s, from)
	c := classOf(name)
	if !v.quoted || c != password && c != token || strings.HasPrefix(s[v.from:v.to], "-") || isFile(s, v.from) {
		return hit{}, false
	}
	return r.value(s, v, c)
}

// afterColon masks the password of user:password.
func (r *Redactor) afterColon(s string, v span) (hit, bool) {
	user, _, ok := strings.Cut(s[v.from:v.to], ":")
	if !ok {
		return hit{}, false
	}
	v.from += len(user) + 1
	return r.value(s, v, password)
}

// address masks the password of scheme://user:password@host, and what is in the user's
// place if it is long enough for a token; at is the second slash.
func (r *Redactor) address(s string, at, free int) (hit, bool) {
	if at < 2 || s[at-2] != ':' {
		return hit{}, false
	}
	from := at + 1
	last := -1
	for i := from; i < len(s) && i-from < userinfoMost; i++ {
		if c := s[i]; c == '@' {
			last = i
		} else if strings.IndexByte("/?#\\\"'`<>|; \t\r\n\x00", c) >= 0 || c == '$' && valueEnds(s, i) {
			break
		}
	}
	if last < 0 || from < free || strings.Contains(s[from:last], markBegin) {
		return hit{}, false
	}
	if v := (span{from: from, to: last}); strings.Contains(s[from:last], ":") {
		return r.afterColon(s, v)
	} else if last-from >= longToken && hasDigit(s[from:last]) {
		return r.value(s, v, token)
	}
	return hit{}, false
}
