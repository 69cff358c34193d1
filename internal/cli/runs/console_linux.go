package runs

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
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

// keys is the user's terminal as the input of a command. Once the command has ended
// what is typed is for the question that may follow: a read that waited on would take it.
type keys struct {
	terminal *os.File
	stopped  *os.File // readable when the command has ended
	stop     *os.File
}

func newKeys(terminal *os.File) (*keys, error) {
	stopped, stop, err := os.Pipe()
	return &keys{terminal, stopped, stop}, err
}

// Read returns os.ErrClosed once the keys are for somebody else.
func (k *keys) Read(buf []byte) (int, error) {
	both := []unix.PollFd{{Fd: int32(k.terminal.Fd()), Events: unix.POLLIN}, {Fd: int32(k.stopped.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(both, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, os.NewSyscallError("poll", err)
		}
		if both[1].Revents != 0 {
			return 0, os.ErrClosed
		}
		return k.terminal.Read(buf)
	}
}

// end leaves what is typed from now on.
func (k *keys) end() { k.stop.Close() }
