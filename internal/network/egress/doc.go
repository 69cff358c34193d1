// Package egress is the way out of one run: it joins package network, which decides
// about connections, with the TCP stack that intercepts them where the kernel cannot,
// and with the credentials that they may carry.
//
// A run calls New before anything is launched and Egress.AddTo for each launch, which
// opens the doors when the backend has made them. Egress.Finish says at the end what
// was refused. Reload lets other destinations hold meanwhile.
//
// It does not decide about a destination, and knows no program inside: who is at the
// other end of a connection it is told by a function.
package egress
