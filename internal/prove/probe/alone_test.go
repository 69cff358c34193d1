//go:build linux

package probe

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestOneRowAlone plays two rows that must be alone, as two programs would.
func TestOneRowAlone(t *testing.T) {
	end, err := takeTurn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	alone := Row{ID: "ALO-000", Kind: Sandbox, Action: "nothing", Alone: "it counts"}
	if res := (Runner{}).Play(ctx, None{}, alone); res.Verdict != Inconclusive || res.Reason == "" {
		t.Errorf("a second row played beside the first: %v %q", res.Verdict, res.Reason)
	}
	if _, err := takeTurn(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second turn beside the first: %v", err)
	}
	end()
	end, err = takeTurn(t.Context())
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	end()
}
