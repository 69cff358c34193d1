//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// MakeOutputs makes the directories for results that are missing. The one that
// each is in was resolved, and no link is followed now.
func MakeOutputs(plan policy.Plan) error {
	if err := checkOutputs(plan); err != nil {
		return err
	}
	for _, dir := range plan.Outputs {
		parent, err := openResolved(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return fmt.Errorf("making the output %s: %w", dir, err)
		}
		if err = unix.Mkdirat(parent, filepath.Base(dir), 0o700); err == nil {
			err = openOutput(parent, filepath.Base(dir), plan)
		}
		unix.Close(parent)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("making the output %s: %w", dir, err)
		}
	}
	return nil
}

// openOutput gives a directory that was just made its mode, and as root its owner.
// Another run may have exchanged it meanwhile: anything but an empty directory of ours,
// closed to all others, is left as it is.
func openOutput(parent int, name string, plan policy.Plan) error {
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	var st, owner unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) || int(st.Uid) != os.Geteuid() || st.Mode&0o7777&^unix.S_ISGID != 0o700 {
		return errors.New("another run replaced it in the meantime")
	}
	if os.Geteuid() == 0 {
		if err := unix.Lstat(plan.Workspace, &owner); err != nil {
			return err
		}
		if err := unix.Fchown(fd, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, 0o755|st.Mode&unix.S_ISGID)
}

// ListedOutputError is a directory for results that is, or lies in, what the host
// executes or obeys by its name.
type ListedOutputError struct {
	Dir  string
	Rule Rule
}

func (e *ListedOutputError) Error() string {
	return fmt.Sprintf("the output %s lies under a protected name, %s: %s", e.Dir, e.Rule.Pattern, e.Rule.Reason)
}

// Hint names the ways out.
func (e *ListedOutputError) Hint() string {
	hint := "name another directory with --output, and copy what you have read"
	if e.Rule.Pattern == ".git" {
		return hint
	}
	return hint + "; or let the host obey what a run writes there: unprotect: [" + e.Rule.Pattern + "]"
}

// checkOutputs refuses outputs under protected names. An output may be looked at as
// a tree of its own, in which the names above it do not show.
func checkOutputs(plan policy.Plan) error {
	rules, err := RulesOf(plan)
	if err != nil {
		return err
	}
	for _, out := range plan.Outputs {
		rel, inside := strings.CutPrefix(out, plan.Workspace+"/")
		if !inside {
			rel = strings.TrimPrefix(out, "/")
		}
		at, path := rules.Look(), ""
		for name := range strings.SplitSeq(rel, "/") {
			path = filepath.Join(path, name)
			var rule *Rule
			if rule, at = at.Match(path, name, true, false); rule == nil && at.Git() {
				rule = &Rule{Pattern: ".git", Reason: "git runs hooks and programs that it names"}
			}
			if rule != nil && rule.Tier != Flag {
				return &ListedOutputError{Dir: out, Rule: *rule}
			}
		}
	}
	return nil
}
