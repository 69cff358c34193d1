//go:build linux

package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// markLimit is how much of the marks is read, in bytes.
const markLimit = 1 << 20

// read takes the marks from the place where only the tripwire has reason to
// write.
func (s Stage) read(res *Result, dir string) error {
	b, err := readRegular(filepath.Join(dir, inside.MarkFile), markLimit)
	if err != nil {
		return fmt.Errorf("reading the marks: %w", err)
	}
	controlled := false
	at := int64(0)
	for line := range bytes.Lines(b) {
		at += int64(len(line))
		token, plant, ok := strings.Cut(strings.TrimSpace(string(line)), " ")
		step := res.stepAt(at)
		switch {
		case !ok || token != s.Token:
			res.Changed = append(res.Changed, fmt.Sprintf("a mark without the token was left by %s", step))
		case plant == inside.StageControl && step == inside.StageControl:
			controlled = true
		default:
			res.Marks = append(res.Marks, Mark{Plant: plant, Step: step})
		}
	}
	if !controlled {
		return errors.New("the tripwire does not work on the stage")
	}
	return nil
}

// stepAt returns the step at whose end the marks had reached size at.
func (r Result) stepAt(at int64) string {
	for _, p := range r.Steps {
		if at <= p.Marks {
			return p.Name
		}
	}
	return "something that was left running"
}

// differences lists what a replay changed in its copy of an outside directory.
func differences(before, after string) []string {
	var out []string
	_ = filepath.WalkDir(after, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(after, p)
		if err != nil || rel == "." || rel == tripName || rel == inside.MarkFile {
			return nil
		}
		old, err := os.Lstat(filepath.Join(before, rel))
		switch {
		case err != nil:
			out = append(out, rel+" was made outside the workspace")
		case old.Mode().Type() != d.Type():
			out = append(out, rel+" outside the workspace became something else")
		case d.Type().IsRegular():
			a, errA := readRegular(filepath.Join(before, rel), 64<<20)
			b, errB := readRegular(p, 64<<20)
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				out = append(out, rel+" outside the workspace was changed")
			}
		}
		return nil
	})
	return append(out, gone(before, after)...)
}

func gone(before, after string) []string {
	var out []string
	_ = filepath.WalkDir(before, func(p string, _ fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(before, p)
		if _, there := os.Lstat(filepath.Join(after, rel)); err == nil && there != nil {
			out = append(out, rel+" outside the workspace was removed")
		}
		return nil
	})
	return out
}

// readRegular reads a file that a replayed program may have replaced: it refuses
// links and FIFOs, and more than limit bytes.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", filepath.Base(path)))
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", filepath.Base(path), limit)
	}
	return b, err
}
