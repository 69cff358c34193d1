//go:build linux

package harness

import (
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Control is a part of the boundary that can be switched off separately, to show
// that something depends on it.
type Control struct {
	Name string
	// Omit is what is switched off: names that native.Backend.Omit takes, or parts of
	// the plan. It has several names if controls overlap: each of them alone still
	// holds the rows.
	Omit []string
	Rows []string // IDs of rows that escape without it and are held with it
	// Root and User are the users for whom the rows escape: for the other, something
	// else holds them.
	Root, User bool
	// Network is set if the rows need a network, Record if a record is kept while they
	// are played.
	Network, Record bool
	// Why explains what overlaps, or why no row can notice.
	Why string
}

// Select returns the rows with these IDs, in that order.
func Select(rows []probe.Row, ids []string) ([]probe.Row, error) {
	var out []probe.Row
	for _, id := range ids {
		i := slices.IndexFunc(rows, func(r probe.Row) bool { return r.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("no row is called %s", id)
		}
		out = append(out, rows[i])
	}
	return out, nil
}
