//go:build linux

package harness

import (
	"crypto/tls"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

// inNetwork calls f with a runner whose rows have the whole internet to
// themselves.
func inNetwork(t *testing.T, f func(*testing.T, probe.Runner)) {
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		play := runner(t)
		play.Outside = &probe.Outside{Listen: n.Listen, ListenPacket: n.ListenPacket,
			Certificate: func(names ...string) tls.Certificate { return n.Certificate(t, names...) }}
		f(t, play)
	})
}

// TestAblationInANetwork is TestAblation for the controls of the network, with the
// workers of 'holdfast prove ablate'.
func TestAblationInANetwork(t *testing.T) {
	play := runner(t)
	play.Workers = 2
	play.Networked = pool(t, play.Workers).Play
	ablate(t, Ablation{Runner: play, Controls: controlNames(func(c Control) bool { return c.Network })})
}

// rungRows show that a way of interception delivers everything that leaves, with
// its destination.
var rungRows = []string{"NET-004b", "NET-006b", "NET-013b", "NET-020", "NET-021", "NET-022", "NET-024", "DNS-001", "DNS-008", "MET-001", "PXY-018", "PXY-221"}

// TestRungs plays rows with each way of interception that is not the first one of
// this host and that any user may use.
func TestRungs(t *testing.T) {
	inNetwork(t, func(t *testing.T, play probe.Runner) {
		for _, rung := range []string{"redirect", "ports"} {
			t.Run(rung, func(t *testing.T) { playRung(t, play, rung) })
		}
	})
}

// TestRootRungTun is TestRungs for the way whose device only root may use on many
// hosts.
func TestRootRungTun(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	inNetwork(t, func(t *testing.T, play probe.Runner) { playRung(t, play, "tun") })
}

func playRung(t *testing.T, play probe.Runner, rung string) {
	rows, err := Select(probe.All(), rungRows)
	if err != nil {
		t.Fatal(err)
	}
	matrix(t, play, targets.Holdfast{Path: testenv.Ablated(t), Unrecorded: true, Extra: []string{"--rung=" + rung}}, rows)
}
