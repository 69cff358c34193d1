//go:build linux

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/harness"
)

// home returns the home directory of this account: HOME, or the entry in
// passwd(5).
func (a *app) home() (string, error) {
	if home := a.Lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Clean(home), nil
	}
	u, err := user.Current()
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return "", command.Usage(errors.New("there is no home directory"), "set HOME to an absolute path")
	}
	return u.HomeDir, nil
}

// stateDir returns the directory for agents installed for trials, and for what a
// watch tested last: Holdfast's state directory (XDG_STATE_HOME). Programs in it
// are executed, so no other user may be able to change it.
func (a *app) stateDir() (string, error) {
	base := a.Lookup("XDG_STATE_HOME")
	if !filepath.IsAbs(base) { // the specification says to ignore a relative one
		home, err := a.home()
		if err != nil {
			return "", err
		}
		base = filepath.Join(home, ".local/state")
	}
	state := filepath.Join(base, "holdfast")
	for dir := state; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := harness.Guarded(dir); err != nil {
			return "", fmt.Errorf("the state directory %s is not safe: %w", text.Word(state), err)
		}
		return state, nil
	}
}
