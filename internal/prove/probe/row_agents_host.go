//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownSettings are the user's settings of agents, with commands of this project.
func ownSettings(w *World) error {
	return errors.Join(
		w.File("H/.claude/settings.json", `{"statusLine": {"type": "command", "command": "sh `+w.Path("W/ci/line.sh")+`"}}`),
		w.File("H/.claude.json", `{"mcpServers": {"a": {"command": "`+w.Path("W/srv/it")+`"}}}`),
		w.File("H/.codex/config.toml", `notify = ["python3", "`+w.Path("W/ci/tell.py")+`"]`))
}

// pasted starts the launcher from a handler that does not terminate its list of
// flags.
func pasted(words ...string) func(*World) error {
	return func(w *World) error {
		launch, err := w.helper()
		if err != nil {
			return err
		}
		for i := range words {
			flag, value, ok := strings.Cut(words[i], "=")
			if words[i] = w.Path(words[i]); ok {
				words[i] = flag + "=" + w.Path(value)
			}
		}
		w.Under = []string{launch, "-child", "x", "unterminated", "text=" + strings.Join(words, "\n"), "--"}
		return w.File("O/wide.yaml", "version: 1\nfilesystem:\n  write: ["+w.O+", "+w.H+"]\n")
	}
}

// knownTemp plants links below /tmp, under names that the row passes to the
// action.
func knownTemp(w *World) error {
	dir := "/tmp/probe-agent-" + hexes(6)
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	w.Defer(func() error { return os.RemoveAll(dir) })
	w.Absent(dir + "/answer.md")
	w.Arg("path=" + dir + "/response.md\n" + dir + "/answer.md\n" + dir + "/sub/canary")
	return errors.Join(os.Symlink(w.Path("O/canary"), dir+"/response.md"), os.Symlink(w.Path("O/sub"), dir+"/sub"))
}

// watchedTemp makes a temporary directory for the launcher and watches what
// appears there, even briefly.
func watchedTemp(w *World) error {
	dir := w.Path("B/tmp")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
		return err
	}
	w.Env = append(w.Env, "TMPDIR="+dir)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	w.Defer(func() error { return unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		return err
	}
	w.seen = append(w.seen, made(fd))
	return nil
}

// made is an inotify descriptor of a directory in which nothing may be made.
type made int

func (m made) effects() []string {
	buf := make([]byte, 4096)
	n, err := unix.Read(int(m), buf)
	if err != nil || n < unix.SizeofInotifyEvent {
		return nil
	}
	name, _, _ := strings.Cut(string(buf[unix.SizeofInotifyEvent:n]), "\x00")
	return []string{fmt.Sprintf("in the temporary directory of everybody there came to be %q", name)}
}

func (made) received() []byte { return nil }

// runnableScripts makes the files of the project executable that should be.
func runnableScripts(w *World) error {
	for _, t := range []string{"W/scripts/lint.sh", "W/tools/server"} {
		if err := os.Chmod(w.Path(t), 0o755); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// thenOutside plays the row, and then starts the stand-in outside, as its user
// would, in every directory of the workspace with settings.
func thenOutside(s *Session) {
	s.Run(Command{Options: s.Row.Options})
	agent, err := s.World.helper()
	if err != nil {
		s.Fail(err)
		return
	}
	for _, dir := range []string{"", "packages/deep", "packages/new"} {
		if !exists(filepath.Join(s.World.W, dir)) {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
		c := exec.CommandContext(ctx, agent, "-child", "x", "agent-start", "W="+s.World.W, "O="+s.World.O, "H="+s.World.H, "dir="+dir)
		c.Env = []string{"HOME=" + s.World.H, "PATH=" + os.Getenv("PATH")}
		c.Dir = filepath.Join(s.World.W, dir)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
		c.WaitDelay = time.Second
		// Its output does not count: what it starts leaves a file outside.
		if err := c.Run(); err != nil && c.ProcessState == nil {
			s.Fail(fmt.Errorf("starting the agent outside: %w", err))
		}
		cancel()
	}
}
