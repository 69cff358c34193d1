//go:build !linux

package policy

import (
	"errors"
	"os"
	"path/filepath"
)

var errNeedsLinux = errors.New("holdfast needs Linux to look at paths")

func locate(path string) (located, error) {
	return located{}, &os.PathError{Op: "open", Path: path, Err: errNeedsLinux}
}

func steps(path string) (links []string, real string) { return nil, filepath.Clean(path) }

func readPolicy(path string, _ int, _ bool) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: path, Err: errNeedsLinux}
}
