package hooks

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Place is where the hooks of an agent are kept.
type Place struct {
	Agent   string
	Home    string              // of the user
	Project string              // directory of a project; "" for the user's own settings
	Dir     string              // directory of the agent's settings, instead of the default; "" for that
	Hook    string              // the program, absolute and without links
	State   string              // directory of Holdfast's state, for the lock
	Getenv  func(string) string // of the user
}

// Status describes the hooks of an agent.
type Status struct {
	Agent   string `json:"agent"`
	File    string `json:"file"`
	State   State  `json:"state"`
	Program string `json:"program,omitempty"` // that the hooks execute
	Note    string `json:"note,omitempty"`    // what to do about it
}

// UnknownError means that no agent has that name.
type UnknownError struct{ Agent string }

func (e *UnknownError) Error() string { return fmt.Sprintf("there are no hooks for %q", e.Agent) }

// Hint lists the known agents.
func (e *UnknownError) Hint() string { return "there are hooks for: " + strings.Join(Agents(), ", ") }

// FileError means that a settings file was not changed, and why.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return "leaving " + e.File + " as it is: " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Hint is the command to inspect the file.
func (e *FileError) Hint() string { return "look at it: ls -ld " + text.Word(e.File) }

// file returns the path of the settings.
func (p Place) file() (agent, string, error) {
	a, known := agents()[p.Agent]
	if !known {
		return agent{}, "", &UnknownError{p.Agent}
	}
	switch {
	case p.Dir != "":
		return a, filepath.Join(p.Dir, a.file), nil
	case p.Project != "":
		return a, filepath.Join(p.Project, a.project), nil
	}
	if moved := p.Getenv(a.moved); a.moved != "" && filepath.IsAbs(moved) {
		return a, filepath.Join(moved, a.below, a.file), nil
	}
	if !filepath.IsAbs(p.Home) {
		return agent{}, "", errors.New("the home directory of the user is not known")
	}
	return a, filepath.Join(p.Home, a.dir, a.file), nil
}

// Inspect reports what is installed. It changes nothing.
func (p Place) Inspect() (Status, error) {
	a, path, err := p.file()
	if err != nil {
		return Status{}, err
	}
	st := Status{Agent: a.name, File: path, State: Absent}
	data, _, err := read(path)
	if err != nil {
		return st, &FileError{path, err}
	}
	if st.State, st.Program, err = a.inspect(data, p.Hook); err != nil {
		return st, describe(path, err)
	}
	switch st.State {
	case Changed:
		st.Note = "it was changed: 'holdfast hooks install " + a.name + "' writes it again"
	case Outdated:
		st.Note = "it executes " + st.Program + ": 'holdfast hooks install " + a.name + "' brings it up to date"
	case Installed:
		if a.name == "codex" && !trusted(path) {
			st.State, st.Note = Untrusted, "Codex executes no hook that its user has not looked at: start codex, type /hooks and trust them"
		}
	}
	return st, nil
}

// trusted reports whether Codex has recorded, beside its hooks, that its user
// trusts each of ours. Only Codex knows whether that applies to the current
// hooks.
func trusted(path string) bool {
	data, _, err := read(filepath.Join(filepath.Dir(path), "config.toml"))
	if err != nil {
		return false
	}
	for _, hookEvent := range []string{"pre_tool_use", "post_tool_use"} {
		if !bytes.Contains(data, []byte(path+":"+hookEvent+":")) {
			return false
		}
	}
	return bytes.Contains(data, []byte("trusted_hash"))
}

// Install adds the hooks to the settings; Remove removes them. Other settings are
// kept. Both are idempotent and report whether anything changed.
func (p Place) Install() (changed bool, st Status, err error) { return p.change(true) }

// Remove is the reverse of Install.
func (p Place) Remove() (changed bool, st Status, err error) { return p.change(false) }

func (p Place) change(install bool) (bool, Status, error) {
	a, path, err := p.file()
	if err != nil {
		return false, Status{}, err
	}
	unlock, err := p.lock()
	if err != nil {
		return false, Status{}, err
	}
	defer unlock()
	changed, err := a.rewrite(path, p.Hook, install)
	if err != nil {
		return false, Status{}, &FileError{path, err}
	}
	st, err := p.Inspect()
	return changed, st, err
}

// rewrite changes one file.
func (a agent) rewrite(path, hook string, install bool) (bool, error) {
	have, was, err := read(path)
	if err != nil {
		return false, err
	}
	var want []byte
	switch {
	case a.ownFile == nil:
		want, err = a.editSettings(have, hook, install)
	case install:
		_, _, err = a.inspect(have, hook)
		want = a.ownFile(hook)
	default:
		_, _, err = a.inspect(have, hook)
	}
	switch {
	case err != nil:
		return false, err
	case bytes.Equal(want, have) && (was != nil || len(want) == 0):
		return false, nil
	case len(want) == 0 && a.ownFile != nil:
		return true, os.Remove(path)
	}
	return true, replace(path, want, was)
}

// read reads a settings file that belongs to this user; nil if there is none.
func read(path string) ([]byte, fs.FileInfo, error) {
	for _, p := range []string{filepath.Dir(path), path} {
		st, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if err := own(p, st, p != path); err != nil {
			return nil, nil, err
		}
	}
	f, err := openPlain(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := own(path, st, false); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(data) > maxSettings {
		err = fmt.Errorf("it is longer than %d MiB", maxSettings>>20)
	}
	return data, st, err
}

// own refuses anything but a plain file or directory of this user.
func own(path string, st fs.FileInfo, dir bool) error {
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link, and its target may belong to another user: name the target's own directory with --dir", path)
	case dir && !st.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case !dir && !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return ownedByUs(path, st, dir)
}

// replace rewrites a file so that a reader sees either the whole old or the whole
// new one, unless it changed since it was read.
func replace(path string, content []byte, was fs.FileInfo) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if was != nil {
		mode = was.Mode().Perm()
	}
	id := make([]byte, 6)
	rand.Read(id)
	tmp := filepath.Join(dir, "."+filepath.Base(path)+".holdfast-"+hex.EncodeToString(id))
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = checkUnchanged(path, was)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkUnchanged refuses to overwrite another program's changes.
func checkUnchanged(path string, was fs.FileInfo) error {
	now, err := os.Lstat(path)
	switch {
	case was == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case was == nil || !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()):
		return errors.New("it was written in the meantime: try again")
	}
	return nil
}
