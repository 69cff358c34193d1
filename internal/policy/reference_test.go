package policy

import (
	"fmt"
	"strings"
)

// reference returns the table of keys as Markdown: the generated part of
// docs/policy.md.
func reference() string {
	var b strings.Builder
	for _, k := range keys {
		level := "###"
		if !strings.Contains(k.name, ".") {
			level = "##"
		}
		fmt.Fprintf(&b, "%s `%s`\n\n%s\n\n", level, k.name, k.doc)
		if k.kind == nil {
			continue
		}
		fmt.Fprintf(&b, "Takes %s. In a project's file that is not trusted: %s.\n\n", k.kind.takes, reachText[k.project])
		fmt.Fprintf(&b, "```yaml\n%s\n```\n\n", nested(k))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// nested returns the example of k as a file has it.
func nested(k key) string {
	parent, name, ok := strings.Cut(k.name, ".")
	if !ok {
		return k.name + ": " + k.example
	}
	return parent + ":\n  " + name + ": " + k.example
}

var reachText = map[reach]string{
	never:   "refused",
	clears:  "only `[]`, which takes away what was allowed",
	adds:    "allowed, but not `[]`",
	listed:  "what is in the list already, or `[]`; anything where no list is in force",
	subset:  "only what is allowed already, or `[]`",
	lowers:  "only a value that is not above the one in force",
	raises:  "only a value that is not weaker than the one in force",
	ignored: "allowed",
}
