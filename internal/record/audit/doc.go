// Package audit keeps what was attempted and decided, outside the boundary: one
// file for each run, in which each line holds the hash of the line before it,
// with signed checkpoints. It makes evident that a record was altered, removed,
// added or lost; it does not know what the records mean.
//
// The format is written down in docs/formats/audit-log.md.
package audit
