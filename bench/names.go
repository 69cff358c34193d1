package main

// The names of what is compared.
const (
	bare       = "bare"
	bwrap      = "bwrap"
	holdfast   = "holdfast"
	unrecorded = "no record" // holdfast without the record
)

// start is the workload whose cost is the price of every other one's start.
const start = "start of true"

// atOnce is made of starts alone.
const atOnce = "50 at once"
