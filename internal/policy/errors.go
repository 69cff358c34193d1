package policy

import (
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Error is something wrong with what a human wrote.
type Error struct {
	Origin Origin // where it is; zero if it is nowhere
	Msg    string
	hint   string
	cause  error
}

func (e *Error) Error() string {
	if e.Origin == (Origin{}) {
		return e.Msg
	}
	return e.Origin.String() + ": " + e.Msg
}

// Hint is what to do next.
func (e *Error) Hint() string {
	switch {
	case e.hint != "":
		return e.hint
	case strings.HasPrefix(e.Origin.File, "--"):
		return "correct the flag; 'holdfast policy show' with the same flags says what would be in view"
	case e.Origin.File != "":
		return "correct it; then check it with: holdfast policy check " + quote(e.Origin.File)
	}
	return "see what would apply with: holdfast policy show"
}

func (e *Error) Unwrap() error { return e.cause }

// fault makes an Error.
func fault(o Origin, hint, format string, args ...any) *Error {
	return &Error{Origin: o, hint: hint, Msg: fmt.Sprintf(format, args...)}
}

// Errors are several of them: a file is reported on as a whole.
type Errors []*Error

// shownErrors bounds a message that a hostile file could otherwise make as
// long as itself.
const shownErrors = 20

func (e Errors) Error() string {
	var lines []string
	for i, one := range e {
		if i == shownErrors {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-i))
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Hint is that of the first that has one of its own.
func (e Errors) Hint() string {
	for _, one := range e {
		if one.hint != "" {
			return one.hint
		}
	}
	return e[0].Hint()
}

// orNil keeps an empty list from becoming a non-nil error.
func (e Errors) orNil() error {
	switch len(e) {
	case 0:
		return nil
	case 1:
		return e[0]
	}
	return e
}

// printable shows text from a file or a flag in one line, and not at any length.
func printable(s string) string {
	const longest = 200
	return text.Exact(text.Cut(s, longest))
}

// quote makes a path one word of a shell, for a person to read and to paste.
func quote(path string) string { return text.Word(path) }

// nearest is the candidate that word was probably meant to be, or "".
func nearest(word string, candidates []string) string { return text.Nearest(word, candidates) }

// shortSpan is a duration without units that are zero at its end.
func shortSpan(d time.Duration) string { return text.Span(d) }
