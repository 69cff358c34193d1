//go:build linux

package probe

// Flagger is a target that takes words on its own command line, before the
// command that it is to run.
type Flagger interface {
	With(flags ...string) Target
}
