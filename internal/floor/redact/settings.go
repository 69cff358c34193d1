package redact

import (
	"slices"
	"strings"
)

// Reference is the name of a secret that a program looks up by itself: of a variable,
// or of a file.
type Reference struct {
	Variable string // "" if it is a file
	File     string // as written, such as "~/key"
}

// referenceMost is the most bytes of a reference.
const referenceMost = 512

// ReferenceOf reads a whole text, behind the scheme of an Authorization header if it has
// one, as a reference: {env:NAME}, {file:PATH}, ${NAME}, ${NAME:-}, ${env:NAME} or
// $NAME, as settings of agents have them.
func ReferenceOf(text string) (ref Reference, ok bool) {
	text = behindScheme(text)
	ref, end := referenceAt(text, 0)
	return ref, end > 0 && end == len(text)
}

func behindScheme(text string) string {
	scheme, rest, _ := strings.Cut(text, " ")
	if slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(scheme)) {
		return rest
	}
	return text
}

// referenceAt reads the reference that begins at s[at:]; end is 0 if there is none.
func referenceAt(s string, at int) (ref Reference, end int) {
	text := s[at:min(len(s), at+referenceMost)]
	dollar := strings.HasPrefix(text, "$")
	inner, braced := strings.CutPrefix(strings.TrimPrefix(text, "$"), "{")
	if !braced {
		name := variableAt(inner)
		if !dollar || name == "" {
			return Reference{}, 0
		}
		return Reference{Variable: name}, at + 1 + len(name)
	}
	inner, _, closed := strings.Cut(inner, "}")
	end = at + strings.IndexByte(text, '}') + 1
	if path, ok := strings.CutPrefix(inner, "file:"); closed && ok && !dollar && isPath(path) {
		return Reference{File: path}, end
	}
	name, ok := strings.CutPrefix(inner, "env:")
	if !ok && !dollar {
		return Reference{}, 0
	}
	if before, fallback, ok := strings.Cut(name, ":-"); ok && dollar && fallback == "" {
		name = before
	}
	if name == "" || !closed || variableAt(name) != name {
		return Reference{}, 0
	}
	return Reference{Variable: name}, end
}

// variableAt is the name of a variable at the beginning of a text; "" for none.
func variableAt(text string) string {
	end := 0
	for end < len(text) && word.contains(text[end]) && text[end] != '-' && (end > 0 || text[end] < '0' || text[end] > '9') {
		end++
	}
	return text[:end]
}

func isPath(text string) bool {
	return text != "" && !strings.ContainsAny(text, "\"'\n{") &&
		(strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../"))
}

// Known is what the host has.
type Known struct {
	Variable func(name string) bool // whether there is such a variable
	File     func(path string) bool // whether there is such a file, as written: ~/key, ./key or /key
}

// isReference reports whether the text of the string at s[v.from:] is a reference, behind
// the scheme of an Authorization header if it has one. A path counts only if the file is
// there, and a variable without braces only if it is: either may as well be a password.
// The bare name of a variable counts only where the settings say that names are given.
func isReference(s string, v span, known Known) bool {
	text := s[v.from:v.to]
	if isPath(text) {
		return known.File(text)
	}
	text = behindScheme(text)
	if inner, ok := strings.CutPrefix(text, "${{"); ok && strings.HasSuffix(inner, "}}") && strings.Trim(strings.Trim(inner[:len(inner)-2], " "), "._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
		return true // of a pipeline or of Continue, such as ${{ secrets.KEY }}
	}
	if variableAt(text) == text && text != "" {
		return ofVariables(s[max(0, v.from-tableMost):v.from]) && known.Variable(text)
	}
	ref, ok := ReferenceOf(text)
	return ok && (strings.Contains(text, "{") || known.Variable(ref.Variable))
}

// tableMost is how far before a value the name of its table is looked for.
const tableMost = 512

// ofVariables reports whether a text ends in a table of Codex that gives variables, by
// the names of headers: env_http_headers = { "X-Api-Key" = "NAME" }.
func ofVariables(before string) bool {
	const table = "env_http_headers"
	at := strings.LastIndex(before, table)
	if at < 0 {
		return false
	}
	behind := strings.TrimLeft(before[at+len(table):], "\"' \t:=")
	return (strings.HasPrefix(behind, "{") || strings.HasPrefix(behind, "]")) && !strings.Contains(behind, "}") && !strings.Contains(behind, "\n[")
}

// Settings returns a text of settings without secrets. Unlike in a record, a value in
// quotation marks is masked whole, since nothing has to be seen of what follows in it;
// and a reference stays, since it is a name.
func (r *Redactor) Settings(text string, known Known) string {
	t := r.current()
	quoted, kept := r.quotedValues(t, text, known)
	hits := slices.DeleteFunc(r.find(t, text), func(h hit) bool {
		_, end := referenceAt(text, h.from)
		return h.rank == byPlace && (end >= h.to && r.isPlain(t, text[h.from:end]) ||
			slices.ContainsFunc(kept, func(k span) bool { return h.from >= k.from && h.to <= k.to }))
	})
	hits = append(hits, quoted...)
	slices.SortFunc(hits, func(a, b hit) int { return a.from - b.from })
	var all []hit
	for _, h := range hits {
		all = join(all, h)
	}
	return replace(text, all)
}

// isPlain reports whether a text by itself holds no secret.
func (r *Redactor) isPlain(t *table, text string) bool {
	return len(r.find(t, strings.Trim(behindScheme(text), "${}"))) == 0
}

// quotedValues finds the strings that the names before them say are secret, and of those
// the ones that name a variable or a file instead.
func (r *Redactor) quotedValues(t *table, s string, known Known) (hits []hit, kept []span) {
	for at := 0; at < len(s); at++ {
		if s[at] != '"' && s[at] != '\'' {
			continue
		}
		end := stringEnd(s, at)
		if end < 0 {
			continue
		}
		v := span{from: at + 1, to: end, quoted: true}
		c := classOf(nameOfValue(s, at))
		at = end
		switch text := s[v.from:v.to]; {
		case c == ordinary:
		case isReference(s, v, known) && r.isPlain(t, text):
			kept = append(kept, v)
		default:
			if h, ok := r.value(s, v, c); ok && h.mark != "" {
				h.to, h.rank = v.to, byShape
				hits = append(hits, h)
			}
		}
	}
	return hits, kept
}

// stringEnd returns the position of the mark that ends the string at s[at:], which has
// one line; -1 if there is none.
func stringEnd(s string, at int) int {
	for i := at + 1; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == s[at]:
			return i
		case s[i] == '\\' && s[at] == '"':
			i++
		}
	}
	return -1
}

// nameOfValue is the name that the value at s[at:] is given by : or =; "" for none.
func nameOfValue(s string, at int) string {
	skip := func(end int) int {
		for n := 0; end > 0 && n < gapMost && strings.IndexByte(" \t\r\n", s[end-1]) >= 0; n++ {
			end--
		}
		return end
	}
	end := skip(at)
	if end == 0 || s[end-1] != ':' && s[end-1] != '=' {
		return ""
	}
	end = skip(end - 1)
	if end > 0 && (s[end-1] == '"' || s[end-1] == '\'') {
		end--
	}
	return nameBefore(s, end)
}
