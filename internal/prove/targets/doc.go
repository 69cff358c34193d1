// Package targets has the drivers with which package probe runs a command in a
// sandbox: how to call each program, how to express a row's requests in its
// options, and how to distinguish its own refusal from a failure of the command.
//
// A peer is called as its documentation recommends for the strictest use in which
// the command may write the workspace. The source is cited beside the flags.
package targets
