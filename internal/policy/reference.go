package policy

import (
	"fmt"
	"strings"
)

// Reference returns the table of keys as Markdown, for `holdfast reference policy`.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Keys of a policy\n\n")
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

// nested returns the example of k as it is written in a file.
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
