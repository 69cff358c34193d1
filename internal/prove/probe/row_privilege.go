//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const classPrivilege = "priv.escalation"

// somebody is a user and a group that nobody on the host is.
const somebody = 12345

func privilegeRows() []Row {
	return append(privilegeGained(), privilegeLeft()...)
}

func privilegeGained() []Row {
	return []Row{
		{ID: "PRV-001", Class: classPrivilege, Core: true, Kind: Sandbox, Promise: "P7",
			Title: "a set-user-id program makes the command somebody else",
			Refs:  []string{"execve(2)", "PR_SET_NO_NEW_PRIVS(2const)"}, Needs: []string{"root"},
			Setup: setIDHelpers, Options: Options{Read: []string{"R"}},
			Action: "run-set-id", Args: []string{"path=W/helper\nR/helper", fmt.Sprintf("owner=%d", somebody)}},
		{ID: "PRV-001b", Class: classPrivilege, Kind: Sandbox, Promise: "P7",
			Title: "a program with capabilities of its own gives them to the command",
			Refs:  []string{"capabilities(7)"}, Needs: []string{"root"},
			Setup: capableHelper, Options: Options{Read: []string{"R"}},
			Action: "run-set-id", Args: []string{"path=R/helper", fmt.Sprintf("owner=%d", somebody)}},
		{ID: "PRV-002", Class: classPrivilege, Kind: Sandbox, Promise: "P7",
			Title: "su, sudo and their like make the command root without a password",
			Refs:  []string{"sudo(8)"}, BareUser: "a password is asked for",
			Action: "become"},
		{ID: "PRV-003", Class: classPrivilege, Kind: Sandbox, Promise: "P7",
			Title:    "a program that sets the user or the group is made for others to run",
			Refs:     []string{"chmod(2)", "fchmodat2(2)"},
			Harmless: "the mode may be taken without the bits that set an id",
			Accept:   append(ended(Denials), "ENOTSUP"),
			Oracle:   setIDFiles,
			Action:   "make-set-id"},
		{ID: "PRV-004", Class: classPrivilege, Kind: Sandbox, Promise: "P7",
			Title: "the kernel is asked for other users, groups and capabilities",
			Refs:  []string{"setresuid(2)", "capset(2)"}, BareUser: asRoot,
			Accept: append([]string{"EINVAL"}, Denials...),
			Action: "change-ids"},
	}
}

// setIDHelpers puts a program that belongs to somebody into view.
func setIDHelpers(w *World) error {
	for _, t := range []string{"W/helper", "R/helper"} {
		path := w.Path(t)
		if err := copyProgram(w.prober, path); err != nil {
			return err
		}
		if err := os.Chown(path, somebody, somebody); err != nil {
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
	// Version 2, effective, CAP_NET_RAW: one that containers have as well.
	caps := []byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(path, "security.capability", caps, 0); err != nil {
		return fmt.Errorf("%w: file capabilities: %v", ErrMissing, err)
	}
	return nil
}

// setIDFiles looks for programs in the workspace that would be somebody.
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

func privilegeLeft() []Row {
	return []Row{
		{ID: "PRV-005", Class: classPrivilege, Kind: Host, Promise: "P2",
			Title: "the launcher is started by root, and the command is root on files outside",
			Refs:  []string{"user_namespaces(7)"}, Needs: []string{"root"},
			Setup: func(w *World) error {
				return errors.Join(w.File("R/of-root", ""), os.Chmod(w.Path("R/of-root"), 0o600), plantWithMode(w, "O/of-root", 0o600))
			},
			Accept:  append([]string{"EINVAL"}, Denials...), // of chown, for an id that is not mapped
			Options: Options{Read: []string{"R"}},
			Action:  "write-as-owner", Args: []string{"write=R/of-root\nO/of-root", "read=O/of-root\n/etc/shadow\n/root/.ssh"}},
		{ID: "PRV-005b", Class: classPrivilege, Kind: Control, Promise: "P2",
			Title:  "what the command makes belongs to who owns the workspace",
			Refs:   []string{"mount_setattr(2)"},
			Oracle: sameOwner,
			Action: "create", Args: []string{"path=W/made/file"}},
		{ID: "PRV-006", Class: classPrivilege, Kind: Host, Promise: "P4",
			Title: "supplementary groups of the launcher are kept, and open what belongs to them",
			Refs:  []string{"credentials(7)"}, Needs: []string{"root"},
			Setup: func(w *World) error {
				if !onPath("setpriv") {
					return fmt.Errorf("%w: setpriv", ErrMissing)
				}
				w.Under = []string{"setpriv", "--groups", fmt.Sprint(somebody), "--"}
				w.Arg(fmt.Sprintf("group=%d", somebody))
				w.Arg("path=" + w.Path("R/of-group"))
				if err := plantWithMode(w, "R/of-group", 0o640); err != nil {
					return err
				}
				return errors.Join(os.Chown(w.Path("R/of-group"), somebody+1, somebody), w.Keep(w.Path("R/of-group")))
			},
			Options: Options{Read: []string{"R"}},
			Action:  "groups"},
		{ID: "PRV-008", Class: classPrivilege, Kind: Sandbox, Promise: "P2",
			Title: "what every program of the host loads at its start is opened for writing",
			Refs:  []string{"ld.so(8)"}, BareUser: asRoot,
			Accept: append([]string{"ENOTSUP", "EISDIR"}, Denials...),
			Action: "preload"},
	}
}

// plantWithMode plants a file that not everybody may read.
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
