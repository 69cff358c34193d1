// Package probe is the catalogue of things that a sandboxed program must not
// be able to do, and the judge of whether it could. It must not import any
// package that implements a defence: a probe that knows the defence tests the
// author's idea of it.
package probe
