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
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
