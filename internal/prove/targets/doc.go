// Package targets has the drivers by which package probe runs a command in a
// sandbox: how the program of each is called, how what a row asks for is said in
// its own words, and how its own refusal is told from a failure of the command.
//
// A peer is called as its own documents recommend for the strictest use in which
// the command may write the workspace. Which documents stands beside the flags.
package targets
