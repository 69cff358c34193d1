//go:build !unix

package cli

import (
	"errors"
	"os"

	"holdfast.dev/holdfast/internal/sandbox"
)

// console is the user's terminal; on this system no backend makes use of it.
type console struct{}

func newConsole(*os.File) *console { return &console{} }

func (*console) Raw() (func(), error)      { return nil, errors.New("this system has no raw mode") }
func (*console) Size() sandbox.WindowSize  { return sandbox.WindowSize{Rows: 24, Cols: 80} }
func (*console) Resized() <-chan os.Signal { return nil }
func (*console) Flush()                    {}
func (*console) Suspend()                  {}
