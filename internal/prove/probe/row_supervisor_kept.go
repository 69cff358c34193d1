//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// supervisorKept are rows of what the launcher keeps to itself and of what it leaves
// of a secret, and of what that costs.
func supervisorKept() []Row {
	return []Row{
		{ID: "HST-401", Promise: "P1", Title: "another program of the user reads the environment and the memory of the launcher, and of what guards its run",
			Refs: []string{"PR_SET_DUMPABLE(2const)", "proc_pid_environ(5)", "core(5)"}, Needs: []string{"user"}, // root may read every process
			Bare: "there is no launcher whose memory could be read", Action: "wait-turn", Drive: launcherRead, Oracle: noted,
			Trace: nothing("a program outside reads what is outside, and the inside does nothing")},
		{ID: "HST-402", Promise: "P6", Title: "arguments that look like templates without an end cost the launcher time that grows with the square of their length",
			Refs: []string{"CWE-407"}, Timed: true, Alone: "it measures processor time", Bare: "nothing reads the arguments",
			Action: "say-long", Drive: costly, Oracle: noted, Timeout: 100 * time.Second, Harmless: "it may execute what it likes; what counts is what that costs",
			Trace: Trace{Events: []Attempt{{Action: "proc.exec"}}}},
		{ID: "HST-403", Promise: "P9", Title: "tokens in the formats that services give out today stand in the record", Refs: []string{"CWE-532", "github.com/gitleaks/gitleaks"}, Setup: currentTokens,
			Action: "tell-secrets", Harmless: "what the command knows it may say; what counts is whether the record repeats it",
			Oracle: both(untold, recorded(Attempt{Action: "proc.exec", Arg: "not-a-secret"})), Trace: ran("not-a-secret")},
	}
}

// launcherRead looks at the launcher and its children as another program of the same
// user does.
func launcherRead(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	if !w.appears("W/used") {
		s.Fail(errors.New("nothing ran"))
	}
	var pids []int
	for _, pid := range launchersOf(w) {
		pids = append(append(pids, pid), childrenOf(pid)...)
	}
	for _, pid := range pids {
		for _, name := range []string{"environ", "auxv", "mem"} {
			f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				continue
			}
			f.Close()
			w.remembered = fmt.Sprintf("another program may open %s of process %d of %d", name, pid, len(pids))
		}
	}
	if _, keeps := s.Target.(Recorder); keeps && len(pids) < 2 {
		s.Fail(errors.New("no launcher with a child was found"))
	}
	if err := w.File("W/over", ""); err != nil {
		s.Fail(err)
	}
	wait()
}

// costly compares what the launcher uses for plain arguments with what it uses for
// as many of the same length.
func costly(s *Session) {
	args := []string{"times=20", "size=120000"}
	cost := func(unit string) time.Duration {
		return s.Run(Command{Args: append(args, "unit="+unit), Action: s.Row.Action}).Used
	}
	plain := cost("password=a, ")
	for _, unit := range []string{"password={{", "{{"} {
		if took := cost(unit); took > 2*time.Second && took > 5*plain {
			s.World.remembered = fmt.Sprintf("for arguments of %q it used %v, and %v for plain ones", unit, took.Round(time.Millisecond), plain.Round(time.Millisecond))
		}
	}
}

// currentTokens makes values that scanners know, for tell-secrets.
func currentTokens(w *World) error {
	var never []string
	for _, form := range []string{"bkua_40", "squ_40", "CCIPAT_40", "dckr_oat_32", "glwt-20", "dp.pt.40", "pul-40", "nfp_40", "glsa_40", "snyk_uat.32"} {
		i := strings.LastIndexAny(form, "_-.") + 1
		size := 0
		if _, err := fmt.Sscan(form[i:], &size); err != nil {
			return err
		}
		never = append(never, form[:i]+hexes(size/2))
	}
	w.Arg("secrets=" + strings.Join(never, "\n"))
	w.remembered = strings.Join(never, "\n")
	return nil
}
