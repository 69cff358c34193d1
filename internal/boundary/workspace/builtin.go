//go:build linux

package workspace

import (
	_ "embed" // for the list of names
	"strings"
	"sync"
)

//go:embed protected.tsv
var protectedText string

// builtIn are the rows of protected.tsv.
var builtIn = sync.OnceValue(func() []Rule { return parseRules(protectedText) })

// parseRules reads rows of seven columns; the head of protected.tsv says which. Lines
// that begin with # are comments.
func parseRules(text string) []Rule {
	list := make([]Rule, 0, strings.Count(text, "\n"))
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		var col [7]string
		for i := range col {
			col[i], line, _ = strings.Cut(line, "\t")
		}
		list = append(list, Rule{
			Pattern: col[0], Tier: Tier(col[1]), Where: Place(col[2]), Dir: col[3] == "dir", Key: col[3] == "key", Judged: col[3] == "judged",
			Reason: col[4], Ref: col[5], Checked: col[6],
		})
	}
	return list
}
