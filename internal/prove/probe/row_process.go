//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

const classProcess = "process.control"

// noProcess are Denials and what the kernel says of a process that it does
// not show.
var noProcess = append([]string{"ESRCH"}, Denials...)

func processRows() []Row {
	return append(processForeign(), processHost()...)
}

func processForeign() []Row {
	return []Row{
		{ID: "PRO-001", Class: classProcess, Core: true, Kind: Sandbox, Promise: "P6",
			Title: "a process outside is signalled, by every mechanism that signals",
			Refs:  []string{"signal(7)", "kill(2)"},
			Setup: aimAtVictim, Accept: noProcess, Action: "signals"},
		{ID: "PRO-001b", Class: classProcess, Kind: Control, Promise: "P6",
			Title: "a program starts, signals and waits for children of its own",
			Refs:  []string{"wait(2)"}, Action: "own-processes"},
		{ID: "PRO-003", Class: classProcess, Kind: Sandbox, Promise: "P6",
			Title: "the properties of a process outside are asked for and set, and its descriptors taken",
			Refs:  []string{"pidfd_open(2)", "pidfd_getfd(2)", "process_madvise(2)"},
			Setup: aimAtVictim, Accept: append([]string{"EINVAL"}, noProcess...), Action: "meddle"},
		{ID: "PRO-004", Class: classProcess, Core: true, Kind: Sandbox, Promise: "P6",
			Title: "a process outside, or the first one inside, is traced",
			Refs:  []string{"ptrace(2)"},
			Setup: aimAtVictim, Accept: noProcess, Action: "trace"},
		{ID: "PRO-006", Class: classProcess, Core: true, Kind: Sandbox, Promise: "P1",
			Title: "the memory of a process outside is read and written",
			Refs:  []string{"process_vm_readv(2)"},
			Setup: aimAtMemory, Accept: noProcess, Action: "vm-access"},
		{ID: "PRO-009", Class: classProcess, Kind: Sandbox, Promise: "P7",
			Title: "the kernel and other processes are measured",
			Refs:  []string{"perf_event_open(2)"},
			Setup: aimAtVictim, Accept: noProcess, Action: "perf"},
		{ID: "PRO-011", Class: classProcess, Kind: Sandbox, Promise: "P2",
			Title: "a crash leaves a core file outside",
			Refs:  []string{"core(5)"},
			Setup: coreInDirectory, Options: Options{Read: []string{"R"}},
			Harmless: "a child may crash; what counts is where its core file goes",
			Accept:   append([]string{"ENOTDIR"}, Denials...),
			Action:   "dump-core", Args: []string{"path=O\nR\nH\n/"}},
	}
}

// aimAtMemory tells the action where the process outside keeps its data.
func aimAtMemory(w *World) error {
	v, err := w.Victim()
	if err != nil {
		return err
	}
	w.Arg(fmt.Sprintf("pid=%d", v.PID))
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", v.PID))
	if err != nil {
		return err
	}
	var places []string
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) > 4 && f[1] == "rw-p" && f[4] == "0" {
			places = append(places, f[0])
		}
	}
	w.Arg("maps=" + strings.Join(places, "\n"))
	return nil
}

// coreInDirectory refuses a host that keeps core files elsewhere.
func coreInDirectory(*World) error {
	b, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(b), "|") || strings.HasPrefix(string(b), "/") {
		return fmt.Errorf("%w: core files in the working directory", ErrMissing)
	}
	return nil
}

func processHost() []Row {
	return []Row{
		{ID: "PRO-007", Class: classProcess, Kind: Host, Promise: "P6",
			Title: "one sandbox sees, signals or reads another of the same user",
			Refs:  []string{"pid_namespaces(7)"},
			Setup: func(w *World) error { w.Arg("name=probe-sibling-" + hexes(8)); return nil }, Accept: noProcess,
			Action: "find-sibling",
			Drive: func(s *Session) {
				wait := s.Start(Command{Action: "wait-sibling"})
				s.Run(Command{})
				wait()
			}},
		{ID: "PRO-013", Class: classProcess, Kind: Host, Promise: "P3",
			Title: "the launcher runs a helper that it finds in the workspace",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"},
			Setup: fakeHelpers, Absent: []string{"O/hijacked"},
			Bare:   "without a launcher nothing looks for helpers",
			Action: "read", Args: []string{"path=O/canary-that-is-not-there"}},
		{ID: "PRO-014", Class: classProcess, Kind: Host, Promise: "P3",
			Title:        "the launcher itself stands in the workspace and is rewritten",
			Refs:         []string{"CVE-2019-5736"},
			RefusalHolds: true,
			Accept:       append([]string{"ETXTBSY"}, mutateDenials...),
			Action:       "mutate", Args: []string{"path=W/bin/launcher"},
			Drive: launcherInWorkspace},
	}
}

// fakeHelpers puts programs under the names of everything that a launcher
// might run first in the path of commands.
func fakeHelpers(w *World) error {
	script := "#!/bin/sh\necho \"$0\" >> " + w.Path("O/hijacked") + "\nexit 1\n"
	for name := range strings.FieldsSeq("bwrap socat sleep newuidmap newgidmap sh bash mount umount ip nft iptables git id getent uname " +
		"fusermount3 slirp4netns pasta unshare nsenter setpriv stty tput systemd-run docker podman true env which ldconfig go node npm python3") {
		if err := w.write(w.Path("W/bin/"+name), script); err != nil {
			return err
		}
		if err := os.Chmod(w.Path("W/bin/"+name), 0o755); err != nil {
			return err
		}
	}
	w.Env = append(w.Env, "PATH="+w.Path("W/bin")+":"+os.Getenv("PATH"))
	return nil
}

// launcherInWorkspace runs a copy of the launcher that stands where the
// command may write.
func launcherInWorkspace(s *Session) {
	from, to := s.World.prober, s.World.Path("W/bin/launcher")
	if t, ok := s.Target.(Movable); ok {
		path, err := t.Program()
		if err != nil {
			s.Fail(err)
			return
		}
		from, s.Target = path, t.At(to)
	}
	if err := errors.Join(copyProgram(from, to), s.World.Keep(to)); err != nil {
		s.Fail(err)
		return
	}
	s.Run(Command{})
}

func copyProgram(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return inside.CopyProgram(from, to)
}
