package sys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file of a mode so that a reader, and a machine that loses power,
// find the old one or the new one whole. On an error the old one is there, and nothing
// beside it.
func ReplaceFile(path string, content []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	return (&Replacement{path, f, mode}).Commit(content)
}

// Replacement is a file that will take the place of another one: what can fail without
// its content fails before there is any.
type Replacement struct {
	path string
	f    *os.File // of mode 0600 until Commit
	mode fs.FileMode
}

// NewReplacement makes an empty file beside path, under a name that it alone has: what
// one that was killed has left there is removed. Its caller holds a lock.
func NewReplacement(path string, mode fs.FileMode) (*Replacement, error) {
	name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".holdfast")
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Replacement{path, f, mode}, nil
}

// Reserve takes room for a content of so many bytes, so that a full disk is found now.
func (r *Replacement) Reserve(size int) error {
	_, err := r.f.WriteAt(make([]byte, size), 0)
	return errors.Join(err, r.f.Sync())
}

// SetGroup gives the file a group. Where the user may not do that, no group gets rights.
func (r *Replacement) SetGroup(gid int) {
	if r.f.Chown(-1, gid) != nil {
		r.mode &^= 0o070
	}
}

// Commit writes the content and puts the file in its place. On an error the old file is
// there, and nothing beside it. It is called once, and not after Discard.
func (r *Replacement) Commit(content []byte) error {
	_, err := r.f.WriteAt(content, 0)
	err = errors.Join(err, r.f.Truncate(int64(len(content))), r.f.Chmod(r.mode), r.f.Sync(), r.f.Close())
	if err == nil {
		err = os.Rename(r.f.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(r.f.Name()))
	}
	return nil
}

// Discard removes the file. After Commit it does nothing.
func (r *Replacement) Discard() {
	if r.f.Close() == nil { // else Commit has closed it
		os.Remove(r.f.Name())
	}
}
