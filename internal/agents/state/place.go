//go:build linux

package state

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Real is where a change would be applied: its place, with the links to the
// copied path resolved, because users keep their settings elsewhere. A link below
// that is an error: the agent did not see a link there, and would choose its
// target.
func (f ChangedFile) Real() (string, error) {
	top := f.Place
	if f.Rest != "" {
		top = strings.TrimSuffix(f.Place, "/"+f.Rest)
	}
	real, rest := "", f.Rest
	for {
		var err error
		if real, err = filepath.EvalSymlinks(top); err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || top == "/" {
			return "", err
		}
		if _, lerr := os.Lstat(top); lerr == nil {
			return "", fmt.Errorf("%s is a dangling link", top)
		}
		top, rest = filepath.Dir(top), filepath.Join(filepath.Base(top), rest)
	}
	at := real
	for name := range strings.SplitSeq(rest, "/") {
		at = filepath.Join(at, name)
		if st, err := os.Lstat(at); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			return "", fmt.Errorf("%s is a link here, and was no link where the agent worked", at)
		}
	}
	return at, nil
}

// hostPlace is a name in an open directory of the host.
type hostPlace struct {
	path string
	dir  int // -1 if the directory does not exist
	name string
}

// openPlace opens the directory of a path without following links, and creates it
// if wanted.
func openPlace(path string, wanted bool) (*hostPlace, error) {
	p := &hostPlace{path: path, dir: -1, name: filepath.Base(path)}
	if wanted {
		if err := makeDirs(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	if err == nil {
		p.dir = fd
	}
	return p, nil
}

func (p *hostPlace) close() {
	if p.dir >= 0 {
		unix.Close(p.dir)
	}
}

// openFile opens the file itself, which must be a regular one.
func (p *hostPlace) openFile() (*os.File, error) {
	if p.dir < 0 {
		return nil, fs.ErrNotExist
	}
	fd, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: p.path, Err: err}
	}
	f := os.NewFile(uintptr(fd), p.path)
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", p.path))
	}
	return f, nil
}

func (p *hostPlace) read() (data []byte, missing bool, err error) {
	f, err := p.openFile()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	data, err = io.ReadAll(f)
	return data, false, err
}

func (p *hostPlace) remove() error {
	if err := unix.Unlinkat(p.dir, p.name, 0); err != nil {
		return &os.PathError{Op: "remove", Path: p.path, Err: err}
	}
	return nil
}

// mode returns the permission bits of a file: those that it has, or for a new one
// only the owner's, executable if the agent's file is.
func (p *hostPlace) mode(mode uint32) fs.FileMode {
	if f, err := p.openFile(); err == nil {
		defer f.Close()
		if st, err := f.Stat(); err == nil {
			return st.Mode().Perm()
		}
	}
	return fs.FileMode(mode&0o100) | 0o600
}

// replace rewrites a whole file, unless it has changed meanwhile: a session of
// the user may write it at the same time. No other user gains permission to
// execute, read or write it.
func (p *hostPlace) replace(was, data []byte, mode uint32) error {
	perm := p.mode(mode)
	temp := ".holdfast-" + rand.Text()
	fd, err := unix.Openat(p.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("applying a change: %w", &os.PathError{Op: "create", Path: filepath.Dir(p.path), Err: err})
	}
	defer unix.Unlinkat(p.dir, temp, 0)
	f := os.NewFile(uintptr(fd), temp)
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	now, _, err := p.read()
	if err != nil {
		return fmt.Errorf("applying a change: %w", err)
	}
	if !bytes.Equal(now, was) {
		return fmt.Errorf("applying a change: %s was written in the meantime: try again", p.path)
	}
	if err := unix.Renameat(p.dir, temp, p.dir, p.name); err != nil {
		return fmt.Errorf("applying a change: %w", &os.PathError{Op: "rename", Path: p.path, Err: err})
	}
	return nil
}
