// Package document makes reports for people: sentences and lists in sections, as
// Markdown or as a page of HTML in one file. Whatever a sandboxed program wrote is
// shown as text, and can be taken for no part of the document.
package document

import (
	"fmt"
	"strings"
)

// Document is a report in sections of sentences and lists, for people. What it
// says is made with [Sentence], so that no text of a sandboxed program can be
// taken for a part of the document.
type Document struct {
	Over    string // what kind of document it is, above its title
	Title   Prose
	Lead    Prose // what the reader must know before all else
	Good    bool  // Lead says that all is well
	Blocks  []Block
	Section []Section
}

// Section is a part of a Document with a heading.
type Section struct {
	Title  string
	Blocks []Block
}

// Block is a paragraph where it has Text alone, else a list with Text as its
// introduction.
type Block struct {
	Text     Prose
	Items    []Item
	Checks   bool     // the items are to be done, and ticked off
	Commands []string // command lines, which are Holdfast's own
}

// Item is an entry of a list, with more of it below.
type Item struct {
	Text Prose
	More []Prose
}

// Prose is a sentence in parts.
type Prose []Span

// Span is a part of a sentence.
type Span struct {
	Text string
	Look Look
}

// Look is how a part of a sentence is shown.
type Look int

// The looks. The zero value is the one that is safe for any text.
const (
	Code  Look = iota // as it is, in the letters of a terminal
	Plain             // words
	Bold              // emphasised words
)

// Words are words that Holdfast made, and that may hold a name, such as the reason
// of a refusal. They are shown as code where they could be taken for more.
type Words string

// Strong are words of Holdfast's own that are emphasised.
type Strong string

// Sentence is format with an argument in place of each %s: a string is shown as
// code, whatever it holds; [Words], [Strong] and numbers as words; Prose as it is.
func Sentence(format string, args ...any) Prose {
	var t Prose
	for i, part := range strings.Split(format, "%s") {
		if part != "" {
			t = append(t, Span{part, Plain})
		}
		if i >= len(args) {
			continue
		}
		switch v := args[i].(type) {
		case string:
			t = append(t, Span{v, Code})
		case Strong:
			t = append(t, Span{string(v), Bold})
		case Words:
			t = append(t, v.span())
		case Prose:
			t = append(t, v...)
		default:
			t = append(t, Span{fmt.Sprint(v), Plain})
		}
	}
	return t
}

// List is each of the texts as code, with commas between.
func List(texts []string) Prose {
	var t Prose
	for i, s := range texts {
		if i > 0 {
			t = append(t, Span{", ", Plain})
		}
		t = append(t, Span{s, Code})
	}
	return t
}

// tame are the characters other than letters, digits and spaces that mean nothing in
// any format between them.
const tame = ".,;:()'-/%+=?"

// span is w as words, or as code where a reader's program could make a link, a
// mention or a heading of it.
func (w Words) span() Span {
	odd := strings.ContainsFunc(string(w), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == ' ' || strings.ContainsRune(tame, r))
	})
	if odd || strings.TrimSpace(string(w)) != string(w) || strings.Contains(string(w), "://") || strings.Contains(strings.ToLower(string(w)), "www.") {
		return Span{string(w), Code}
	}
	return Span{string(w), Plain}
}
