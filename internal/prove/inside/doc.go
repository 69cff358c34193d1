//go:build linux

// Package inside is the half of a probe that runs where the sandboxed command runs:
// one action by name, each attempt reported as a line of JSON. It knows neither the
// defence nor the verdict, needs nothing from the file system it starts in, and
// changes only what its caller made for it.
//
// [Main] is the way in: it finds the action by name in the tables of the other files,
// which are named after the classes of rows (links, git, net, proc, …). commands*.go
// run other programs instead of own code. replay*.go play what a host would execute
// later: see package replay.
package inside
