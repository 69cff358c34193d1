//go:build linux

package targets

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/probe"
)

// A Holdfast that asked nobody, or kept nothing back, would be played as a target
// that cannot.
var (
	_ probe.Consenting = Holdfast{}
	_ probe.Reviewing  = Holdfast{}
)

// asking is the time between two looks at what is asked.
const asking = 50 * time.Millisecond

// Granting implements [probe.Consenting].
func (h Holdfast) Granting(ctx context.Context, w *probe.World, word string) {
	granted := false
	for answered := map[string]bool{}; ctx.Err() == nil; {
		out, err := h.verb(w, "approve", "list", "--json")
		var waiting []struct{ ID, Gist string }
		if err == nil {
			err = json.Unmarshal(out, &waiting)
		}
		for _, r := range waiting {
			if err != nil || answered[r.ID] {
				continue
			}
			answered[r.ID] = true
			line := []string{"approve", "deny", r.ID, "--reason", "probe"}
			if words := strings.Fields(r.Gist); !granted && slices.Equal(words[:min(2, len(words))], []string{"git", "push"}) && len(words) == 4 && words[3] == word && strings.HasSuffix(words[2], "/r.git") {
				line = []string{"approve", "allow", r.ID, "--session", "--reason", "probe"}
			}
			_, err := h.verb(w, line...) // it may be answered or over already
			granted = granted || err == nil && line[1] == "allow"
		}
		select {
		case <-ctx.Done():
		case <-time.After(asking):
		}
	}
}

// Holding implements [probe.Reviewing].
func (h Holdfast) Holding() probe.Target { return h.With("--review") }

// Review implements [probe.Reviewing].
func (h Holdfast) Review(w *probe.World, words ...string) ([]byte, error) {
	return h.verb(w, append([]string{"review"}, words...)...)
}

// verb calls the program as the user does, in the workspace.
func (h Holdfast) verb(w *probe.World, words ...string) ([]byte, error) {
	c := exec.Command(h.Path, words...)
	c.Env = []string{"HOME=" + w.H, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}
	c.Dir = w.W
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("%w: %s", err, firstLine([]byte(errs.String())))
	}
	return out, nil
}
