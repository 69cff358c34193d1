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
		if k.kind == section {
			continue
		}
		fmt.Fprintf(&b, "Takes %s. In a project's file that is not trusted: %s.\n\n", takesText[k.kind], reachText[k.project])
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

var takesText = map[kind]string{
	version:   "the number 1",
	word:      "a word",
	source:    "a profile or a path",
	paths:     "a list of paths: absolute, `~/…`, or relative to the file (for `workspace.readonly` and `workspace.outputs`: to the workspace); never with `..`",
	patterns:  "a list of names or path patterns",
	names:     "a list of names, or `PREFIX*`",
	vars:      "a mapping of names to values",
	hosts:     "a list of destinations",
	ports:     "a list of ports",
	services:  "a list of ports",
	losses:    "a list of guarantees",
	secrets:   "a list of credentials",
	anchors:   "a list of places",
	sinks:     "a list of mappings",
	toolRules: "a list of names or mappings",
	gateRules: "a list of names of sets, or mappings",
	notifiers: "a list of words or mappings",
	patience:  "a duration with a unit (`s`, `m`, `h`), or `0s`",
	programs:  "a list of names, paths and patterns",
	size:      "a size with a unit (`B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`), or `none`",
	count:     "a whole number above 0, or `none`",
	cores:     "a number, or `none`",
	span:      "a duration with a unit (`s`, `m`, `h`), or `none`",
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
