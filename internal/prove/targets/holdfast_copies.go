//go:build linux

package targets

import (
	"errors"
	"os/exec"
	"regexp"

	"holdfast.dev/holdfast/internal/prove/probe"
)

var _ probe.Copying = Holdfast{}

// applyCommand finds the command in the output of 'agents changes' that applies the
// changes.
var applyCommand = regexp.MustCompile(`agents changes claude --apply ([0-9a-f]+)\n`)

// WithCopies implements [probe.Copying].
func (h Holdfast) WithCopies() probe.Target { return h.With("--preset", "claude") }

// ShowCopies implements [probe.Copying].
func (h Holdfast) ShowCopies(w *probe.World) ([]byte, error) {
	return h.verb(w, "agents", "changes", "claude")
}

// TakeOver implements [probe.Copying].
func (h Holdfast) TakeOver(w *probe.World, shown []byte) error {
	words := []string{"agents", "changes", "claude", "--apply"}
	if found := applyCommand.FindSubmatch(shown); found != nil {
		words = append(words, string(found[1]))
	}
	_, err := h.verb(w, words...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil // Holdfast refuses
	}
	return err
}
