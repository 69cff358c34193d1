//go:build linux

package targets_test

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

// runner makes worlds below the home, where a user's projects are: a sandbox with
// a private /tmp would hide worlds there without having earned it.
func runner(t *testing.T) probe.Runner {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return probe.Runner{Prober: testenv.Prober(t), Dir: home}
}

// chosen are the rows that PROBE_ROWS selects, by comma-separated prefixes of
// their IDs; all of them when it is empty. network selects those that need a
// network, or the others.
func chosen(network bool) []probe.Row {
	want := strings.Split(os.Getenv("PROBE_ROWS"), ",")
	return slices.DeleteFunc(probe.All(), func(r probe.Row) bool {
		return slices.Contains(r.Needs, "network") != network ||
			!slices.ContainsFunc(want, func(prefix string) bool { return strings.HasPrefix(r.ID, prefix) })
	})
}

// named is the target that PROBE_TARGET names, by a name or the path of a
// holdfast binary; nil for none.
func named(t *testing.T) probe.Target {
	t.Helper()
	switch name := os.Getenv("PROBE_TARGET"); {
	case name == "":
		return nil
	case filepath.IsAbs(name):
		return targets.Holdfast{Path: name}
	default:
		target, err := targets.Named(name, targets.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return target
	}
}

// TestTarget prints the verdicts of the target that PROBE_TARGET names. It checks
// nothing.
func TestTarget(t *testing.T) {
	target := named(t)
	if target == nil {
		return
	}
	r := runner(t)
	t.Cleanup(func() {
		if err := targets.Release(context.Background(), target); err != nil {
			t.Error(err)
		}
	})
	if err := targets.Ready(t.Context(), r, target); err != nil {
		t.Error(err)
	}
	id, err := targets.Identify(t.Context(), target)
	t.Logf("%+v, %v", id, err)
	show(t, r.Run(t.Context(), target, chosen(false)))
}

// TestTargetInANetwork is TestTarget for the rows that need a network.
func TestTargetInANetwork(t *testing.T) {
	target := named(t)
	if target == nil {
		return
	}
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		r := runner(t)
		r.Outside = &probe.Outside{Listen: n.Listen, ListenPacket: n.ListenPacket,
			Certificate: func(names ...string) tls.Certificate { return n.Certificate(t, names...) }}
		show(t, r.Run(t.Context(), target, chosen(true)))
	})
}

func show(t *testing.T, results []probe.Result) {
	t.Helper()
	verbose := os.Getenv("PROBE_VERBOSE") != ""
	for _, res := range results {
		t.Logf("%s %s %s: %s: %s", res.Row.ID, res.Target, res.Verdict, res.Row.Title, res.Reason)
		if !verbose {
			continue
		}
		t.Logf("%s: took %v", res.Row.ID, res.Took.Round(time.Millisecond))
		for _, e := range res.Effects {
			t.Logf("%s: %s", res.Row.ID, e)
		}
		for _, a := range res.Said {
			t.Logf("%s: %s: done=%v %s %.300q", res.Row.ID, a.Attempt, a.Done, a.Errno, a.Text)
		}
	}
}
