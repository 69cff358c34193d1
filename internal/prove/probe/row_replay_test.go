//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// allEntries are the rows as the files have them, read once for all tests.
var allEntries = sync.OnceValues(func() ([]rowData, error) { return entries(true) })

// Unexecuted returns the payloads of a row with a human drive that their program
// did not execute, or that were executed although none should.
func Unexecuted(res Result) (out []string) {
	all, err := allEntries()
	if err != nil {
		return []string{err.Error()}
	}
	i := slices.IndexFunc(all, func(r rowData) bool { return r.ID == res.Row.ID })
	if i < 0 {
		return nil // the smoke test is not among them
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
