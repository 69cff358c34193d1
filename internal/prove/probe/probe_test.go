//go:build linux

package probe_test

import (
	"crypto/tls"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/testenv"
)

// runner makes worlds below the home, where a user's projects are: a sandbox with
// a private /tmp would hide worlds there without any merit.
func runner(t *testing.T) probe.Runner {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return probe.Runner{Prober: testenv.Prober(t), Dir: home}
}

// outside is the network that rows have in a private network.
func outside(t *testing.T, n *testenv.Network) *probe.Outside {
	return &probe.Outside{Listen: n.Listen, ListenPacket: n.ListenPacket,
		Certificate: func(names ...string) tls.Certificate { return n.Certificate(t, names...) }}
}

// chosen returns the rows selected by PROBE_ROWS: prefixes of IDs, separated by
// commas; all rows if it is empty.
func chosen() []probe.Row {
	want := os.Getenv("PROBE_ROWS")
	var out []probe.Row
	for _, r := range probe.All() {
		for prefix := range strings.SplitSeq(want, ",") {
			if strings.HasPrefix(r.ID, prefix) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// needing returns the rows that need a network, or those that do not.
func needing(network bool, rows []probe.Row) []probe.Row {
	return slices.DeleteFunc(rows, func(r probe.Row) bool { return slices.Contains(r.Needs, "network") != network })
}

// TestBare proves that each row proves something: without a sandbox it escapes,
// with each of its spellings, and each of its payloads is executed.
func TestBare(t *testing.T) { bare(t, runner(t), needing(false, chosen())) }

// left reports whether a row is left out: as root, if the ordinary user who runs
// the tests next plays it, because what escapes without root's rights escapes
// with them; in the pass of the race detector, if nothing runs beside the prober.
func left(r probe.Row) bool {
	if os.Getenv(testenv.Raced) != "" {
		return r.Drive == nil && !slices.Contains(r.Needs, "network")
	}
	special := func(need string) bool {
		return need != "network" && !strings.HasPrefix(need, "program ") && !strings.HasPrefix(need, "runs ")
	}
	return os.Getenv(testenv.Twice) != "" && os.Geteuid() == 0 && r.Bare == "" && r.BareUser == "" && !slices.ContainsFunc(r.Needs, special)
}

// TestBareInANetwork is TestBare for the rows that need a network.
func TestBareInANetwork(t *testing.T) {
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		r := runner(t)
		r.Outside = outside(t, n)
		bare(t, r, needing(true, chosen()))
	})
}

// lacking skips the test of a row for which this machine lacks something. Where
// features are promised, TestMatrix decides what may be lacking; and what only the
// other user can do is played in the other pass.
func lacking(t *testing.T, res probe.Result) {
	t.Helper()
	if needs := res.Row.Needs; os.Getenv(testenv.Want) == "" && !slices.Contains(needs, "root") && !slices.Contains(needs, "user") {
		testenv.Need(t, "all that a row is played with", func() error { return errors.New(res.Reason) })
	}
}

func bare(t *testing.T, r probe.Runner, rows []probe.Row) {
	r.Workers = 3
	for _, res := range r.Run(t.Context(), probe.None{}, slices.DeleteFunc(rows, left)) {
		t.Run(res.Row.ID, func(t *testing.T) {
			t.Logf("%v in %v: %s", res.Verdict, res.Took.Round(time.Millisecond), res.Reason)
			if !res.Missing {
				each(t, res)
			}
			switch {
			case res.Missing:
				lacking(t, res)
			case res.Row.Kind == probe.Control:
				if res.Verdict != probe.Held {
					t.Errorf("a control must succeed without a sandbox")
				}
			case res.Row.BareUser != "" && os.Geteuid() != 0:
				t.Logf("need not escape for a user: %s", res.Row.BareUser)
			case res.Row.Bare != "":
				t.Logf("cannot escape without a sandbox: %s", res.Row.Bare)
				if res.Verdict == probe.Escaped {
					t.Errorf("escaped, although the row says that it cannot: %s", res.Row.Bare)
				}
			case res.Verdict != probe.Escaped:
				t.Errorf("must escape without a sandbox")
			}
		})
	}
}

// each checks more than that the row escapes: a spelling that does not work without
// a sandbox would count as held by every sandbox, and so would a payload that is
// never executed.
func each(t *testing.T, res probe.Result) {
	for _, wrong := range probe.Unexecuted(res) {
		t.Errorf("%s: %s", wrong, res.Effects)
	}
	if res.Row.Action != "tricks" && res.Row.Action != "pushes" || slices.Contains(res.Row.Needs, "network") {
		return
	}
	for _, a := range res.Said {
		// The inside does not always show that a service was reached.
		reached := strings.Contains(a.Text, "nothing refuses it") && strings.Contains(strings.Join(res.Effects, "\n"), "was reached")
		if !a.Done && a.Phase == "" && !reached {
			t.Errorf("%s: %s %s", a.Attempt, a.Errno, strings.ToValidUTF8(a.Text, "?"))
		}
	}
}
