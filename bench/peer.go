package main

import "time"

// The bench starts itself again for the two ends of a measured connection, and
// for what is between them: `bench peer ROLE`. So both ends are the same program
// everywhere, and their processor time can be separated from that of the path
// between them.

// order is a command for the client at the inner end, one line of JSON.
type order struct {
	Do    string // open, bulk, close, fresh, tls or events
	Conns int    // open: connections to hold
	Bytes int64  // tls: in total; bulk: over all open connections
	Count int    // fresh, events: how many, one after another
	H2    bool   // tls: HTTP/2, else HTTP/1.1
}

// answer is its result, one line of JSON. The first one comes without an order,
// when the other end was reached.
type answer struct {
	Wall   time.Duration
	CPU    time.Duration // user and system, of the client itself
	Delays []time.Duration
	Error  string // "" for none
}

// ports is where the server listens, one line of JSON.
type ports struct {
	Plain, TLS int
	Authority  string // PEM of the certificate that signed the server's
}

// serverName is a name of the server that no resolver knows: the measured
// programs get their own hosts file.
const serverName = "server.bench.example"

// eventPause is the pause between two streamed events: no event may need the next
// one to be sent.
const eventPause = 5 * time.Millisecond
