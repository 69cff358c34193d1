package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// exposedDir holds a file for each tree that a run could write to, in the state
// directory. Its name is the hash of the tree's, its content the name.
const exposedDir = "exposed"

func (h Host) exposed(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(h.State, exposedDir, hex.EncodeToString(sum[:16]))
}

// exposedAbove is the tree above path that an earlier run could write to; "" for
// none.
func (h Host) exposedAbove(path string) string {
	if h.State == "" {
		return ""
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(h.exposed(dir)); err == nil {
			return dir
		}
	}
	return ""
}

// MaxExposed is how many trees are remembered. Beyond that those that are gone are
// forgotten, then those that no run could write to for longest.
const MaxExposed = 4096

// RecordExposed notes for later runs the trees that one can write to. state is the
// directory of Host.State.
func RecordExposed(state string, trees []string) error {
	h := Host{State: state}
	if err := os.MkdirAll(filepath.Join(state, exposedDir), 0o700); err != nil {
		return fmt.Errorf("recording what the run can write to: %w", err)
	}
	added := false
	for _, tree := range trees {
		now := time.Now()
		if known, err := os.Lstat(h.exposed(tree)); err == nil {
			if now.Sub(known.ModTime()) > 24*time.Hour { // of use to PruneExposed, and no write for each run
				err = os.Chtimes(h.exposed(tree), now, now)
			}
			if err == nil {
				continue
			}
		}
		if err := os.WriteFile(h.exposed(tree), []byte(tree+"\n"), 0o600); err != nil {
			return fmt.Errorf("recording what the run can write to: %w", err)
		}
		added = true
	}
	if !added {
		return nil
	}
	all, err := os.ReadDir(filepath.Join(state, exposedDir))
	if err == nil && len(all) > MaxExposed {
		err = PruneExposed(state, MaxExposed)
	}
	return err
}

// PruneExposed forgets the trees that are gone, and of the others all but those
// that a run could write to last.
func PruneExposed(state string, most int) error {
	dir := filepath.Join(state, exposedDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("forgetting old trees: %w", err)
	}
	var remaining []fs.FileInfo
	forget := func(name string) {
		if rerr := os.Remove(filepath.Join(dir, name)); err == nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = rerr
		}
	}
	for _, e := range entries {
		tree, rerr := os.ReadFile(filepath.Join(dir, e.Name()))
		info, ierr := e.Info()
		if rerr != nil || ierr != nil {
			continue // another run forgot it
		}
		if _, terr := os.Lstat(strings.TrimSuffix(string(tree), "\n")); errors.Is(terr, fs.ErrNotExist) && len(tree) > 0 {
			forget(e.Name())
			continue
		}
		remaining = append(remaining, info)
	}
	slices.SortFunc(remaining, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, old := range remaining[min(most, len(remaining)):] {
		forget(old.Name())
	}
	if err != nil {
		return fmt.Errorf("forgetting old trees: %w", err)
	}
	return nil
}
