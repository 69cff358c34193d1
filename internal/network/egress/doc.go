// Package egress is the way out of one run: it joins package network, which decides
// about connections, with the TCP stack that intercepts them where the kernel cannot,
// and with the credentials that they may carry.
//
// A run calls New before anything is launched and Egress.AddTo for each launch, which
// opens the doors when the backend has made them. Egress.Finish returns at the end what
// was refused. Reload changes the allowed destinations meanwhile.
//
// It does not decide about a destination, and knows no program inside: a function names
// the process at the other end of a connection.
package egress
