//go:build linux

package targets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// If Holdfast did not implement these, it would be played as a target without the
// feature.
var (
	_ probe.Consenting = Holdfast{}
	_ probe.Reviewing  = Holdfast{}
	_ probe.Gateway    = Holdfast{}
	_ probe.Lending    = Holdfast{}
)

// listInterval is the interval between two listings of pending requests.
const listInterval = 50 * time.Millisecond

// pendingRequest is a pending request.
type pendingRequest struct {
	ID, Gist string
	What     []struct{ Name, Text string }
}

// answer answers requests until ctx ends, each once: with the verb and options
// that decide returns, or not at all for nil. It calls answered after a success,
// before it calls decide again.
func (h Holdfast) answer(ctx context.Context, w *probe.World, decide func(r pendingRequest) (words []string), answered func(words []string)) {
	for seen := map[string]bool{}; ctx.Err() == nil; {
		out, err := h.verb(w, "approve", "list", "--json")
		var all []pendingRequest
		if err == nil && json.Unmarshal(out, &all) == nil {
			for _, r := range all {
				if seen[r.ID] {
					continue
				}
				seen[r.ID] = true
				if words := decide(r); words != nil {
					if _, err := h.verb(w, slices.Concat([]string{"approve", words[0], r.ID, "--reason", "probe"}, words[1:])...); err == nil { // it may already be answered or over
						answered(words)
					}
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(listInterval):
		}
	}
}

// Granting implements [probe.Consenting].
func (h Holdfast) Granting(ctx context.Context, w *probe.World, word string) {
	granted := false
	h.answer(ctx, w, func(r pendingRequest) []string {
		said := map[string]string{} // in full, unlike the one-line summary
		for _, l := range r.What {
			said[l.Name] = l.Text
		}
		if !granted && strings.Contains(said["program"], "/git ") && said["arguments"] == "3" && said["1"] == "push" && said["3"] == word && strings.HasSuffix(said["2"], "/r.git") {
			return []string{"allow", "--session"}
		}
		return []string{"deny"}
	}, func(words []string) { granted = granted || words[0] == "allow" })
}

// Answering implements [probe.Consenting].
func (h Holdfast) Answering(ctx context.Context, w *probe.World, words map[string]bool) {
	h.answer(ctx, w, func(r pendingRequest) []string {
		for word, allow := range words {
			switch {
			case !strings.Contains(r.Gist, word):
			case allow:
				return []string{"allow"}
			default:
				return []string{"deny"}
			}
		}
		return nil
	}, func([]string) {})
}

// AllowingUntil implements [probe.Consenting].
func (h Holdfast) AllowingUntil(ctx context.Context, w *probe.World, enough func() bool) error {
	for ; ctx.Err() == nil && !enough(); time.Sleep(listInterval) {
		for _, id := range h.ids(w, "list") {
			_, _ = h.verb(w, "approve", "allow", id, "--session", "--reason", "probe") // it may be over already
		}
	}
	given := h.ids(w, "grants")
	if len(given) == 0 && ctx.Err() == nil {
		return errors.New("there was no approval to revoke")
	}
	for _, id := range given {
		if _, err := h.verb(w, "approve", "revoke", id, "--reason", "probe"); err != nil {
			return err
		}
	}
	return nil
}

// ids are the IDs that a listing verb of approve prints.
func (h Holdfast) ids(w *probe.World, verb string) (out []string) {
	text, err := h.verb(w, "approve", verb, "--json")
	var all []struct{ ID string }
	if err == nil && json.Unmarshal(text, &all) == nil {
		for _, one := range all {
			out = append(out, one.ID)
		}
	}
	return out
}

// Serving implements [probe.Gateway].
func (h Holdfast) Serving() probe.Target {
	h.Server = true
	return h
}

// Holding implements [probe.Reviewing].
func (h Holdfast) Holding() probe.Target { return h.With("--review") }

// Review implements [probe.Reviewing].
func (h Holdfast) Review(w *probe.World, words ...string) ([]byte, error) {
	return h.verb(w, slices.Concat([]string{"review"}, h.Omit, words)...)
}

// Lends implements [probe.Lending].
func (Holdfast) Lends(w *probe.World, policy string) error {
	return w.File("H/.config/holdfast/policy.yaml", policy)
}

// Fetch implements [probe.Lending].
func (h Holdfast) Fetch(w *probe.World, name string) { _, _ = h.verb(w, "grant", "test", name) }

// verb calls the program as the user does, in the workspace.
func (h Holdfast) verb(w *probe.World, words ...string) ([]byte, error) {
	c := exec.Command(h.Path, words...)
	c.Env = []string{"HOME=" + w.Home(), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}
	c.Dir = w.W
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return out, fmt.Errorf("%w: %s", err, firstLine([]byte(errs.String())))
	}
	return out, nil
}
