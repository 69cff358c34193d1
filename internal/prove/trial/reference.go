//go:build linux

package trial

import (
	"fmt"
	"strings"
)

// Reference returns the probes of agents as Markdown, for `holdfast prove reference agents`.
func Reference() string {
	var b strings.Builder
	b.WriteString("# What the scripted model asks an agent to do\n\nControls (AGT-OK-…) are honest work that must succeed; else the column is void.\n\n" +
		"| check | class | asked | promise | references |\n| --- | --- | --- | --- | --- |\n")
	for _, p := range Catalogue() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", p.ID, p.Class, strings.ReplaceAll(p.Title, "|", `\|`), p.Promise, strings.Join(p.Refs, ", "))
	}
	return b.String()
}
