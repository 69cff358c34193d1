package main

// The names of what is compared.
const (
	bare       = "bare"
	bwrap      = "bwrap"
	holdfast   = "holdfast"
	unrecorded = "no record" // holdfast without the record
)

// start is the workload whose cost is included in every other one.
const start = "start of true"

// atOnce consists only of starts.
const atOnce = "50 at once"
