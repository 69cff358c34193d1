//go:build linux

package task

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
	"slices"
	"strings"
)

// Pending lists the changes of an agent that wait, the newest first; of all
// agents for the name "".
func Pending(state, preset string) ([]*Changes, error) {
	if preset != "" {
		return pendingIn(filepath.Join(state, "changes", preset)), nil
	}
	dirs, err := filepath.Glob(filepath.Join(state, "changes", "*"))
	if err != nil {
		return nil, fmt.Errorf("looking for changes of agents: %w", err)
	}
	var all []*Changes
	for _, dir := range dirs {
		all = append(all, pendingIn(dir)...)
	}
	return all, nil
}

// pendingIn reads the directories of changes below dir. One that is not whole
// belongs to a run that died while it wrote, and says nothing.
func pendingIn(dir string) (all []*Changes) {
	files, err := filepath.Glob(filepath.Join(dir, "*", changesFile))
	if err != nil {
		return nil // the directory is ours, and has no pattern in its name but by the user's own choice
	}
	slices.Sort(files)
	for _, file := range slices.Backward(files) {
		data, err := os.ReadFile(file)
		c := &Changes{Dir: filepath.Dir(file)}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if err == nil && dec.Decode(c) == nil && c.ID == filepath.Base(c.Dir) {
			all = append(all, c)
		}
	}
	return all
}

// Text returns a file of changes as it was handed in and as it was at the end;
// nil where there was none.
func (c *Changes) Text(f ChangedFile) (before, after []byte, err error) {
	for _, one := range []struct {
		name string
		into *[]byte
	}{{f.Old, &before}, {f.New, &after}} {
		if one.name == "" {
			continue
		}
		if *one.into, err = os.ReadFile(filepath.Join(c.Dir, filepath.Base(one.name))); err != nil {
			return nil, nil, fmt.Errorf("reading what the agent changed: %w", err)
		}
	}
	return before, after, nil
}

// Drop forgets the changes.
func (c *Changes) Drop() error {
	if err := os.RemoveAll(c.Dir); err != nil {
		return fmt.Errorf("dropping what the agent changed: %w", err)
	}
	return nil
}

// ApplyError says that a change does not fit the host's file.
type ApplyError struct {
	Place, Why string
	New        string // file with the agent's text; "" where the agent removed it
}

func (e *ApplyError) Error() string { return e.Place + " is left as it is: " + e.Why }

// Hint is where the agent's text is.
func (e *ApplyError) Hint() string {
	if e.New == "" {
		return "the agent removed its copy; if you want it gone, remove it by hand"
	}
	return "compare it with " + e.New + ", and change it by hand"
}

// Apply makes one change on the host. The file's other values stay: of JSON only
// the values that the agent changed are put in; any other file must be as it was
// when the agent got its copy.
func (c *Changes) Apply(f ChangedFile) error {
	_, text, err := c.Text(f)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		e := &ApplyError{Place: f.Place, Why: fmt.Sprintf(format, args...)}
		if f.New != "" {
			e.New = filepath.Join(c.Dir, f.New)
		}
		return e
	}
	place, err := filepath.EvalSymlinks(f.Place) // a user may keep it elsewhere
	if errors.Is(err, fs.ErrNotExist) {
		place, err = f.Place, nil
	}
	if err != nil {
		return refuse("%v", err)
	}
	host, err := os.ReadFile(place)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return refuse("%v", err)
	}
	if len(f.Keys) > 0 {
		if text, err = withKeys(host, f.Keys); err != nil {
			return refuse("%v", err)
		}
		return replace(place, host, text, f.Mode)
	}
	sum := sha256.Sum256(host)
	switch {
	case f.Masked:
		return refuse("the agent's copy had not all of it: secrets and what is no business of the agent's were left out")
	case missing != (f.Sum == "") || !missing && hex.EncodeToString(sum[:]) != f.Sum:
		return refuse("it was changed here since the agent got its copy")
	case f.Change == "removed":
		if err := os.Remove(place); err != nil {
			return refuse("%v", err)
		}
		return nil
	}
	return replace(place, host, text, f.Mode)
}

// withKeys puts values into the host's JSON.
func withKeys(host []byte, keys []KeyChange) ([]byte, error) {
	object := map[string]any{}
	if len(bytes.TrimSpace(host)) > 0 {
		var err error
		if object, err = parseJSON(host); err != nil {
			return nil, err
		}
		if len(withoutComments(host)) != len(host) {
			return nil, errors.New("it has comments, which would be lost")
		}
	}
	for _, k := range keys {
		if len(k.Key) == 0 {
			return nil, errors.New("a change has no key")
		}
		value, err := json.Marshal(k.Value)
		_, isObject := k.Value.(map[string]any)
		switch {
		case descend(object, k.Key) != nil && !isObject:
			return nil, fmt.Errorf("%s holds more here than the agent saw", strings.Join(k.Key, "."))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", strings.Join(k.Key, "."), err)
		case bytes.Contains(value, []byte("[redacted:")):
			return nil, fmt.Errorf("%s has the mark of a secret that the agent was not given", strings.Join(k.Key, "."))
		case k.Removed:
			delete(descend(object, k.Key[:len(k.Key)-1]), k.Key[len(k.Key)-1])
		default:
			set(object, k.Key, k.Value)
		}
	}
	return writeJSON(object)
}

// replace writes a file as a whole, unless it is not what it was any more: a session
// of the user's may write it at the same time. Nobody but the user may execute, read
// or write it who could not before.
func replace(path string, was, data []byte, mode uint32) error {
	perm := fs.FileMode(mode&0o100) | 0o600
	if st, err := os.Lstat(path); err == nil {
		perm = st.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".holdfast-*")
	if err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(perm), tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	now, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("applying a change: %w", err)
	}
	if !bytes.Equal(now, was) {
		return fmt.Errorf("applying a change: %s was written meanwhile: try again", path)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	return nil
}
