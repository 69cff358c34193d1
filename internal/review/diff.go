//go:build linux

package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

const (
	// MaxText is the size in bytes up to which the two sides of a file are
	// compared line by line. Larger files are summarised.
	MaxText = 1 << 20
	// MaxSum is the size in bytes up to which a file is hashed to be shown.
	MaxSum = 256 << 20
)

// Line is one line of a hunk.
type Line struct {
	Op    byte   // ' ' in both, '-' in the old side, '+' in the new
	Text  []byte // without the newline at its end; a CR before that stays
	NoEOL bool   // the file ends here, without a newline
}

// Hunk is a run of lines that differ, with three lines of context.
type Hunk struct {
	ID       string // of what it replaces by what, and where: a decision holds for this and no other
	OldStart int    // the first line, from 1; 0 in an empty file
	OldLines int
	NewStart int
	NewLines int
	Lines    []Line
	Decision Decision
}

// Side is one state of a path.
type Side struct {
	Type   Type   `json:"type"`
	Mode   uint32 `json:"mode"` // 07777
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // of a regular file's content, hex; "" of what is larger than MaxSum
	Target string `json:"target,omitempty"` // of a link
	Known  bool   `json:"known"`            // false: it is lost what it was

	data []byte // of a regular file of MaxText at most
	full bool   // data is all of it
	mark string // fileDigest of it
}

// Diff is what is different between two states of a path.
type Diff struct {
	Old, New Side
	Binary   bool   // a side holds NUL or is no UTF-8: no hunks
	Huge     bool   // a side is larger than MaxText: no hunks
	Hunks    []Hunk // of regular files; of a new or deleted one a single hunk
}

// Diff compares the two sides of c. It reads them again and may be called from several
// goroutines, for different changes. A decision about c is then bound to what it has
// read. A history has no lines.
func (s *Set) Diff(c *Change) (*Diff, error) {
	if s.trees == nil || s.trees.upper < 0 {
		return nil, errors.New("the run wrote into the workspace: there is nothing to compare with")
	}
	if c.Kind == History {
		return &Diff{}, nil
	}
	from, to, err := s.sides(c)
	if err != nil {
		return nil, fmt.Errorf("comparing %q: %w", c.Path, err)
	}
	d := DiffSides(from, to)
	if c.digest, err = s.digestWith(c, to.mark); err != nil {
		return nil, fmt.Errorf("comparing %q: %w", c.Path, err)
	}
	if c.hunks != nil && c.hunks.digest == c.digest {
		for i := range d.Hunks {
			d.Hunks[i].Decision = c.hunks.by[d.Hunks[i].ID]
		}
	}
	return d, nil
}

// sides reads both sides of a change.
func (s *Set) sides(c *Change) (from, to Side, err error) {
	if c.OldType != None {
		name := string(c.Path)
		if c.Kind == Renamed {
			name = string(c.From)
		}
		if from, err = s.trees.oldSide(name); err != nil {
			return from, to, err
		}
	} else {
		from.Known = true
	}
	if c.Type == None {
		return from, Side{Known: true}, nil
	}
	to, err = readSide(s.trees.upper, string(c.Path), true)
	return from, to, err
}

// oldSide reads a path as it was.
func (t *trees) oldSide(path string) (Side, error) {
	if t.gone[path] {
		return Side{Known: true}, nil
	}
	if t.base >= 0 {
		side, err := readSide(t.base, path, false)
		if err == nil && side.Type != None && side.Type != Dir {
			side.Mode = t.sideMode(path, side.Mode)
			return side, nil
		}
	}
	return readSide(t.tree, path, false)
}

func (t *trees) sideMode(path string, mode uint32) uint32 {
	if m := t.modes[path]; m != 0 {
		return m & 0o7777
	}
	return mode
}

// readSide reads what is at path now. Nothing is a side too.
func readSide(root int, path string, own bool) (side Side, err error) {
	side.Known = true
	dir, name := cut(path)
	d, err := workspace.OpenBeneath(root, dir, unix.O_PATH|unix.O_DIRECTORY)
	if absent(err) {
		return side, nil
	}
	if err != nil {
		return side, err
	}
	defer unix.Close(d)
	return readAt(d, name, own)
}

func readAt(d int, name string, own bool) (side Side, err error) {
	side.Known = true
	var st, after unix.Statx_t
	err = status(d, name, &st)
	if absent(err) {
		return side, nil
	}
	if err != nil {
		return side, err
	}
	side.Type, side.Mode, side.Size = typeOf(st.Mode), uint32(st.Mode)&0o7777, int64(st.Size)
	switch side.Type {
	case Link:
		side.Target, err = readLink(d, name)
		return side, err
	case File:
	default:
		side.Size = 0
		return side, nil
	}
	side.mark = fileDigest(&st)
	if side.Size > MaxSum {
		return side, nil
	}
	f, err := openFile(d, name, own)
	if err != nil {
		return side, err
	}
	defer f.Close()
	if side.Size <= MaxText {
		err = side.read(f)
	} else {
		h := sha256.New()
		_, err = io.Copy(h, io.LimitReader(f, MaxSum))
		side.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	if err != nil {
		return side, err
	}
	if err := status(d, name, &after); err != nil || fileDigest(&after) != side.mark {
		return side, errors.Join(err, ErrChanged)
	}
	return side, nil
}

// read takes the content of a small file.
func (s *Side) read(f *os.File) error {
	b := make([]byte, s.Size+1)
	n, err := io.ReadFull(f, b)
	if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && err != nil {
		return err
	}
	if int64(n) != s.Size {
		return ErrChanged
	}
	s.data, s.full = b[:n:n], true
	sum := sha256.Sum256(s.data)
	s.SHA256 = hex.EncodeToString(sum[:])
	return nil
}

// DiffSides compares two sides, such as those of a conflict.
func DiffSides(from, to Side) *Diff {
	d := &Diff{Old: from, New: to}
	for _, side := range []Side{from, to} {
		switch {
		case side.Type != File:
		case !side.full:
			d.Huge = true
		case !text(side.data, false):
			d.Binary = true
		}
	}
	if !d.Huge && !d.Binary {
		d.Hunks = hunks(from.text(), to.text())
	}
	return d
}

// text is what git compares: of a link, where it leads.
func (s Side) text() []byte {
	if s.Type == Link {
		return []byte(s.Target)
	}
	return s.data
}

// Header returns the lines that git writes above the hunks, without newlines:
// modes, the rename, and for what has no lines a summary. Names are quoted as
// git does where they hold more than plain characters.
func (s *Set) Header(c *Change, d *Diff) []string {
	old, now := string(c.Path), string(c.Path)
	if c.Kind == Renamed {
		old = string(c.From)
	}
	lines := []string{"diff --git " + quote("a/"+old) + " " + quote("b/"+now)}
	switch {
	case c.Kind == History:
		return lines
	case c.Kind == Added:
		lines = append(lines, fmt.Sprintf("new file mode %06o", gitMode(d.New)))
	case c.Kind == Deleted:
		lines = append(lines, fmt.Sprintf("deleted file mode %06o", gitMode(d.Old)))
	case gitMode(d.Old) != gitMode(d.New):
		lines = append(lines, fmt.Sprintf("old mode %06o", gitMode(d.Old)), fmt.Sprintf("new mode %06o", gitMode(d.New)))
	}
	if c.Kind == Renamed {
		lines = append(lines, "similarity index 100%", "rename from "+quote(old), "rename to "+quote(now))
	}
	if d.Binary || d.Huge {
		what := "Binary files differ"
		if d.Huge {
			what = "Large files differ"
		}
		lines = append(lines, what, "old "+d.Old.summary(), "new "+d.New.summary())
	}
	if len(d.Hunks) > 0 {
		from, to := quote("a/"+old), quote("b/"+now)
		if d.Old.Type == None {
			from = "/dev/null"
		}
		if d.New.Type == None {
			to = "/dev/null"
		}
		lines = append(lines, "--- "+from, "+++ "+to)
	}
	return lines
}

func (s Side) summary() string {
	if s.Type != File {
		return s.Type.String()
	}
	sum := s.SHA256
	if sum == "" {
		sum = "too large to be read"
	} else {
		sum = "sha256 " + sum
	}
	return strconv.FormatInt(s.Size, 10) + " bytes, " + sum
}

// gitMode is the mode with the type in front, as git writes it.
func gitMode(s Side) uint32 {
	switch s.Type {
	case Link:
		return 0o120000
	case Dir:
		return 0o040000 | s.Mode
	case File:
		return 0o100000 | s.Mode
	}
	return s.Mode
}

// quote quotes a name where git would.
func quote(name string) string {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return strconv.QuoteToASCII(name)
		}
	}
	return name
}
