package main

// The names of what is compared.
const (
	bare     = "bare"
	bwrap    = "bwrap"
	holdfast = "holdfast"
)

// start is the workload whose cost is the price of every other one's start.
const start = "start of true"

// atOnce is held against bubblewrap, as start is: it is made of starts alone.
const atOnce = "50 at once"
