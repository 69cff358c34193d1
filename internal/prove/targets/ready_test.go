//go:build linux

package targets_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/targets"
	"holdfast.dev/holdfast/internal/testenv"
)

func command(t *testing.T, template string) probe.Target {
	t.Helper()
	target, err := targets.Command(template, "")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func rows(t *testing.T, ids ...string) []probe.Row {
	t.Helper()
	out := slices.DeleteFunc(probe.All(), func(r probe.Row) bool { return !slices.Contains(ids, r.ID) })
	if len(out) != len(ids) {
		t.Fatalf("of %q there are %d", ids, len(out))
	}
	return out
}

// wants plays rows and compares the verdicts with those of want.
func wants(t *testing.T, r probe.Runner, target probe.Target, want map[string]probe.Verdict) {
	t.Helper()
	if err := targets.Ready(t.Context(), r, target); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range want {
		ids = append(ids, id)
	}
	for _, res := range r.Run(t.Context(), target, rows(t, ids...))[1:] {
		if res.Verdict != want[res.Row.ID] {
			t.Errorf("%s, %s: %v, not %v: %s", target.Name(), res.Row.ID, res.Verdict, want[res.Row.ID], res.Reason)
		}
	}
}

// TestPlayed plays a few rows against targets that every CI machine has.
func TestPlayed(t *testing.T) {
	r := runner(t)
	open := map[string]probe.Verdict{"LNK-001": probe.Escaped, "PTH-001": probe.Escaped, "ENV-001": probe.Escaped}
	t.Run("none", func(t *testing.T) { wants(t, r, probe.None{}, open) })
	t.Run("env", func(t *testing.T) {
		wants(t, r, command(t, "env -i {}"), map[string]probe.Verdict{"LNK-001": probe.Escaped, "ENV-001": probe.Held})
	})
	t.Run("sh", func(t *testing.T) { wants(t, r, command(t, "sh -c 'cd {W} && exec {}'"), open) })
	t.Run("bwrap", func(t *testing.T) {
		testenv.Need(t, testenv.Bwrap, nil)
		testenv.Need(t, testenv.UserNS, nil)
		target, err := targets.Named("bwrap", targets.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wants(t, r, target, map[string]probe.Verdict{"LNK-001": probe.Held, "PTH-001": probe.Escaped, "ENV-001": probe.Escaped, "ENV-001c": probe.Held, "DNY-002c": probe.Inconclusive})
	})
	t.Run("holdfast", func(t *testing.T) {
		testenv.Need(t, testenv.UserNS, nil)
		target, err := targets.Named("holdfast", targets.Options{Holdfast: testenv.Binary(t)})
		if err != nil {
			t.Fatal(err)
		}
		wants(t, r, target, map[string]probe.Verdict{"LNK-001": probe.Held, "PTH-001": probe.Held, "ENV-001": probe.Held, "ENV-001c": probe.Held, "DNY-002c": probe.Held})
	})
}

// TestInstalledPeers plays a few rows against the other peers that are installed
// and start; it checks nothing if there are none.
func TestInstalledPeers(t *testing.T) {
	r := runner(t)
	for _, name := range targets.Names() {
		if name == "holdfast" || name == "none" || name == "bwrap" {
			continue
		}
		target, err := targets.Named(name, targets.Options{})
		if errors.Is(err, targets.ErrNotHere) {
			t.Logf("%v", err)
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := targets.Release(context.Background(), target); err != nil {
					t.Logf("%v", err)
				}
			})
			if err := targets.Ready(t.Context(), r, target); err != nil {
				t.Logf("%v", err)
				return
			}
			wants(t, r, target, map[string]probe.Verdict{"LNK-001": probe.Held, "PTH-001": probe.Held, "ENV-001c": probe.Held})
		})
	}
}

// script is a target whose program is a short shell script.
func script(t *testing.T, body string) probe.Target {
	t.Helper()
	path := filepath.Join(t.TempDir(), "target")
	if err := programs.Write(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return command(t, path+" {}")
}

// TestHostileTargets: none of them is ready, each gets a reason, and none of them
// holds a row.
func TestHostileTargets(t *testing.T) {
	const lie = `printf '{"nonce":"%s","phase":"begin","seq":1}\n{"nonce":"%s","attempt":"x","done":false,"errno":"EACCES","seq":2}\n{"nonce":"%s","attempt":"write W/ok.txt","control":true,"done":true,"seq":3}\n{"nonce":"%s","phase":"end","seq":4}\n' "$2" "$2" "$2" "$2"`
	r := runner(t)
	for name, c := range map[string]struct {
		target         probe.Target
		why, hint      string
		patience       time.Duration
		escapeIsWellIn bool // it runs the command, and so may let something through
	}{
		"lies":            {target: script(t, lie), why: "is not from it", hint: "by hand"},
		"lies and writes": {target: script(t, lie+"\nprintf %s \"$2\" > ok.txt"), why: "is not from it", hint: "by hand"},
		"hangs":           {target: script(t, "sleep 600 & wait"), why: "timed out", hint: "terminal", patience: 2 * time.Second},
		"floods":          {target: script(t, `head -c 3000000 /dev/zero; exec "$@"`), why: "printed more", hint: "silence", escapeIsWellIn: true},
		"runs nothing":    {target: script(t, "exit 0"), why: "never ran", hint: "by hand"},
		"fails":           {target: script(t, "echo 'no license' >&2; exit 3"), why: "no license", hint: "by hand"},
		"hides":           {target: command(t, "sh -c '/nonexistent/{}'"), why: "not visible in", hint: "mount it read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.patience > 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, c.patience)
				defer cancel()
			}
			err := targets.Ready(ctx, r, c.target)
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v", err)
			}
			var h interface{ Hint() string }
			if !errors.As(err, &h) || !strings.Contains(h.Hint(), c.hint) {
				t.Errorf("%v: the hint is another one", err)
			}
			for _, row := range rows(t, "LNK-001", "ENV-001") {
				row.Timeout = 2 * time.Second
				row.RefusalHolds = true
				res := r.Play(t.Context(), c.target, row)
				if res.Verdict == probe.Held || res.Verdict == probe.Escaped && !c.escapeIsWellIn {
					t.Errorf("%s: %v: %s", row.ID, res.Verdict, res.Reason)
				}
			}
		})
	}
}

// TestHiddenProber lets a real sandbox hide the directory of the world.
func TestHiddenProber(t *testing.T) {
	testenv.Need(t, testenv.Bwrap, nil)
	testenv.Need(t, testenv.UserNS, nil)
	r := runner(t)
	err := targets.Ready(t.Context(), r, command(t, "bwrap --ro-bind / / --tmpfs "+r.Dir+" -- {}"))
	if err == nil || !strings.Contains(err.Error(), "is not visible in the target") {
		t.Errorf("%v", err)
	}
}

// TestNothingIsLeft kills targets while they run, and looks for processes that
// they started.
func TestNothingIsLeft(t *testing.T) {
	testenv.Need(t, testenv.Bwrap, nil)
	testenv.Need(t, testenv.UserNS, nil)
	r := runner(t)
	dir := t.TempDir()
	testenv.NoLeaks(t, dir)
	slow := probe.Row{ID: "X", Kind: probe.Control, Action: "nothing", Timeout: time.Second}
	bwrap, err := targets.Named("bwrap", targets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []probe.Target{bwrap, command(t, "env MARK="+dir+" {}")} {
		res := r.Play(t.Context(), held{target, dir}, slow)
		if res.Verdict != probe.Inconclusive || !strings.Contains(res.Reason, "timed out") {
			t.Errorf("%s: %v: %s", target.Name(), res.Verdict, res.Reason)
		}
	}
}

// held runs, instead of the prober, a command that does not end.
type held struct {
	probe.Target
	mark string
}

func (h held) Run(ctx context.Context, w *probe.World, c probe.Command, _ []string) probe.Observation {
	return h.Target.Run(ctx, w, c, []string{"/bin/sh", "-c", "MARK=" + h.mark + " sleep 600 & wait"})
}

// TestNamed: the error for a missing target says what to install, or which
// targets exist.
func TestNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, name := range append(targets.Names(), "nothing") {
		_, err := targets.Named(name, targets.Options{})
		var h interface{ Hint() string }
		switch {
		case name == "holdfast" || name == "none":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case !errors.As(err, &h) || h.Hint() == "":
			t.Errorf("%s: %v has no hint", name, err)
		case name == "nothing":
			if !errors.Is(err, targets.ErrUnknown) {
				t.Errorf("%v", err)
			}
		case !errors.Is(err, targets.ErrNotHere):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestIdentify: the identity is the same in every run.
func TestIdentify(t *testing.T) {
	const slow = "#!/bin/sh\necho tool 1.2\nexec sleep 600\n"
	program := filepath.Join(t.TempDir(), "tool")
	if err := programs.Write(program, []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	target, err := targets.Command(program+" --strict -- {}", program+" --version")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	id, err := targets.Identify(ctx, target)
	if err != nil || id.Name != "tool" || id.Version != "tool 1.2" || id.Path != program || !slices.Equal(id.Flags, []string{"--strict", "--", "{}"}) ||
		id.SHA256 != fmt.Sprintf("%x", sha256.Sum256([]byte(slow))) {
		t.Errorf("%+v, %v", id, err)
	}
}

// TestFlagsStayTheSame: a baseline compares the arguments of a target.
func TestFlagsStayTheSame(t *testing.T) {
	program := filepath.Join(t.TempDir(), "tool")
	if err := programs.Write(program, []byte("#!/bin/sh\necho 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range targets.Names() {
		target := probe.Target(targets.Peer{Kind: name, Path: program, Owner: "1-2"})
		switch name {
		case "none":
			target = probe.None{}
		case "holdfast":
			target = targets.Holdfast{Path: program}
		}
		first, err := targets.Identify(t.Context(), target)
		if err != nil || !slices.ContainsFunc(first.Flags, func(f string) bool { return strings.Contains(f, "{}") }) {
			t.Errorf("%s: %+v, %v", name, first, err)
		}
		second, err := targets.Identify(t.Context(), target)
		if err != nil || !slices.Equal(first.Flags, second.Flags) {
			t.Errorf("%s is called differently each time: %q, %q", name, first.Flags, second.Flags)
		}
	}
}
