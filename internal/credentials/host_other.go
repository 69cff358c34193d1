//go:build !unix

package credentials

import (
	"context"
	"errors"
	"os/exec"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// ErrUnsupported means that this system lacks the file owners and locks that
// the broker needs.
var ErrUnsupported = errors.New("credentials are not supported on this system")

func readOwned(string, bool, int64) ([]byte, string, error) { return nil, "", ErrUnsupported }
func lockFile(string) (func(), error)                       { return nil, ErrUnsupported }
func lockInode(context.Context, string) (func(), error)     { return nil, ErrUnsupported }
func newLoginFile(string) (*sys.Replacement, error)         { return nil, ErrUnsupported }
func isolate(*exec.Cmd) func()                              { return func() {} }
