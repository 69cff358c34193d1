//go:build linux

package harness

import (
	"crypto/tls"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/sandbox"
	"holdfast.dev/holdfast/internal/testenv"
)

// needing are those of rows that need a network, or those that do not.
func needing(network bool, rows []probe.Row) []probe.Row {
	return slices.DeleteFunc(rows, func(r probe.Row) bool { return slices.Contains(r.Needs, "network") != network })
}

// inNetwork gives f a runner whose rows have the whole internet to themselves.
func inNetwork(t *testing.T, f func(*testing.T, probe.Runner)) {
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		play := runner(t)
		play.Outside = &probe.Outside{Listen: n.Listen, ListenPacket: n.ListenPacket,
			Certificate: func(names ...string) tls.Certificate { return n.Certificate(t, names...) }}
		f(t, play)
	})
}

// TestMatrixInANetwork is TestMatrix for the rows that need one.
func TestMatrixInANetwork(t *testing.T) {
	inNetwork(t, func(t *testing.T, play probe.Runner) {
		matrix(t, play, probe.Holdfast{Path: testenv.Binary(t)}, needing(true, probe.All()))
	})
}

// TestAblationInANetwork is TestAblation for the controls of the network.
func TestAblationInANetwork(t *testing.T) {
	inNetwork(t, func(t *testing.T, play probe.Runner) {
		ablate(t, play, slices.DeleteFunc(Controls(), func(c Control) bool { return !c.Network }))
	})
}

// rungRows show that a way to intercept hands out all that leaves, and with it
// where it was going.
var rungRows = []string{"NET-004b", "NET-006b", "NET-013b", "NET-021", "DNS-001", "DNS-008", "MET-001", "PXY-018"}

// TestRungs plays rows with each way to intercept that is not the first one of
// this host.
func TestRungs(t *testing.T) {
	inNetwork(t, func(t *testing.T, play probe.Runner) {
		rows, err := Select(probe.All(), rungRows)
		if err != nil {
			t.Fatal(err)
		}
		link := ablatedProgram(t)
		for _, rung := range sandbox.Rungs[1:] {
			t.Run(string(rung), func(t *testing.T) {
				matrix(t, play, probe.Holdfast{Path: link, Extra: []string{"--rung=" + string(rung)}}, rows)
			})
		}
	})
}
