//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// launcherRead reads the launcher and its children as another program of the same
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

// costly compares the processor time of the launcher for plain arguments with that
// for other arguments of the same number and length.
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

// currentTokens makes values that scanners recognise, for tell-secrets.
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
