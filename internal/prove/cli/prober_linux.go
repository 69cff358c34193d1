package cli

import (
	"os"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// actAsProber is what a copy of this program does that 'prove' has made to run
// inside of a sandbox.
func actAsProber() (status int, is bool) {
	if !inside.IsProber() {
		return 0, false
	}
	return inside.Main(os.Args, os.Stdout), true
}
