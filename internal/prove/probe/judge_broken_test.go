//go:build linux

package probe

import (
	"bytes"
	"context"
	"os"
	"testing"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// begun is polite up to the middle of a run: it never reports the end.
func begun(w *World, n string) Observation {
	o := polite(w, n)
	lines := bytes.SplitAfter(o.Stdout, []byte("\n"))
	o.Stdout = bytes.Join(lines[:2], nil)
	return o
}

// unnamed is an oracle that reports something missing.
func unnamed(*World, Observation) []string { return []string{"the launcher did not name the file"} }

// brokenOff are incomplete runs: what they left unfinished proves nothing, and
// what got through before is proof.
func brokenOff() []verdict {
	missed := with(func(r *Row) { r.Oracle = unnamed })
	heard := with(func(r *Row) { r.Oracle, r.Proof = unnamed, true })
	absent := with(func(r *Row) { r.Absent = []string{"W/.envrc"} })
	killed := func(w *World, n string) Observation { o := begun(w, n); o.Exit = 137; return o }
	leaves := func(o Observation) pretender {
		return func(w *World, n string) Observation {
			must(outside(w.Path("W/.envrc")))
			if o.Stdout = begun(w, n).Stdout; o.Refused {
				o.Stdout = nil
			}
			return o
		}
	}
	return []verdict{
		{"the oracle misses something of a run that ended", missed, polite, Escaped},
		{"the oracle misses something of a run whose launcher was killed", missed, killed, Inconclusive},
		{"the oracle misses something of a run that timed out", missed, func(w *World, n string) Observation {
			o := begun(w, n)
			o.TimedOut = true
			return o
		}, Inconclusive},
		{"the oracle misses something of a run that used too much", missed, func(w *World, n string) Observation {
			o := begun(w, n)
			o.Excess = "memory"
			return o
		}, Inconclusive},
		{"the oracle misses something of a run that was refused", missed, func(*World, string) Observation {
			return Observation{Refused: true, Exit: 125, Stderr: []byte("no")}
		}, Inconclusive},
		{"the oracle misses something of a command that never ran", missed, func(*World, string) Observation {
			return Observation{Exit: 127}
		}, Inconclusive},
		{"the oracle misses something of a flood whose end is beyond what is kept", missed, func(w *World, n string) Observation {
			o := begun(w, n)
			o.Flooded = true
			return o
		}, Escaped},
		{"the oracle hears of a run whose launcher was killed what only it can have done", heard, killed, Escaped},
		{"a file that the launcher moves away at the end", absent, leaves(Observation{}), Inconclusive},
		{"a file that the launcher moves away at the end, which a kill kept it from", absent, leaves(Observation{Exit: 137}), Inconclusive},
		{"a file that was there although the launcher refused", absent, leaves(Observation{Refused: true, Exit: 125, Stderr: []byte("no")}), Inconclusive},
		{"the launcher was killed after the file outside had changed", plain, func(w *World, n string) Observation {
			must(os.WriteFile(w.Path("O/canary"), []byte("x"), 0o644))
			return killed(w, n)
		}, Escaped},
		{"the launcher was killed after a name outside was made", with(func(r *Row) { r.Absent = []string{"B/x"} }), func(w *World, n string) Observation {
			must(outside(w.Path("B/x")))
			return killed(w, n)
		}, Escaped},
		{"the launcher was killed after the prober had admitted a success", plain, func(w *World, n string) Observation {
			polite(w, n)
			out := lines(w, n, inside.Report{Attempt: "the deed", Done: true})
			return Observation{Exit: 137, Stdout: bytes.Join(bytes.SplitAfter(out, []byte("\n"))[:2], nil)}
		}, Escaped},
		{"the launcher was killed after somebody without the key had admitted one", plain, func(w *World, n string) Observation {
			o := killed(w, n)
			o.Stdout = append(o.Stdout, sealed(nil, n, inside.Report{Attempt: "the deed", Done: true})...)
			return o
		}, Inconclusive},
	}
}

// TestInterruptedRun has the user interrupt the run: the row proves nothing, unless
// something had got through.
func TestInterruptedRun(t *testing.T) {
	for _, c := range []struct {
		name string
		deed func(*World)
		want Verdict
	}{
		{"nothing had happened", func(*World) {}, Inconclusive},
		{"the file outside had changed", func(w *World) { must(os.WriteFile(w.Path("O/canary"), []byte("x"), 0o644)) }, Escaped},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			play := pretender(func(w *World, n string) Observation {
				c.deed(w)
				cancel()
				o := begun(w, n)
				o.Exit = 137
				return o
			})
			r := Runner{Prober: os.Args[0], Dir: t.TempDir()}
			if res := r.Play(ctx, play, with(func(r *Row) { r.Oracle = unnamed })); res.Verdict != c.want {
				t.Errorf("%v (%s), want %v", res.Verdict, res.Reason, c.want)
			}
		})
	}
}
