//go:build linux

package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// A sandbox that updates itself while it is played has been two programs.
func TestProgramReplacedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	program := filepath.Join(dir, "box")
	script := fmt.Sprintf("#!/bin/sh\necho '# newer' >>'%s'\nexec \"$@\"\n", program)
	if err := programs.Write(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	target, err := targets.Command(program+" {}", "")
	if err != nil {
		t.Fatal(err)
	}
	place, err := NewPlace(dir, runner(t).Prober)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Prove(t.Context(), Options{Target: target, Select: Selection{IDs: []string{"ENV-001"}}, Place: place})
	if !errors.Is(err, ErrChanged) {
		t.Errorf("it is taken for one program: %v", err)
	}
	if err := place.Close(); err != nil {
		t.Error(err)
	}
}

// The same policy has one hash, whatever directory it is shown for; otherwise a
// baseline would report changes that are none.
func TestPolicySumKnowsNoDirectory(t *testing.T) {
	t.Parallel()
	shown := func(base string) []byte {
		return fmt.Appendf(nil, "workspace  %-30s workspace\nenvironment HOME=%-*s holdfast\n", base+"/w", len(base)+4, base+"/h")
	}
	one, other := policySum(shown("/h/a1"), "/h/a1"), policySum(shown("/h/a234"), "/h/a234")
	if one != other {
		t.Errorf("it is %s and %s", one, other)
	}
	if changed := policySum(append(shown("/h/a1"), "network  example.org\n"...), "/h/a1"); changed == one {
		t.Error("another policy has the same")
	}
}

// An interrupted run does not blame the target.
func TestBrokenOffBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	target, err := targets.Command("env {}", "")
	if err != nil {
		t.Fatal(err)
	}
	place, err := NewPlace(dir, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Prove(ctx, Options{Target: target, Select: Selection{IDs: []string{"ENV-001"}}, Place: place})
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrNothingRan) {
		t.Errorf("it says: %v", err)
	}
	if err := place.Close(); err != nil {
		t.Error(err)
	}
}
