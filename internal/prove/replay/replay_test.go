//go:build linux

package replay_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/replay"
	"holdfast.dev/holdfast/internal/testenv"
)

// stage makes a world of a workspace, a home and a place outside.
func stage(t *testing.T) replay.Stage {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(home, ".replay-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := replay.Stage{Prober: testenv.Prober(t), World: dir, Work: dir + "/w", Home: dir + "/h", Outside: dir + "/o", Token: "token-of-the-test"}
	for _, d := range []string{s.Work, s.Home, s.Outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, s.Outside+"/canary", "outside")
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := programs.Write(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func shell(script string) replay.Program {
	return replay.Program{Name: "sh", Steps: []replay.Step{{Argv: []string{"sh", "-c", script}}}}
}

func TestAMarkNamesThePlantAndTheStep(t *testing.T) {
	s := stage(t)
	write(t, s.Work+"/run.sh", "#!/bin/sh\n"+s.Trip("run.sh")+"\n")
	begun := time.Now()
	res, err := s.Play(t.Context(), shell("true"), shell("./run.sh"))
	t.Logf("took %v, on the stage %v", time.Since(begun), res.Took)
	if err != nil {
		t.Fatal(err)
	}
	want := []replay.Mark{{Plant: "run.sh", Step: "sh -c ./run.sh"}}
	if !slices.Equal(res.Marks, want) || len(res.Changed) > 0 {
		t.Errorf("marks %v, changed %v", res.Marks, res.Changed)
	}
}

// TestNothingOfAReplayReachesTheMachine tries what a payload could try.
func TestNothingOfAReplayReachesTheMachine(t *testing.T) {
	s := stage(t)
	write(t, s.Home+"/kept", "kept")
	for _, row := range []struct{ name, script, says string }{
		{"the workspace is a copy", "echo x >{W}/new; echo changed >{W}/../h/kept; test -e {W}/new && echo yes", "yes"},
		{"the system is read-only", "touch /usr/x /etc/x /bin/x 2>/dev/null || echo refused", "refused"},
		{"nobody is root", "id -u; grep CapEff /proc/self/status", "1000\nCapEff:\t0000000000000000"},
		{"privileges are not given back", "grep NoNewPrivs /proc/self/status; grep CapBnd /proc/self/status >/dev/null; echo", "NoNewPrivs:\t1"},
		{"other processes are not seen", "ls -d /proc/[0-9]* | wc -l | { read n; test $n -lt 8 && echo few; }", "few"},
		{"the first process is out of reach", "cat /proc/1/environ 2>/dev/null || echo refused; kill -9 1 2>/dev/null; echo still", "refused\nstill"},
		{"there is no network but loopback", "ls /sys/class/net 2>/dev/null; cat /proc/net/dev | grep -c :", "1"},
		{"no other place of the machine is there", `ls /srv /mnt /sys 2>/dev/null; ls -A /home 2>/dev/null | grep -vxc "$(echo {W} | cut -d/ -f3)"; ls -A {W}/../.. | grep -vc replay-test`, "0\n0"},
		{"no descriptor is inherited", "ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3"},
		{"names of the machine are not shown", "hostname", "replay"},
	} {
		t.Run(row.name, func(t *testing.T) {
			res, err := s.Play(t.Context(), shell(row.script))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.TrimSpace(res.Steps[1].Output); said != row.says {
				t.Errorf("says %q, want %q", said, row.says)
			}
			if len(res.Changed) > 0 {
				t.Errorf("changed: %v", res.Changed)
			}
		})
	}
	if b, _ := os.ReadFile(s.Home + "/kept"); string(b) != "kept" {
		t.Errorf("the home of the world was changed: %q", b)
	}
	left, _ := os.ReadDir(s.World)
	if len(left) != 3 {
		t.Errorf("left in the world: %v", left)
	}
}

func TestWhatHappensOutsideIsReported(t *testing.T) {
	s := stage(t)
	for _, row := range []struct{ script, want string }{
		{"echo x >{O}/new", "new was made outside the workspace"},
		{"echo x >{O}/canary", "canary outside the workspace was changed"},
		{"rm {O}/canary", "canary outside the workspace was removed"},
		{"ln -sf x {O}/canary", "canary outside the workspace became something else"},
		{"echo forged plant >>{O}/fired", "a mark without the token was left by"},
	} {
		res, err := s.Play(t.Context(), shell(row.script))
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Changed) != 1 || !strings.HasPrefix(res.Changed[0], row.want) {
			t.Errorf("%s: %q", row.script, res.Changed)
		}
	}
}

// TestAReplayThatIsTamperedWithProvesNothing checks that unreadable marks and
// programs that cannot be started are errors.
func TestAReplayThatIsTamperedWithProvesNothing(t *testing.T) {
	s := stage(t)
	for name, p := range map[string]replay.Program{
		"the marks are taken away":      shell("rm {O}/fired"),
		"the marks are emptied":         shell(": >{O}/fired"),
		"the marks become a link":       shell("ln -sf canary {O}/fired"),
		"a program that is not there":   {Name: "x", Steps: []replay.Step{{Argv: []string{"no-such-program"}}}},
		"a directory that is not there": {Name: "x", Steps: []replay.Step{{Argv: []string{"sh"}, Dir: "{W}/nowhere"}}},
	} {
		if res, err := s.Play(t.Context(), p); err == nil {
			t.Errorf("%s: no error, and %v", name, res)
		}
	}
	if _, err := (replay.Stage{Prober: "/bin/false", World: s.World, Outside: s.Outside}).Play(t.Context()); err == nil {
		t.Error("a stage that is not made plays")
	}
}

func TestWhatIsLeftRunningIsEnded(t *testing.T) {
	s := stage(t)
	begun := time.Now()
	res, err := s.Play(t.Context(), shell("(sleep 30; "+s.Trip("late")+") & sleep 40 & exit 3"), shell("ls -d /proc/[0-9]* | wc -l"))
	if err != nil {
		t.Fatal(err)
	}
	if res.Steps[1].Exit != 3 || time.Since(begun) > 15*time.Second || len(res.Marks) > 0 {
		t.Errorf("%+v after %v", res, time.Since(begun))
	}
}

func TestATerminalIsTypedOn(t *testing.T) {
	s := stage(t)
	res, err := s.Play(t.Context(), replay.Program{Name: "sh", Steps: []replay.Step{{Argv: []string{"sh"}, Terminal: true, Input: "test -t 0 && {TRIP} typed; exit\n"}}})
	if err != nil || len(res.Marks) != 1 || res.Marks[0].Plant != "typed" {
		t.Errorf("%+v: %v", res, err)
	}
}

func TestACutReplayProvesNothing(t *testing.T) {
	s := stage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	_, err := s.Play(ctx, shell("sleep 20"))
	if err == nil || time.Since(begun) > 15*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}
