//go:build linux

package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"holdfast.dev/holdfast/internal/policy"
)

// scratchDir is the private directory of a run on disk, in the session's.
const scratchDir = "scratch"

// makeScratch makes the scratch directory. For root it belongs to the owner of the
// workspace, because the command appears to the file system as that user.
func (s *Session) makeScratch(plan policy.Plan) (string, error) {
	if !plan.Scratch {
		return "", nil
	}
	dir := filepath.Join(s.dir, scratchDir)
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) { // of a launch before
		return dir, nil
	}
	if err == nil {
		err = likeWorkspace(dir, plan)
	}
	if err != nil {
		return "", fmt.Errorf("making the scratch directory: %w", err)
	}
	return dir, nil
}

func likeWorkspace(dir string, plan policy.Plan) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var st syscall.Stat_t
	if err := syscall.Stat(plan.Workspace, &st); err != nil {
		return err
	}
	return os.Lchown(dir, int(st.Uid), int(st.Gid))
}
