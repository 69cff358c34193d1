// Package probe is the catalogue of things that a sandboxed program must not be able to
// do, and the judge of whether it could. It must not import any package that implements
// a defence: a probe that knows the defence tests the author's idea of it.
//
// Rows are data in rows/*.yaml (docs/formats/rows.md), read by rows.go; [All] returns
// them. verbs.go has the steps that the data names, and row_*.go those that only one row
// needs. [Runner] plays rows against a [Target]: world.go makes a workspace, a home and
// a place outside for each, the prober acts inside (package inside), watch.go checks
// what became of the world, record.go what the sandbox recorded, and judge.go gives the
// verdict.
package probe
