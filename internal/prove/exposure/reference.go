package exposure

import (
	"fmt"
	"strings"
)

// Reference returns the checks as Markdown, for `holdfast prove reference exposure`.
func Reference() string {
	var b strings.Builder
	b.WriteString("# What an account can hand to an agent\n\n| check | class | what | why it matters | what to do |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range Checks() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.ID, c.Class, c.Title, c.Why, c.Do)
	}
	return b.String()
}
