// Package credentials keeps secrets outside the boundary. Inside there is a
// placeholder for each credential; what forwards a request asks for the secret,
// and gets it for that request only if the grant is still valid and a record of
// the use was kept. The package knows nothing of connections, headers or TLS:
// its caller decides what is done with a secret, and for requests that is
// network/inject.go.
//
// [New] is the way in. [Broker.Open] hands out a secret for one request, as a
// lease where the source gives one (lease.go); source*.go read secrets from
// files, commands, GitHub, HTTP services and Vault; grant.go and store.go keep
// what a human allowed and for how long; placeholder.go makes the texts that
// represent secrets inside, and decoys.go finds honeytokens in what is sent.
package credentials
