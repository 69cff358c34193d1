//go:build linux

// Package harness joins the rows of package probe with the product: which row
// depends on which control, and what a whole set of results means. It knows
// both sides; neither of them knows it. [Prove] plays rows in a [Place] and a [World],
// in a [Pool] of worker processes with a network each where rows need one (lab*.go) or
// in a machine of their own (machine.go). [Ablate] switches controls off, by the table
// in controls*.go. [Watch] plays again whatever a program is replaced by.
package harness

import (
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Control is a part of the boundary that can be switched off by itself, to show
// that something depends on it.
type Control struct {
	Name string
	// Omit is what is switched off: names that native.Backend.Omit takes, or
	// parts of the plan. More than one where controls overlap: with either of
	// them the rows are still held.
	Omit []string
	Rows []string // IDs of rows that escape without it and are held with it
	// Root and User say who the rows escape for: for the other one something
	// else holds them.
	Root, User bool
	// Network says that the rows need a network, Record that a record is kept while
	// they are played.
	Network, Record bool
	// Why says what overlaps, or why no row can tell.
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
