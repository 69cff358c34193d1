//go:build linux

package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Victim is a process outside, of the same user, with a token in its memory and
// one in its environment. It counts the SIGWINCH it gets.
type Victim struct {
	PID int

	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	once  sync.Once
	found []string
}

// Victim starts one.
func (w *World) Victim() (*Victim, error) {
	// Not the copy in W, which the inside may rewrite.
	path := w.B + "/victim"
	if !exists(path) {
		if err := copyProgram(w.origin, path); err != nil {
			return nil, err
		}
	}
	v := &Victim{cmd: exec.Command(path, "-victim")}
	// It ends when we die, because its input does.
	v.cmd.Env = []string{"VICTIM_TOKEN=" + w.Token("the victim's environment")}
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if v.in, err = v.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := v.cmd.Start(); err != nil {
		return nil, err
	}
	w.Defer(v.end)
	v.PID, v.out = v.cmd.Process.Pid, bufio.NewReader(out)
	if _, err := io.WriteString(v.in, w.Token("the victim's memory")+"\n"); err != nil {
		return nil, err
	}
	if line, err := v.out.ReadString('\n'); err != nil || line != "ready\n" {
		return nil, fmt.Errorf("victim did not start: %q %v", line, err)
	}
	w.seen = append(w.seen, v)
	return v, nil
}

func (v *Victim) effects() []string {
	v.once.Do(func() {
		v.in.Close()
		line, err := v.out.ReadString('\n')
		switch {
		case err != nil:
			v.found = []string{"the process outside was ended or broken"}
		case strings.TrimSpace(line) != "0":
			v.found = []string{"the process outside got signals: " + strings.TrimSpace(line)}
		}
	})
	return v.found
}

func (v *Victim) received() []byte { return nil }

func (v *Victim) end() error {
	_ = v.cmd.Process.Kill()
	err := v.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
