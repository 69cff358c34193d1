// Package run is one run from plan to end: the only package that joins the rooms.
//
// The way in is Task.Run of task.go, which reads from top to bottom: settle what killed
// runs left, open the session and the record, make the parts (parts.go), launch, attend
// the command, settle, record the end (events.go). A launch is tried again while the
// workspace changes under it. Settle and Reload reach a run from outside.
//
// session is the directory of a run, sensors what watches it, relay what connects its
// command and its caller, orders what arrives at its control socket. They make no
// decision that a room could make, and no room knows them.
package run
