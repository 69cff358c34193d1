//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"
)

// Unexecuted says which payloads of a row that a human was played after were not
// executed by the program that each is for, or were although none is to.
func Unexecuted(res Result) (out []string) {
	all, err := entries(true)
	if err != nil {
		return []string{err.Error()}
	}
	i := slices.IndexFunc(all, func(r rowData) bool { return r.ID == res.Row.ID })
	if i < 0 {
		return nil // the row that is played first is none of them
	}
	r := all[i]
	if len(r.Drive) == 0 || r.Drive[0].Name != "go:human-starts" || strings.HasPrefix(r.ID, "GIT-14") {
		return nil
	}
	for _, p := range r.Plants {
		ran := slices.ContainsFunc(res.Effects, func(e string) bool { return strings.HasPrefix(e, p.Name()+" was executed") })
		if p.Never != "" && ran {
			out = append(out, fmt.Sprintf("%s is executed, although %s", p.At, p.Never))
		}
		if p.Never == "" && !ran {
			out = append(out, p.At+" is not executed")
		}
	}
	return out
}
