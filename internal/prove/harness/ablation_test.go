//go:build linux

package harness

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestAblation switches off one control at a time: the rows that depend on it
// then escape, and are held when nothing is switched off.
func TestAblation(t *testing.T) { ablateSome(t, false) }

// TestAblationOfTheRecord is TestAblation for the controls of the record, which
// is complete only if look-ups outside the view are seen.
func TestAblationOfTheRecord(t *testing.T) {
	testenv.Need(t, testenv.FUSE, nil)
	ablateSome(t, true)
}

// ablateSome plays the controls of the record, or all others.
func ablateSome(t *testing.T, record bool) {
	testenv.Need(t, testenv.UserNS, nil)
	play := runner(t)
	play.Workers = 3
	ablate(t, Ablation{Runner: play, Controls: controlNames(func(c Control) bool { return !c.Network && c.Record == record })})
}

// controlNames returns the controls for which of is true.
func controlNames(of func(Control) bool) []string {
	var names []string
	for _, c := range Controls() {
		if of(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

func ablate(t *testing.T, o Ablation) {
	t.Helper()
	o.Program, o.Holdfast = testenv.Ablated(t), testenv.Binary(t)
	o.Runner.Done = func(r probe.Result) {
		if r.Verdict == probe.Inconclusive {
			t.Logf("%s proved nothing: %s", r.Row.ID, r.Reason)
		}
	}
	kill, err := Ablate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, r := range kill.Rows {
		held[r.ID] = true
	}
	why := map[string]string{}
	for _, r := range kill.Unproved {
		why[r.ID] = r.Verdict + ": " + r.Reason
	}
	controls, err := ControlsNamed(o.Controls)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range controls {
		if !plays(c) {
			continue // the table has the reason, or something else holds them for this user
		}
		for _, id := range c.Rows {
			switch {
			case !held[id]:
				t.Errorf("%s is not held with everything on: %s", id, why[id])
			case !slices.Contains(kill.Controls[i].Escaped, id):
				t.Errorf("%s does not escape without %s", id, c.Name)
			}
		}
	}
	for _, name := range slices.Concat(kill.Needless(), kill.Unknown()) {
		t.Errorf("no row needs %s", name)
	}
	if with, excused := kill.Covered(); with+excused != len(controls) {
		t.Errorf("%d of %d controls have a row or a reason", with+excused, len(controls))
	}
}

func TestControlsNamed(t *testing.T) {
	for _, c := range []struct {
		name  string
		names []string
		first string
		count int
		near  string // of an error
	}{
		{"no name means all", nil, "read-only binds", len(Controls()), ""},
		{"an exact name means one control", []string{"seccomp"}, "seccomp", 1, ""},
		{"a pattern means those that match", []string{"seccomp: record-*"}, "seccomp: record-exec", 5, ""},
		{"a slash is a letter like any other", []string{"masks*"}, "masks over /proc", 1, ""},
		{"a part of a name is no name", []string{"keyrings"}, "", 0, "seccomp: keyrings"},
		{"one unknown name among known ones", []string{"seccomp", "no such thing"}, "", 0, "no nested namespaces"},
		{"a pattern that matches nothing", []string{"zzz*"}, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ControlsNamed(c.names)
			var unknown *UnknownControlError
			switch {
			case errors.As(err, &unknown) != (c.count == 0) || len(got) != c.count:
				t.Fatalf("%d controls, %v", len(got), err)
			case c.count > 0 && got[0].Name != c.first:
				t.Errorf("the first is %s", got[0].Name)
			case c.near != "" && !slices.Contains(unknown.Near, c.near):
				t.Errorf("near are %q", unknown.Near)
			}
		})
	}
}

// TestAblateWithoutSwitches plays a program that refuses the flag: what it did not
// run is unclear, and no row escapes.
func TestAblateWithoutSwitches(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	program := testenv.Binary(t)
	kill, err := Ablate(t.Context(), Ablation{Program: program, Holdfast: program, Controls: []string{"files with a second name outside"}, Runner: runner(t)})
	if err != nil {
		t.Fatal(err)
	}
	if c := kill.Controls[0]; len(c.Escaped) > 0 || len(c.Played) == 0 || len(c.Unclear) != len(c.Played) {
		t.Errorf("%+v", c)
	}
}

// TestAblateInterrupted interrupts it while rows are played: there is no matrix.
func TestAblateInterrupted(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	program := testenv.Binary(t)
	ctx, cancel := context.WithCancel(t.Context())
	play := runner(t)
	play.Done = func(probe.Result) { cancel() }
	kill, err := Ablate(ctx, Ablation{Program: program, Holdfast: program, Controls: []string{"protected paths"}, Runner: play})
	if !errors.Is(err, context.Canceled) || len(kill.Controls) > 0 {
		t.Errorf("%v, %+v", err, kill)
	}
}

// TestControls checks the table itself.
func TestControls(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Controls() {
		switch {
		case names[c.Name]:
			t.Errorf("%s stands twice", c.Name)
		case len(c.Rows) == 0 && c.Why == "":
			t.Errorf("%s has neither rows nor a reason", c.Name)
		case len(c.Rows) > 0 && len(c.Omit) == 0:
			t.Errorf("%s has rows and nothing to leave out", c.Name)
		case len(c.Rows) > 0 && !c.Root && !c.User:
			t.Errorf("%s is played for nobody", c.Name)
		case len(c.Omit) > 1 && c.Why == "":
			t.Errorf("%s leaves out several and does not say what overlaps", c.Name)
		}
		names[c.Name] = true
	}
}

// TestEveryGroupOfCalls checks that the table follows the list of system calls.
func TestEveryGroupOfCalls(t *testing.T) {
	list, err := os.ReadFile("../../boundary/native/syscalls.tsv")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]bool{}
	for _, c := range Controls() {
		in[c.Name] = true
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || len(f) < 2 {
			continue
		}
		if name := "seccomp: " + f[1]; !in[name] {
			t.Errorf("%s has no place in the table", name)
			in[name] = true
		}
	}
}
