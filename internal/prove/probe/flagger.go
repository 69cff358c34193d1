//go:build linux

package probe

// Flagger is a target that accepts flags on its own command line, before the
// command to run.
type Flagger interface {
	With(flags ...string) Target
}
