// Package review turns what a run left behind into changes that a human decides
// about, and carries those that were accepted into the workspace.
//
// Everything that a run wrote is hostile: names, contents, links, types, modes
// and attributes. Directories are reached from one descriptor, one component at
// a time, and never through a link; nothing but regular files is opened for
// reading; what is too deep, too long or too much is counted and named, and is
// never applied. The workspace may change while it is written to: each file is
// swapped in, what was swapped out is looked at, and goes back if it is not
// what the change was made from.
package review
