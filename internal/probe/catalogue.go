//go:build linux

package probe

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed catalogue.tsv
var catalogueTSV string

// Case is an entry of the escape catalogue, which is wider than the rows.
type Case struct {
	ID, Class, Title string
	Kind             Kind // also proxy, which is played from inside, and kinds that are not played here: policy, agent
	Core             bool
}

// Catalogue is every case that is known.
func Catalogue() []Case {
	var out []Case
	for line := range strings.Lines(catalogueTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, Case{ID: f[0], Class: f[1], Kind: Kind(f[2]), Core: f[3] == "core", Title: f[4]})
	}
	return out
}

// Missing are the cases that no row of rows plays.
func Missing(rows []Row) []Case {
	played := map[string]bool{}
	for _, r := range rows {
		played[r.ID] = true
	}
	return slices.DeleteFunc(Catalogue(), func(c Case) bool { return played[c.ID] })
}
