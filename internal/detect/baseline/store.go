package baseline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// maxFile is the length limit of a baseline's file: this package writes no longer one.
const maxFile = 4 << 20

// File is where the baseline of a workspace is, below the directory of state.
func File(state, workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(state, "baselines", hex.EncodeToString(sum[:16])+".json")
}

// storedBaseline is a baseline in its file.
type storedBaseline struct {
	Version   int                 `json:"version"`
	Workspace string              `json:"workspace"` // absolute
	Runs      []Run               `json:"runs"`
	Things    map[string][]holder `json:"things"` // by the name of the kind
}

// holder is a thing and the runs that involved it, by their index.
type holder struct {
	Name string `json:"name"`
	Runs []int  `json:"runs"`
}

const version = 1

// ReadFile reads the baseline in a file. Without the file it is empty. An error
// names the file.
func ReadFile(file string) (*Baseline, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &Baseline{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	b, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline %s: %w", file, err)
	}
	return b, nil
}

func parse(text []byte) (*Baseline, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	var s storedBaseline
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if s.Version != version {
		return nil, fmt.Errorf("it has version %d, this program knows %d", s.Version, version)
	}
	b := &Baseline{Workspace: s.Workspace, Runs: s.Runs}
	if len(b.Runs) > MaxRuns {
		return nil, fmt.Errorf("it has %d runs, more than the %d that are kept", len(b.Runs), MaxRuns)
	}
	for name, list := range s.Things {
		k, known := KindOf(name)
		if !known {
			return nil, fmt.Errorf("%q is not a kind of thing", name)
		}
		b.things[k] = make(map[string]uint64, len(list))
		for _, h := range list {
			var runs uint64
			for _, r := range h.Runs {
				if r < 0 || r >= len(b.Runs) {
					return nil, fmt.Errorf("%q belongs to a run that it does not list", h.Name)
				}
				runs |= 1 << r
			}
			if runs == 0 {
				return nil, fmt.Errorf("%q belongs to no run", h.Name)
			}
			b.things[k][h.Name] = runs
		}
	}
	if n := b.Len(); n > MaxThings {
		return nil, fmt.Errorf("it has %d things, more than the %d that are kept", n, MaxThings)
	}
	return b, nil
}

func (b *Baseline) encode() ([]byte, error) {
	s := storedBaseline{Version: version, Workspace: b.Workspace, Runs: b.Runs, Things: map[string][]holder{}}
	for k, names := range b.things {
		for _, name := range slices.Sorted(maps.Keys(names)) {
			h := holder{Name: name}
			for runs := names[name]; runs != 0; runs &= runs - 1 {
				h.Runs = append(h.Runs, bits.TrailingZeros64(runs))
			}
			s.Things[kindNames[k]] = append(s.Things[kindNames[k]], h)
		}
	}
	return json.Marshal(s)
}

// Write writes the baseline, so that a reader sees the whole old or the whole
// new one. Only the user can read it. One without runs is removed.
func (b *Baseline) Write(file string) error {
	if len(b.Runs) == 0 {
		return Remove(file)
	}
	text, err := b.encode()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = sys.ReplaceFile(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	return nil
}

// Remove removes the baseline in a file, even one that cannot be read.
func Remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the baseline: %w", err)
	}
	return nil
}
