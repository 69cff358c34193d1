//go:build linux

package probe

import (
	"cmp"
	"slices"
	"time"
)

// order returns the indices of the rows to play beside others, long ones first so
// that no processor is idle at the end, and of those to play alone. Rows that
// wait for a network and rows that compute alternate.
func (n Runner) order(rows []Row) (together, alone []int) {
	var waiting, computing, others []int
	for i, r := range rows {
		switch {
		case r.Alone != "" || needsNetwork(r) && !n.playedElsewhere(r):
			alone = append(alone, i)
		case needsNetwork(r):
			waiting = append(waiting, i)
		case r.Timed || r.Timeout >= longRow || r.Drive != nil:
			computing = append(computing, i)
		default:
			others = append(others, i)
		}
	}
	slices.SortStableFunc(computing, func(a, b int) int {
		return cmp.Compare(mayTake(rows[b]), mayTake(rows[a]))
	})
	for i := range max(len(waiting), len(computing)) {
		if i < len(computing) {
			together = append(together, computing[i])
		}
		if i < len(waiting) {
			together = append(together, waiting[i])
		}
	}
	return append(together, others...), alone
}

// longRow is a time limit that only rows have that may take long.
const longRow = 30 * time.Second

// mayTake orders rows by how long they may take.
func mayTake(r Row) time.Duration {
	if r.Timed {
		return time.Hour + r.Timeout
	}
	return r.Timeout
}
