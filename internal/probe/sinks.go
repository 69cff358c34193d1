//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Listener is a service outside that nothing inside may reach. It answers
// with a token and counts who came.
type Listener struct {
	Addr  string // as net.Dial takes it
	token string
	close func() error

	mu    sync.Mutex
	calls int
	heard bytes.Buffer
}

// Listen opens a service of network unix, unix with an address that begins
// with @ (abstract), unixgram, tcp or udp. addr is a template for unix paths;
// for tcp and udp use 127.0.0.1:0 or [::1]:0.
func (w *World) Listen(network, addr string) (*Listener, error) {
	l := &Listener{token: w.Token(network + " listener " + addr)}
	var err error
	switch network {
	case "unix", "tcp":
		err = l.stream(network, w.Path(addr))
	case "unixgram", "udp":
		err = l.packets(network, w.Path(addr))
	default:
		err = fmt.Errorf("no listener for network %q", network)
	}
	if err != nil {
		return nil, err
	}
	w.seen = append(w.seen, l)
	w.Defer(l.close)
	return l, nil
}

func (l *Listener) stream(network, addr string) error {
	ln, err := net.Listen(network, addr)
	if err != nil {
		return err
	}
	l.Addr, l.close = ln.Addr().String(), ln.Close
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.hear(nil)
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, l.token+"\n")
				b, _ := io.ReadAll(io.LimitReader(c, 64<<10))
				l.listen(b)
			}()
		}
	}()
	return nil
}

func (l *Listener) packets(network, addr string) error {
	pc, err := net.ListenPacket(network, addr)
	if err != nil {
		return err
	}
	l.Addr, l.close = pc.LocalAddr().String(), pc.Close
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			l.hear(buf[:n])
			if from != nil && from.String() != "" {
				_, _ = pc.WriteTo([]byte(l.token), from)
			}
		}
	}()
	return nil
}

func (l *Listener) hear(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.heard.Write(b)
}

func (l *Listener) listen(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard.Write(b)
}

func (l *Listener) effects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the listener %s was reached %d times", l.Addr, l.calls)}
}

func (l *Listener) received() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.heard.Bytes())
}

// Victim is a process outside, of the same user, with a token in its memory
// and one in its environment, that counts the SIGWINCH it gets.
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
	bin, err := os.ReadFile(w.prober)
	if err != nil {
		return nil, err
	}
	// Not the copy in W: that one may be rewritten from inside.
	path := w.B + "/victim"
	if err := os.WriteFile(path, bin, 0o755); err != nil {
		return nil, err
	}
	v := &Victim{cmd: exec.Command(path, "-victim")}
	// It ends by itself when we die, because its input does.
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
