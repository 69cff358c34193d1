//go:build linux

package inside

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// SystemPath is where a human's programs are looked up: programs that belong to
// one user of this machine are not in the view.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// outputKept limits the reported output of a step, in bytes.
const outputKept = 2048

func (s *Stage) marks() int64 {
	info, err := os.Stat(filepath.Join(s.Outside, MarkFile))
	if err != nil {
		return 0
	}
	return info.Size()
}

// play plays the steps, one after the other. Processes that a step leaves running
// are ended before the next.
func (s *Stage) play(report func(Played)) {
	until := time.Now().Add(s.Limit)
	control := Step{Name: StageControl, Argv: s.Control, Dir: s.World, Limit: 5 * time.Second}
	for _, step := range append([]Step{control}, s.Steps...) {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		if step.Limit == 0 || step.Limit > left {
			step.Limit = min(left, 10*time.Second)
		}
		begun := time.Now()
		p := s.playStep(step)
		endAll()
		p.Name, p.Took, p.Marks = step.Name, time.Since(begun), s.marks()
		report(p)
	}
}

// endAll kills everything in the namespace except its first process, which is
// this one.
func endAll() {
	for unix.Kill(-1, unix.SIGKILL) == nil {
		var status unix.WaitStatus
		if _, err := unix.Wait4(-1, &status, 0, nil); err != nil {
			return
		}
	}
}

func (s *Stage) environment(extra []string) []string {
	return append([]string{"HOME=" + s.Home, "PATH=" + SystemPath, "LANG=C.UTF-8", "TERM=xterm", "USER=human", "LOGNAME=human", "SHELL=/bin/sh"}, extra...)
}

// find looks up a program as the stage sees it.
func find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for dir := range strings.SplitSeq(SystemPath, ":") {
		if path := filepath.Join(dir, name); executable(path) {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir() && st.Mode()&0o111 != 0
}

func (s *Stage) playStep(step Step) Played {
	if len(step.Argv) == 0 {
		return Played{Error: "no program"}
	}
	program, err := find(step.Argv[0])
	if err != nil {
		return Played{Error: step.Argv[0] + ": " + err.Error()}
	}
	cmd := &exec.Cmd{Path: program, Args: step.Argv, Dir: step.Dir, Env: s.environment(step.Env), SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if s.Lower {
		id := uint32(s.Player)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	}
	read, err := s.connect(cmd, step)
	if err != nil {
		return Played{Error: err.Error()}
	}
	return wait(cmd, step.Limit, read)
}

// connect gives the program its streams: a terminal, or files. The returned
// function reads the output.
func (s *Stage) connect(cmd *exec.Cmd, step Step) (func() string, error) {
	if step.Terminal {
		return terminal(cmd, step.Input)
	}
	// A file instead of a pipe, so that leftover processes need not be waited for.
	fd, err := unix.MemfdCreate("out", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	out := os.NewFile(uintptr(fd), "out")
	cmd.Stdout, cmd.Stderr = out, out
	if step.Input != "" {
		fd, err := unix.MemfdCreate("in", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, err
		}
		in := os.NewFile(uintptr(fd), "in")
		if _, err := in.WriteAt([]byte(step.Input), 0); err != nil {
			return nil, err
		}
		cmd.Stdin = in
	}
	return func() string {
		defer out.Close()
		b := make([]byte, outputKept)
		n, _ := out.ReadAt(b, 0)
		return string(b[:n])
	}, nil
}

// terminal starts the program on a terminal and types.
func terminal(cmd *exec.Cmd, input string) (func() string, error) {
	master, err := os.OpenFile("/dev/pts/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	fd := int(master.Fd()) // blocking from here on, which is fine for a reader in its own goroutine
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		return nil, err
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setctty = true
	seen := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(io.LimitReader(master, outputKept))
		go func() { _, _ = io.Copy(io.Discard, master) }()
		seen <- string(b)
	}()
	_, err = io.WriteString(master, input)
	return func() string {
		slave.Close()
		select {
		case s := <-seen:
			return s
		case <-time.After(100 * time.Millisecond):
			return ""
		}
	}, err
}

func wait(cmd *exec.Cmd, limit time.Duration, read func() string) Played {
	if err := cmd.Start(); err != nil {
		return Played{Error: err.Error()}
	}
	timer := time.AfterFunc(limit, func() { _ = unix.Kill(-1, unix.SIGKILL) })
	err := cmd.Wait()
	timer.Stop()
	p := Played{Output: read()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.Error = err.Error()
		return p
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if p.Exit = status.ExitStatus(); status.Signaled() {
		p.Exit = 128 + int(status.Signal())
	}
	return p
}

// OnSystemPath reports whether a program, by name or absolute path, is where a
// stage would find it.
func OnSystemPath(name string) bool {
	path, err := find(name)
	return err == nil && executable(path)
}
