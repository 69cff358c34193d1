//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func terminalActions() map[string]Action {
	return map[string]Action{
		"type":          typeIn,
		"type-high":     typeHigh,
		"type-by-int80": typeByInt80,
		"take-terminal": takeTerminal,
		"console-calls": consoleCalls,
		"disciplines":   disciplines,
		"leave-modes":   leaveModes,
		"print-escapes": printEscapes,
		"own-terminal":  ownTerminal,
	}
}

// typed is what a probe types: a line for the shell that reads next.
const typed = "typed-by-a-probe\n"

// terminals returns the ways to the terminal that this process was started on.
func terminals() map[string]int {
	out := map[string]int{"standard input": 0, "standard output": 1, "standard error": 2}
	open := func(name, path string) {
		if fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err == nil {
			out[name] = fd
		}
	}
	open("/dev/tty", "/dev/tty")
	open("standard input, opened again", procFD(0))
	if name, err := os.Readlink(procFD(0)); err == nil && strings.HasPrefix(name, "/dev/") {
		open("the terminal by its name", name)
	}
	return out
}

func typeIn(p *Probe) {
	for name, fd := range terminals() {
		p.Try("type through "+name, func() error { return typeText(fd, unix.TIOCSTI) })
	}
	p.Try("open /dev/tty", func() error {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return typeText(fd, unix.TIOCSTI)
	})
}

func typeHigh(p *Probe) {
	for name, fd := range terminals() {
		for _, bit := range []uint{32, 33, 47, 63} {
			p.Try(fmt.Sprintf("type through %s with bit %d", name, bit), func() error { return typeText(fd, unix.TIOCSTI|1<<bit) })
		}
	}
}

func typeText(fd int, request uintptr) error {
	for i := range len(typed) {
		c := typed[i]
		if _, err := Raw(unix.SYS_IOCTL, uintptr(fd), request, Pointer(&c)); err != nil {
			return err
		}
	}
	return nil
}

func typeByInt80(p *Probe) {
	page, err := newLowPage()
	p.Control("memory below 4 GiB", func() error { return err })
	if err != nil {
		return
	}
	var calls []Call
	for i := range len(typed) {
		calls = append(calls, C(54, 0, unix.TIOCSTI, page.put([]byte{typed[i]})))
	}
	p.Try("type by the numbers of the 32 bit ABI", func() error { _, err := Forked80(calls); return err })
	if runtime.GOARCH == "amd64" {
		p.Try("type by the numbers of x32", func() error {
			c := byte('\n')
			_, err := Forked([]Call{C(unix.SYS_IOCTL|0x40000000, 0, unix.TIOCSTI, Pointer(&c)), C(514|0x40000000, 0, unix.TIOCSTI, Pointer(&c))})
			return err
		})
	}
}

// takeTerminal creates a session and takes the terminal for it.
func takeTerminal(p *Probe) {
	line := []byte(typed)
	for _, steal := range []uintptr{0, 1} {
		calls := []Call{C(unix.SYS_SETSID), C(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, steal)}
		for i := range line {
			calls = append(calls, C(unix.SYS_IOCTL, 0, unix.TIOCSTI, Pointer(&line[i])))
		}
		p.Try(fmt.Sprintf("setsid, TIOCSCTTY %d and type", steal), func() error { _, err := Forked(calls); return err })
	}
}

// consoleCalls are those of a Linux console and of line disciplines.
func consoleCalls(p *Probe) {
	var arg [16]byte
	for name, fd := range terminals() {
		for _, sub := range []byte{2, 3, 4, 11} { // select, paste, unblank, redirect kernel messages
			p.Try(fmt.Sprintf("TIOCLINUX %d through %s", sub, name), func() error {
				arg[0] = sub
				_, err := Raw(unix.SYS_IOCTL, uintptr(fd), 0x541c, Pointer(&arg)) // TIOCLINUX, asm-generic/ioctls.h
				return err
			})
		}
		p.Try("TIOCLINUX with a high bit through "+name, func() error {
			arg[0] = 3
			_, err := Raw(unix.SYS_IOCTL, uintptr(fd), 0x541c|1<<32, Pointer(&arg))
			return err
		})
	}
}

// disciplines asks for line disciplines that have been exploited. A kernel
// without one answers itself, which is not a denial.
func disciplines(p *Probe) {
	for _, n := range []int32{1, 3, 7, 13, 15, 21} { // SLIP, PPP, 6PACK, HDLC, Bluetooth, GSM; linux/tty.h
		for _, high := range []uintptr{0, 1 << 32} {
			p.Try(fmt.Sprintf("line discipline %d, request %#x", n, unix.TIOCSETD|high), func() error {
				_, err := Raw(unix.SYS_IOCTL, 0, unix.TIOCSETD|high, Pointer(&n))
				return kernelAnswered(err)
			})
		}
	}
}

// leaveModes changes the terminal and leaves it changed.
func leaveModes(p *Probe) {
	p.Try("change the modes, the size and the discipline", func() error {
		fd := 0
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
		t.Iflag |= unix.IUCLC
		return errors.Join(unix.IoctlSetTermios(fd, unix.TCSETS, t), unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 7, Col: 7}))
	})
}

// printEscapes prints what a terminal acts on, in one piece and in two.
func printEscapes(p *Probe) {
	for line := range strings.SplitSeq(p.Arg("hex"), "\n") {
		var b []byte
		if _, err := fmt.Sscanf(line, "%x", &b); err != nil {
			p.Control("the argument", func() error { return err })
			return
		}
		p.Try("print "+line, func() error {
			_, err := os.Stdout.Write(b)
			return err
		})
		half := len(b) / 2
		_, _ = os.Stdout.Write(b[:half])
		time.Sleep(20 * time.Millisecond)
		_, _ = os.Stdout.Write(b[half:])
		_, _ = os.Stdout.WriteString("\r\n")
	}
}

// ownTerminal is what editors and multiplexers need.
func ownTerminal(p *Probe) {
	p.Try("have a terminal", func() error { _, err := unix.IoctlGetTermios(0, unix.TCGETS); return err })
	p.Try("open it by /dev/tty", func() error { return closeOpened(unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)) })
	p.Try("know its size", func() error { _, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); return err })
	p.Try("be the foreground group", func() error {
		n, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
		if err == nil && n != unix.Getpgrp() {
			err = unix.EPERM
		}
		return err
	})
	p.Try("make a terminal of its own", func() error {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil {
			return err
		}
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		return closeOpened(unix.Open("/dev/pts/"+itoa(n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0))
	})
}
