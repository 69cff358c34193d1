//go:build linux

package probe

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal runs cmd in a new session with a new terminal. The output of the
// terminal is its standard output.
func onTerminal(cmd *exec.Cmd, w *World) Observation {
	master, slave, err := openTerminal()
	if err != nil {
		return Observation{Err: err}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setpgid = false // not for a session leader, which has a group already
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	var out cappedBuffer
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(&out, master) // ends with EIO when the last slave is closed
		close(done)
	}()
	excess, err := runWithin(cmd, w)
	slave.Close()
	select {
	case <-done:
	case <-time.After(2 * time.Second): // something inside still holds the terminal
	}
	master.Close()
	<-done
	o := observe(cmd, err, &out, &cappedBuffer{})
	o.Excess, o.Terminal = excess, true
	return o
}

func openTerminal() (master, slave *os.File, err error) {
	// Non-blocking, so that Close interrupts a Read.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("opening a terminal: %w", err)
	}
	return master, slave, nil
}
