//go:build linux

package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BuildProber builds the static binary that runs inside, in dir. It needs the
// Go toolchain and a working directory in this module.
func BuildProber(ctx context.Context, dir string) (string, error) {
	out := filepath.Join(dir, "prober")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out,
		"holdfast.dev/holdfast/internal/probe/inside/prober")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the prober: %w\n%s", err, b)
	}
	return out, nil
}
