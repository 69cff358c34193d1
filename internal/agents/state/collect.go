//go:build linux

package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// Changes are what one run of an agent changed in its copies. They are kept in a
// directory outside every view until the user applies or drops them.
type Changes struct {
	Dir       string        `json:"-"`
	ID        string        `json:"id"` // of the session
	Preset    string        `json:"preset"`
	Workspace string        `json:"workspace"`
	At        time.Time     `json:"at"`
	Files     []ChangedFile `json:"files"`
	LeftOut   []string      `json:"left_out,omitempty"` // what was not collected, and why
}

// ChangedFile is one file that an agent changed, added or removed.
type ChangedFile struct {
	Place   string      `json:"place"`            // on the host, where the change would be applied
	Rest    string      `json:"rest,omitempty"`   // the part of Place below the copied directory: no link there is followed
	Change  string      `json:"change"`           // added, changed or removed
	Sum     string      `json:"sum,omitempty"`    // SHA-256 of the host's file when it was copied, hex; "" if there was none
	Mode    uint32      `json:"mode"`             // permission bits
	Keys    []KeyChange `json:"keys,omitempty"`   // of JSON: the values that changed
	Old     string      `json:"old,omitempty"`    // file in Dir: as given to the agent
	New     string      `json:"new,omitempty"`    // file in Dir: as at the end
	Masked  bool        `json:"masked,omitempty"` // given without its secrets, or in part: it cannot be put back as a whole
	content []byte
	old     []byte
}

// changesFile is the file that describes one directory of changes.
const changesFile = "changes.json"

// State returns the directory of Holdfast's state in which the changes wait.
func (c *Changes) State() string { return filepath.Dir(filepath.Dir(filepath.Dir(c.Dir))) }

// Collect copies what the agent changed from the private home to the state
// directory; nil for nothing. All processes inside have ended.
func (a *Agent) Collect(state, session, workspace string) (*Changes, error) {
	if a.inside == nil {
		return nil, nil
	}
	c := &Changes{ID: session, Preset: a.plan.Preset, Workspace: workspace, At: time.Now().UTC().Truncate(time.Second)}
	err := sys.AsTask(a.uid, a.gid, func() error {
		budget := copyBudget{files: maxCopyFiles, bytes: maxCopyBytes}
		for _, row := range a.copies {
			if row.unreadable {
				continue
			}
			if err := a.changesOf(row, c, &budget); err != nil {
				c.LeftOut = append(c.LeftOut, fmt.Sprintf("%s: %v", row.Path, err))
			}
		}
		return nil
	})
	a.release()
	for _, row := range a.copies {
		if kerr := row.memory.keep(); kerr != nil {
			a.warnings = append(a.warnings, kerr.Error())
		}
	}
	if err != nil || len(c.Files)+len(c.LeftOut) == 0 {
		return nil, err
	}
	if err := c.save(filepath.Join(state, "changes", c.Preset)); err != nil {
		return nil, fmt.Errorf("saving the agent's changes: %w", err)
	}
	return c, nil
}

// changesOf compares one row with its current state inside.
func (a *Agent) changesOf(row *copyRow, c *Changes, budget *copyBudget) error {
	rel, err := filepath.Rel(a.home, row.Path)
	if err != nil {
		return err
	}
	now := map[string][]byte{}
	modes := map[string]uint32{}
	err = a.walk(rel, "", 0, budget, func(rest string, data []byte, mode uint32) { now[rest], modes[rest] = data, mode }, &c.LeftOut)
	if err != nil {
		return err
	}
	for _, f := range row.files {
		data, is := now[f.rest]
		delete(now, f.rest)
		if one := row.change(f, data, is, modes[f.rest]); one != nil {
			c.Files = append(c.Files, *one)
		}
	}
	for _, rest := range slices.Sorted(maps.Keys(now)) {
		if top, _, _ := strings.Cut(rest, "/"); slices.Contains(row.Except, top) {
			continue
		}
		if one := row.change(copiedFile{rest: rest}, now[rest], true, modes[rest]); one != nil {
			c.Files = append(c.Files, *one)
		}
	}
	return nil
}

// change describes the change of one file; nil if there is none.
func (c *copyRow) change(f copiedFile, data []byte, is bool, mode uint32) *ChangedFile {
	if c.told != nil {
		data = bytes.Replace(data, c.told, nil, 1)
		if is && len(data) == 0 && f.sum == "" {
			return nil
		}
	}
	one := &ChangedFile{Place: filepath.Join(c.Place, f.rest), Rest: f.rest, Change: "changed", Sum: f.sum, Mode: mode, Masked: f.masked, content: data, old: f.content}
	switch {
	case is && bytes.Equal(data, f.content) && f.content != nil:
		return nil
	case !is && f.sum == "": // added by us; the host has none
		return nil
	case !is:
		one.Change = "removed"
		return one
	case f.sum == "":
		one.Change = "added"
	}
	if !c.filtered() && len(c.Notable)+len(c.Quiet) == 0 {
		return one
	}
	before, err := parseJSON(f.content)
	if err != nil {
		before = map[string]any{}
	}
	after, err := parseJSON(data)
	if err != nil {
		return one // no longer JSON: to be reviewed as text
	}
	if c.memory != nil {
		c.memory.now = after
	}
	one.Keys = slices.DeleteFunc(differences(before, after, c.Notable, c.Quiet), c.memory.notes)
	if len(one.Keys) == 0 {
		return nil
	}
	return one
}

// walk reads a file, or all files of a directory, in the private home. Its path
// may contain neither links nor other mounts.
func (a *Agent) walk(path, rest string, depth int, budget *copyBudget, found func(string, []byte, uint32), out *[]string) error {
	fd, err := unix.Openat2(int(a.inside.Fd()), path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	switch err {
	case nil:
	case unix.ENOENT:
		return nil
	case unix.ELOOP, unix.EXDEV, unix.EACCES, unix.ENXIO, unix.ENOTDIR:
		*out = append(*out, fmt.Sprintf("~/%s is a link, a device, or cannot be read", path))
		return nil
	default:
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return err
	case st.IsDir() && depth < maxCopyDepth:
		names, err := f.Readdirnames(maxCopyFiles + 1)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		slices.Sort(names)
		for _, name := range names {
			if err := a.walk(filepath.Join(path, name), filepath.Join(rest, name), depth+1, budget, found, out); err != nil {
				return err
			}
		}
		return nil
	case !st.Mode().IsRegular() || st.Size() > maxCopyFile:
		*out = append(*out, fmt.Sprintf("~/%s is not a regular file of at most %d MiB", path, maxCopyFile>>20))
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCopyFile))
	if err != nil {
		return err
	}
	if err := budget.reserve(len(data)); err != nil {
		return err
	}
	found(rest, data, uint32(st.Mode().Perm()))
	return nil
}

// save writes the changes into a new directory below dir, unless the same changes
// are already pending. File names come from inside: none of them is used.
func (c *Changes) save(dir string) error {
	for _, old := range pendingIn(dir) {
		if old.sameChanges(c) {
			c.Dir, c.ID = old.Dir, old.ID
			return nil
		}
	}
	c.Dir = filepath.Join(dir, c.ID)
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	write := func(i int, kind string, data []byte) (string, error) {
		name := strconv.Itoa(i) + "." + kind
		return name, os.WriteFile(filepath.Join(c.Dir, name), data, 0o600)
	}
	for i := range c.Files {
		f := &c.Files[i]
		var err error
		if f.old != nil {
			if f.Old, err = write(i, "old", f.old); err != nil {
				return err
			}
		}
		if f.Change != "removed" {
			if f.New, err = write(i, "new", f.content); err != nil {
				return err
			}
		}
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, changesFile), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return c.forget(dir)
}

// maxPending is the maximum number of pending runs of one agent; the oldest are
// removed.
const maxPending = 50

func (c *Changes) forget(dir string) error {
	all := pendingIn(dir)
	for _, old := range all[min(maxPending, len(all)):] {
		if err := os.RemoveAll(old.Dir); err != nil {
			return err
		}
	}
	return nil
}

// sameChanges reports whether two runs left the same changes to review.
func (c *Changes) sameChanges(other *Changes) bool {
	if len(c.Files) != len(other.Files) || !slices.Equal(c.LeftOut, other.LeftOut) {
		return false
	}
	for i, f := range c.Files {
		o := other.Files[i]
		if f.Place != o.Place || f.Change != o.Change || len(f.Keys) != len(o.Keys) {
			return false
		}
		mine, err1 := json.Marshal(f.Keys)
		theirs, err2 := json.Marshal(o.Keys)
		if err1 != nil || err2 != nil || !bytes.Equal(mine, theirs) {
			return false
		}
		if len(f.Keys) > 0 || f.Change == "removed" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(c.Dir, f.New))
		if err != nil || !bytes.Equal(data, o.content) {
			return false
		}
	}
	return true
}
