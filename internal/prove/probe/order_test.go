//go:build linux

package probe

import (
	"context"
	"slices"
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	rows := []Row{
		{ID: "short"}, {ID: "net1", Needs: []string{"network"}}, {ID: "alone", Alone: "it counts"}, {ID: "long", Timeout: time.Minute},
		{ID: "drive", Drive: func(*Session) {}}, {ID: "net2", Needs: []string{"network"}}, {ID: "flood", Timed: true}, {ID: "short2"},
	}
	play := func(context.Context, Target, Row) Result { return Result{} }
	for _, tt := range []struct {
		name            string
		runner          Runner
		together, alone []string
	}{
		{"with workers that have a network", Runner{Networked: play}, []string{"flood", "net1", "long", "net2", "drive", "short", "short2"}, []string{"alone"}},
		{"in one network, which rows share", Runner{Outside: &Outside{}}, []string{"flood", "long", "drive", "short", "short2"}, []string{"net1", "alone", "net2"}},
	} {
		names := func(at []int) (out []string) {
			for _, i := range at {
				out = append(out, rows[i].ID)
			}
			return out
		}
		together, alone := tt.runner.order(rows)
		if got := names(together); !slices.Equal(got, tt.together) {
			t.Errorf("%s: together %v, want %v", tt.name, got, tt.together)
		}
		if got := names(alone); !slices.Equal(got, tt.alone) {
			t.Errorf("%s: alone %v, want %v", tt.name, got, tt.alone)
		}
	}
}
