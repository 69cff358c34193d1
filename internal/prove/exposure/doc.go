// Package exposure lists what an account gives to every program started in it:
// credentials, sockets, privileges equal to root's, places to plant something,
// neighbours. It compares that with a freshly created account, with runners of
// continuous integration, and with a run inside Holdfast.
//
// It only reads and changes nothing. No secret leaves it: of a token it reports
// the kind and at most the first characters that package redact shows. It
// connects only to ssh agents that belong to the user, to ask how many keys they
// have; listeners are found through /proc. Its input was written by others, so it
// opens only regular files, reads a bounded part of each, and waits for nothing
// beyond a limit.
package exposure
