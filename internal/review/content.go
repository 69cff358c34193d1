//go:build linux

package review

import (
	"errors"
	"fmt"
	"os"
)

// errNoFile means that a side has no bytes to show.
var errNoFile = errors.New("it is not a regular file on that side")

// Content opens the file of a change as the run left it, or with base set as it was
// when the run began; only if that was kept, because the file in the workspace may have
// changed by now. The caller closes it.
func (s *Set) Content(c *Change, base bool) (*os.File, error) {
	root, path, typ := -1, string(c.Path), c.Type
	if s.trees != nil {
		root = s.trees.upper
	}
	if base {
		if typ = c.OldType; c.From != "" {
			path = string(c.From)
		}
		if root = -1; s.trees != nil {
			root = s.trees.base
		}
	}
	if typ != File {
		return nil, fmt.Errorf("opening %q: %w", path, errNoFile)
	}
	if root < 0 {
		return nil, fmt.Errorf("opening %q: it was not kept", path)
	}
	f, err := openFile(root, path, !base)
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", path, err)
	}
	return f, nil
}
