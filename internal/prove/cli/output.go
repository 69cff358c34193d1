//go:build linux

package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

// writeTo replaces a file as a whole, or leaves it as it is. An agent may be able
// to write where reports are: what it put beside the file, or in its place, is
// neither followed nor written to.
func writeTo(path string, write func(*os.File) error) error {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// createBeside makes a new file in the directory of path, with the mode of the user's
// umask. The file did not exist before, so it cannot be a link (open(2), O_EXCL).
func createBeside(path string) (*os.File, error) {
	if err := checkReplaceable(path); err != nil {
		return nil, err
	}
	name := ".new-" + strings.ToLower(rand.Text())
	return os.OpenFile(filepath.Join(filepath.Dir(path), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// checkReplaceable returns an error if a report may not replace what is at path.
func checkReplaceable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return command.Usage(fmt.Errorf("%s is not a regular file (%s), and a report does not replace it", text.Word(path), info.Mode()), "name another file; without one, the report goes to the standard output")
	}
	return nil
}

// checkWritable returns an error if a report cannot be written to one of these files,
// before minutes are spent on making it; "" and "-" are not files.
func checkWritable(paths ...string) error {
	for _, path := range paths {
		if path == "" || path == "-" {
			continue
		}
		f, err := createBeside(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			return err
		}
	}
	return nil
}
