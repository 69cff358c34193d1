//go:build linux

package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Pending lists the pending changes of an agent, the newest first; the name ""
// means all agents.
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

// pendingIn reads the directories of changes below dir. An incomplete one belongs
// to a run that died while writing it, and is skipped.
func pendingIn(dir string) (all []*Changes) {
	files, err := filepath.Glob(filepath.Join(dir, "*", changesFile))
	if err != nil {
		return nil // only a pattern that the user put in the directory's name can cause this
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

// Text returns the contents of a changed file at the start and at the end of the
// run; nil if it did not exist.
func (c *Changes) Text(f ChangedFile) (before, after []byte, err error) {
	for _, one := range []struct {
		name string
		into *[]byte
	}{{f.Old, &before}, {f.New, &after}} {
		if one.name == "" {
			continue
		}
		if *one.into, err = os.ReadFile(filepath.Join(c.Dir, filepath.Base(one.name))); err != nil {
			return nil, nil, fmt.Errorf("reading the agent's changes: %w", err)
		}
	}
	return before, after, nil
}

// Digest identifies everything that applying the changes would do: their places
// with links resolved as of now, values, texts and modes.
func Digest(all []*Changes) (string, error) {
	sum := sha256.New()
	out := json.NewEncoder(sum)
	for _, c := range all {
		if err := out.Encode([]string{c.ID, c.Preset, c.Workspace}); err != nil {
			return "", fmt.Errorf("identifying the waiting changes: %w", err)
		}
		for _, f := range c.Files {
			before, after, err := c.Text(f)
			if err != nil {
				return "", err
			}
			real, err := f.Real()
			why := fmt.Sprint(err)
			if err := out.Encode([]any{f, real, why, before, after}); err != nil {
				return "", fmt.Errorf("identifying the waiting changes: %w", err)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// Drop removes the changes.
func (c *Changes) Drop() error {
	if err := os.RemoveAll(c.Dir); err != nil {
		return fmt.Errorf("dropping the agent's changes: %w", err)
	}
	return nil
}

// ApplyError means that a change does not fit the host's file.
type ApplyError struct {
	Place, Why string
	New        string // file with the agent's text; "" if the agent removed it
}

func (e *ApplyError) Error() string { return e.Place + " is left as it is: " + e.Why }

// Hint says where the agent's text is.
func (e *ApplyError) Hint() string {
	if e.New == "" {
		return "the agent removed its copy; if you want it gone, remove it by hand"
	}
	return "compare it with " + e.New + ", and change it by hand"
}

// Apply makes one change on the host. In JSON only the values that the agent
// changed are replaced, if they are still what the agent was given; all others
// are kept. Any other file must be unchanged since the agent got its copy.
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
	real, err := f.Real()
	if err != nil {
		return refuse("%v", err)
	}
	at, err := openPlace(real, f.Change != "removed")
	if err != nil {
		return refuse("%v", err)
	}
	defer at.close()
	host, missing, err := at.read()
	if err != nil {
		return refuse("%v", err)
	}
	if len(f.Keys) > 0 {
		if text, err = withKeys(host, f.Keys); err != nil {
			return refuse("%v", err)
		}
		return at.replace(host, text, f.Mode)
	}
	sum := sha256.Sum256(host)
	switch {
	case f.Masked:
		return refuse("the agent's copy was not complete: secrets and what does not concern the agent were left out")
	case missing != (f.Sum == "") || !missing && hex.EncodeToString(sum[:]) != f.Sum:
		return refuse("it was changed here since the agent got its copy")
	case f.Change == "removed":
		if err := at.remove(); err != nil {
			return refuse("%v", err)
		}
		return nil
	}
	return at.replace(host, text, f.Mode)
}

// withKeys replaces values in the host's JSON. If one of them is not what the
// agent was given, the file is not changed: the value may contain more.
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
		if !keepsText(host, object) {
			return nil, errors.New("it has text that is not Unicode (bytes that are not UTF-8, or half of a surrogate pair), which would be changed")
		}
	}
	for _, k := range keys {
		if err := k.apply(object); err != nil {
			return nil, err
		}
	}
	return writeJSON(object)
}

// apply sets or removes one value in an object.
func (k KeyChange) apply(object map[string]any) error {
	if len(k.Key) == 0 {
		return errors.New("a change has no key")
	}
	name := strings.Join(k.Key, ".")
	value, err := json.Marshal(k.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if bytes.Contains(value, []byte("[redacted:")) {
		return fmt.Errorf("%s has the mask of a secret that the agent was not given", name)
	}
	last := k.Key[len(k.Key)-1]
	for i, part := range k.Key[:len(k.Key)-1] {
		inner, ok := object[part].(map[string]any)
		if !ok && hasKey(object, part) {
			return fmt.Errorf("%s is no longer an object here", strings.Join(k.Key[:i+1], "."))
		}
		if !ok {
			if k.Removed {
				return nil // already removed
			}
			inner = map[string]any{}
			object[part] = inner
		}
		object = inner
	}
	now, is := object[last]
	switch {
	case k.Removed && !is, !k.Removed && is && reflect.DeepEqual(now, k.Value):
		return nil // already done
	case is != k.Had || is && !reflect.DeepEqual(now, k.Was):
		return fmt.Errorf("%s is not what the agent was given: it holds more here, or was changed since", name)
	case k.Removed:
		delete(object, last)
	default:
		object[last] = k.Value
	}
	return nil
}
