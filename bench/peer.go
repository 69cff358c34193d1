package main

import "time"

// The bench starts itself again for what stands at the two ends of a measured
// connection, and for what stands between: `bench peer ROLE`. So both ends are
// the same program everywhere, and their processor time can be told from that
// of the way between.

// order is what the client at the inner end is told to do, a line of JSON.
type order struct {
	Do    string // open, bulk, close, fresh, tls or events
	Conns int    // open: connections to hold
	Bytes int64  // tls: in all; bulk: over all that are held
	Count int    // fresh, events: how many, one after the other
	H2    bool   // tls: HTTP/2, else HTTP/1.1
}

// answer is what became of it, a line of JSON. The first one comes unasked, when
// the other end was reached.
type answer struct {
	Wall   time.Duration
	CPU    time.Duration // user and system, of the client itself
	Ends   time.Duration // likewise, of the server too: who gives the order adds it
	Delays []time.Duration
	Error  string // "" for none
}

// ports is where the server listens, a line of JSON.
type ports struct {
	Plain, TLS int
	Authority  string // PEM of the certificate that signed the server's
}

// serverName is a name of the server that no resolver has: what measures it gets
// a hosts file of its own.
const serverName = "server.bench.example"

// eventPause lies between two streamed events: nothing may wait for the next to
// send the last.
const eventPause = 5 * time.Millisecond
