// Package network decides about every connection that leaves the boundary. It gets the
// doors of the inner network (boundary.Doors), answers name queries itself, dials
// itself, and passes on what the policy names. What a client says about its destination
// can only confirm what the address that it dialled says.
//
// A connection comes in by a door (engine, intercept, proxy, socks, hostport), its
// address is mapped to a name (names, namemap, dns), the rules say what may be sent to
// it (rules, dispatch), TLS is read or ended (hello, authority, trust), requests are
// read strictly, decided and passed on (http), with secrets put in and kept from coming
// back (inject, mask, sigv4), an upstream is dialled (address, dial), and bytes flow
// (relay). Before that the rules of consent are evaluated, and what they leave to a
// human is held (consent). What was refused is kept for the end (refuse, ledger).
package network
