package document

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
)

// most is how much of one text a report for people shows, in bytes. A row may
// hold whatever a sandboxed program printed.
const most = 4 << 10

// Clean is s as a person can read it in one line, see [text.Line]. The spaces of a text
// that has nothing else are escaped too, because they are invisible.
func Clean(s string) string {
	head := text.Head(s, most)
	shown := text.Line(head)
	if strings.Trim(shown, " ") == "" {
		shown = strings.Repeat(`\x20`, len(shown))
	}
	if left := len(s) - len(head); left > 0 {
		shown += fmt.Sprintf(" … (%d bytes more)", left)
	}
	return shown
}

// CleanAll is Clean of each text, without those that are empty.
func CleanAll(texts []string) []string {
	var out []string
	for _, s := range texts {
		if s = Clean(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
