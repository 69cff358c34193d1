//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// unusedID is a user and group id that the host does not use.
const unusedID = 12345

// setIDHelpers puts a program owned by unusedID into view.
func setIDHelpers(w *World) error {
	for _, t := range []string{"W/helper", "R/helper"} {
		path := w.Path(t)
		if err := copyProgram(w.prober, path); err != nil {
			return err
		}
		if err := os.Chown(path, unusedID, unusedID); err != nil {
			return err
		}
		if err := unix.Chmod(path, 0o6755); err != nil {
			return err
		}
	}
	return nil
}

func capableHelper(w *World) error {
	path := w.Path("R/helper")
	if err := copyProgram(w.prober, path); err != nil {
		return err
	}
	// Version 2, effective, CAP_NET_RAW: one that containers have too.
	caps := []byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(path, "security.capability", caps, 0); err != nil {
		return fmt.Errorf("%w: file capabilities: %v", ErrMissing, err)
	}
	return nil
}

// setIDFiles looks for programs in the workspace that would run as unusedID.
func setIDFiles(w *World, _ Observation) []string {
	var out []string
	_ = filepath.WalkDir(w.W, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			out = append(out, w.short(path)+" sets an id")
		}
		if _, err := unix.Lgetxattr(path, "security.capability", nil); err == nil {
			out = append(out, w.short(path)+" has capabilities")
		}
		return nil
	})
	return out
}

// plantWithMode plants a file that not every user may read.
func plantWithMode(w *World, template string, mode os.FileMode) error {
	return errors.Join(w.Plant(template), os.Chmod(w.Path(template), mode), w.Keep(w.Path(template)))
}

// sameOwner compares the owner of a file that was made with that of W.
func sameOwner(w *World, _ Observation) []string {
	owner := func(path string) (uint32, error) {
		info, err := os.Lstat(path)
		if err != nil {
			return 0, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return 0, fmt.Errorf("%s: no owner", path)
		}
		return st.Uid, nil
	}
	want, err := owner(w.W)
	if err != nil {
		return []string{err.Error()}
	}
	for _, t := range []string{"W/made", "W/made/file", "W/ok.txt"} {
		if got, err := owner(w.Path(t)); err != nil || got != want {
			return []string{fmt.Sprintf("%s belongs to user %d, not to %d: %v", t, got, want, err)}
		}
	}
	return nil
}

// ownedByRoot makes files that only root may read, one in view and one not.
func ownedByRoot(w *World) error {
	return errors.Join(w.File("R/of-root", ""), os.Chmod(w.Path("R/of-root"), 0o600), plantWithMode(w, "O/of-root", 0o600))
}

// groupOnly makes a file for a group that the launcher is started with, by setpriv.
func groupOnly(w *World) error {
	if !onPath("setpriv") {
		return fmt.Errorf("%w: setpriv", ErrMissing)
	}
	w.Under = []string{"setpriv", "--groups", fmt.Sprint(unusedID), "--"}
	w.Arg(fmt.Sprintf("group=%d", unusedID))
	w.Arg("path=" + w.Path("R/of-group"))
	if err := plantWithMode(w, "R/of-group", 0o640); err != nil {
		return err
	}
	return errors.Join(os.Chown(w.Path("R/of-group"), unusedID+1, unusedID), w.Keep(w.Path("R/of-group")))
}

// withoutABI returns why a row cannot escape on a kernel that lacks an ABI, and
// "" if the kernel has it.
func withoutABI(name string) string {
	missing := map[string]func() bool{"x32": x32Missing, "int 0x80": int80Missing}[name]
	if missing == nil || missing() {
		return "this kernel has no " + name
	}
	return ""
}

func x32Missing() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_GETPID|0x40000000, 0, 0, 0)
	return errno != 0
}

// int80Missing checks a setting of the 32-bit vDSO, which exists only with the
// ABI.
func int80Missing() bool { return !exists("/proc/sys/abi/vsyscall32") }

// aimAtMemory passes the action where the process outside keeps its data.
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

// fakeHelpers puts programs with the names of everything that a launcher might
// run first in PATH.
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

// launcherInWorkspace runs a copy of the launcher from where the command may
// write.
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
	return programs.Copy(from, to)
}

// besideSibling runs the command beside another sandbox that waits to be found.
func besideSibling(s *Session) {
	wait := s.Start(Command{Action: "wait-sibling"})
	s.Run(Command{})
	wait()
}
