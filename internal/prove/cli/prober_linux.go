package cli

import (
	"os"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// actAsProber runs as the prober if this process is a copy of the program that
// 'prove' made to run inside a sandbox.
func actAsProber() (status int, is bool) {
	if !inside.IsProber() {
		return 0, false
	}
	return inside.Main(os.Args, os.Stdout), true
}
