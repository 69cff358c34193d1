// Package cli is the user interface of holdfast-prove: its verbs, flags, texts
// and exit codes. It plays rows, worlds and agents with the packages beside it,
// and knows holdfast, like any other sandbox, only by its command line.
//
// [Main] is the way in.
package cli
