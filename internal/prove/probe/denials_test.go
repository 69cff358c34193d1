//go:build linux

package probe

import (
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// Two runs of a row are compared by these names: what differs each time must not
// stand in them, or every retest reports changes.
func TestDenialsOfTwoRunsAreTheSame(t *testing.T) {
	w := &World{W: "/w", O: "/o", R: "/r", S: "/s", H: "/h", B: "/b"}
	of := func(id, port string) []string {
		return w.denials([]inside.Report{
			{Attempt: "read /h/.local/state/holdfast/log/" + id + ".jsonl", Errno: "ENOENT"},
			{Attempt: "connect 127.0.0.1:" + port, Errno: "ECONNREFUSED"},
		})
	}
	one, other := of("20261128T000117-0123456789abcdef", "40001"), of("20261129T101500-fedcba9876543210", "52002")
	if !slices.Equal(one, other) || len(one) != 2 {
		t.Errorf("%q, then %q", one, other)
	}
}
