package runs

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// console is the user's terminal.
type console struct {
	file    *os.File
	resized chan os.Signal
}

func newConsole(f *os.File) *console {
	c := &console{file: f, resized: make(chan os.Signal, 1)}
	signal.Notify(c.resized, syscall.SIGWINCH)
	return c
}

func (c *console) Raw() (func(), error) {
	old, err := term.MakeRaw(int(c.file.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { term.Restore(int(c.file.Fd()), old) }, nil
}

func (c *console) Size() boundary.WindowSize {
	cols, rows, err := term.GetSize(int(c.file.Fd()))
	if err != nil {
		return boundary.WindowSize{Rows: 24, Cols: 80}
	}
	return boundary.WindowSize{Rows: uint16(rows), Cols: uint16(cols)}
}

func (c *console) Resized() <-chan os.Signal { return c.resized }

// Flush drops what was typed and not read.
func (c *console) Flush() { sys.FlushInput(c.file) }

// Suspend stops this process until the user continues it.
func (c *console) Suspend() { screen.Suspend() }
