package cli

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/boundary"
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

// Suspend stops this process; the shell that started it notices, and continues
// it on "fg". The signal is delivered to the process, and this thread may run on
// before it stops: only SIGCONT says that it was stopped and is running again.
func (c *console) Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-continued
	}
}
