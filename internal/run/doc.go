// Package run is one run from plan to end: the only package that joins the rooms.
//
// Task.Run finishes what killed runs left, opens the session and the bus, opens the
// gate and the way out, launches the command, stays with it until everything inside
// is dead, settles the workspace and returns the Result. A launch is tried again
// while the workspace changes under it. Reload and Settle reach a run from outside.
//
// It takes no decision that a room could take, and no room knows it: each gets a
// plan, the bus and what it needs of its neighbours as a function.
package run
