//go:build linux

// Package harness joins the rows of package probe with the product: which row depends
// on which control, and what a whole set of results means. It knows both sides;
// neither of them knows it. [Prove] plays rows in a [Place] and a [World], in a [Pool]
// of worker processes with a network each if rows need one (lab*.go), or in a machine
// of their own (machine.go). [Ablate] switches controls off, by the table in
// controls*.go. [Watch] plays the rows again when a program is replaced.
package harness
