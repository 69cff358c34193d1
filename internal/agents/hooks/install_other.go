//go:build !unix

package hooks

import (
	"errors"
	"io/fs"
	"os"
)

func openPlain(path string) (*os.File, error) { return os.Open(path) }

func ownedByUs(string, fs.FileInfo, bool) error { return nil }

// lock requires a system with file locks.
func (p Place) lock() (unlock func(), err error) {
	return nil, errors.New("settings of agents cannot be edited on this system")
}
