//go:build !linux

package task

import (
	"os"

	"holdfast.dev/holdfast/internal/sandbox"
)

// resizeTerminal has nothing to do where no backend makes terminals.
func resizeTerminal(*os.File, sandbox.WindowSize) {}
