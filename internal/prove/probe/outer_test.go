//go:build linux

package probe

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// greedy is a target whose payload uses more than it may.
type greedy struct {
	script string
	limit  outer
}

func (greedy) Name() string { return "greedy" }

func (g greedy) Run(ctx context.Context, w *World, c Command, _ []string) Observation {
	w.outer = g.limit
	return Start(ctx, w, c, []string{"sh", "-c", g.script}, []string{"PATH=" + os.Getenv("PATH")})
}

// TestNothingUsesMoreThanItMay: a payload that forks or takes memory without end
// is ended with all that it started, also what has left its group and its parent.
func TestNothingUsesMoreThanItMay(t *testing.T) {
	mark := hexes(8)
	sleep := "sh -c 'sleep 300 & wait' " + mark
	for _, c := range []struct {
		name, script string
		limit        outer
		reason       string
	}{
		{"processes", "(setsid " + sleep + " &) ; sleep 0.5; for i in $(seq 60); do " + sleep + " & done; wait", outer{processes: 40, memory: 1 << 40}, "processes"},
		{"processes whose parents have ended", "f() { [ $1 -lt 8 ] || { " + sleep + "; exit; }; sleep 0.02; f $(($1+1)) & f $(($1+1)) & }; f 0; sleep 0.3", outer{processes: 100, memory: 1 << 40}, "processes"},
		{"memory", "x=$(head -c 300000000 /dev/zero | tr '\\0' x); " + sleep, outer{processes: 1000, memory: 100 << 20}, "MiB of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.limit.every = 20 * time.Millisecond
			res := Runner{Prober: os.Args[0], Dir: t.TempDir()}.Play(t.Context(), greedy{c.script, c.limit}, Row{ID: "OUT-000", Kind: Sandbox, Action: "nothing", Timeout: 2 * time.Minute})
			if res.Verdict != Inconclusive || !strings.Contains(res.Reason, "more than any row needs") || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("%v: %s", res.Verdict, res.Reason)
			}
			for pid := range processes() {
				line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
				if err == nil && strings.Contains(string(line), mark) && !hasEnded(pid) {
					t.Errorf("process %d was left: %q", pid, line)
				}
			}
		})
	}
}
