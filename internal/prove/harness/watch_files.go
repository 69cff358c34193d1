//go:build linux

package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/prove/report"
)

// WatchFiles are where a watch keeps what the next one needs.
type WatchFiles struct {
	Baseline func(name string) string // file of a target's baseline; the user may commit it
	State    string                   // directory for what was tested last; created if missing
}

// tested is what is known of a program.
type tested struct {
	Path  string `json:"path"`
	Print string `json:"print"` // fingerprint of what was tested last
}

// stateMost limits the size of a file of what was tested, in bytes.
const stateMost = 1 << 16

func (f WatchFiles) state(w Watched) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, filepath.Base(w.Name))
	sum := sha256.Sum256([]byte(w.Name + "\x00" + w.Path)) // two programs may have one name
	return filepath.Join(f.State, "watch-"+name[:min(len(name), 40)]+"-"+hex.EncodeToString(sum[:6])+".json")
}

// readTested returns the fingerprint of what was tested last; "" for none. An invalid
// file counts as none: the program is tested again.
func (f WatchFiles) readTested(w Watched) (string, error) {
	content, err := os.ReadFile(f.state(w))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading what was tested last: %w", err)
	}
	var t tested
	if len(content) > stateMost || json.Unmarshal(content, &t) != nil || t.Path != w.Path {
		return "", nil
	}
	return t.Print, nil
}

// saveTested saves the fingerprint of what was tested.
func (f WatchFiles) saveTested(w Watched, print string) error {
	content, err := json.Marshal(tested{w.Path, print})
	if err == nil {
		err = os.MkdirAll(f.State, 0o700)
	}
	if err == nil {
		err = sys.ReplaceFile(f.state(w), append(content, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("saving what was tested: %w", err)
	}
	return nil
}

// baseline reads the baseline of a target and reports whether there is one.
func (f WatchFiles) baseline(w Watched) (report.Run, bool, error) {
	if w.Untested {
		return report.Run{}, false, nil
	}
	path := f.Baseline(w.Name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return report.Run{}, false, nil
	}
	if err != nil {
		return report.Run{}, false, fmt.Errorf("reading the baseline of %s: %w", w.Name, err)
	}
	defer file.Close()
	run, err := report.ReadBaseline(file)
	if err != nil {
		return report.Run{}, false, fmt.Errorf("%s: %w", path, err)
	}
	return run, true, nil
}

// save makes a run the baseline.
func (f WatchFiles) save(w Watched, run report.Run) error {
	var b bytes.Buffer
	path := f.Baseline(w.Name)
	err := report.WriteBaseline(&b, run)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = sys.ReplaceFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("saving the baseline of %s: %w", w.Name, err)
	}
	return nil
}
