// Package session is what a run keeps on disk while it is active, in a directory of its
// own below the state directory: the lock that says that a supervisor looks after it,
// the journals of the trees that were scanned, the scratch directory, what was moved
// into quarantine, and beside it the storage of a review.
//
// A run calls Sweep, which finishes sessions whose supervisor was killed, then Open,
// Session.Prepare and Session.AddTo for each launch, and Session.Settle when everything
// inside is dead. Recover finishes one session from outside: a process that outlives
// the supervisor executes it. Alive lists the sessions that are looked after.
//
// It does not know how a command is started or what it may do: it gets the plan, and
// leaves the trees to package workspace.
package session
