//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const secretOfGranted = "what stands in the file"

// grantable makes the file, which will change and is not a canary.
func grantable(w *World) error {
	if err := w.File("B/granted", strings.Repeat(".", 64)+w.Token(secretOfGranted)); err != nil {
		return err
	}
	return os.Chmod(w.Path("B/granted"), 0o600)
}

// sameBut returns how B/granted differs from a file that was only written to.
func sameBut(w *World, _ Observation) (out []string) {
	path := w.Path("B/granted")
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return []string{err.Error()}
	}
	if st.Mode != unix.S_IFREG|0o600 {
		out = append(out, fmt.Sprintf("its mode is %o", st.Mode))
	}
	if int(st.Uid) != os.Getuid() {
		out = append(out, fmt.Sprintf("it belongs to user %d", st.Uid))
	}
	if n, err := unix.Getxattr(path, "user.probe", nil); err == nil {
		out = append(out, fmt.Sprintf("it has an attribute of %d bytes", n))
	}
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), w.Token(secretOfGranted)) || len(b) > 1024 {
		out = append(out, fmt.Sprintf("it has %d bytes, without those that were there (%v)", len(b), err))
	}
	if strings.Contains(string(b), "late") {
		out = append(out, "it was written to after the approval was taken back")
	}
	return out
}

// approvedWrites has a human allow every request, and revoke it when the inside
// has used it.
func approvedWrites(s *Session) {
	if err := grantable(s.World); err != nil {
		s.Fail(err)
		return
	}
	allowedUntil(s, "ask: [outside-writes]\n")
}

// allowedUntil plays the row under a policy, allows every request for the session
// until W/used exists, revokes that and makes W/over.
func allowedUntil(s *Session, rules string) {
	w := s.World
	t, ok := s.Target.(Flagger)
	human, grants := s.Target.(Consenting)
	var play Command
	if ok && grants {
		path := w.B + "/consent.yaml"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\napprovals: {timeout: 20s}\n"+rules), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	wait := s.Start(play)
	ended := make(chan error, 1)
	go func() {
		var err error
		if grants {
			err = human.AllowingUntil(ctx, w, func() bool { return exists(w.Path("W/used")) })
		} else {
			w.appears("W/used")
		}
		_ = w.File("W/over", "")
		ended <- err
	}()
	wait()
	cancel()
	if err := <-ended; err != nil {
		s.Fail(err)
	}
}

// approvedTalk checks, with a connection to a service of the host, whether the
// service hears what is sent after the approval was revoked.
func approvedTalk(s *Session) {
	port, heard, stop, err := hearing()
	if err != nil {
		s.Fail(err)
		return
	}
	defer stop()
	s.Row.Args = []string{"port=" + port}
	allowedUntil(s, "ask: [{when: 'action == \"connect\"'}]\nnetwork: {host-ports: ["+port+"]}\n")
	first, late := false, false
	for more := true; more; {
		select {
		case said := <-heard:
			first, late = first || strings.Contains(said, "early"), late || strings.Contains(said, "late")
		case <-time.After(200 * time.Millisecond):
			more = false
		}
	}
	switch {
	case late:
		s.World.remembered = "the service heard what was said after the approval was taken back"
	case !first:
		s.Fail(errors.New("the service was never reached"))
	}
}

// hearing is a service on the host's loopback that sends what it hears to a
// channel.
func hearing() (port string, heard chan string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, nil, err
	}
	heard = make(chan string, 64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go forwardLines(c, heard)
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	return port, heard, func() { _ = l.Close() }, err
}

func forwardLines(c net.Conn, heard chan<- string) {
	defer c.Close()
	buf := make([]byte, 512)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			heard <- string(buf[:n])
			_, _ = c.Write([]byte("heard"))
		}
		if err != nil {
			return
		}
	}
}

// janitorKilled kills the children that the launcher started to look after the
// run, and nothing else, while something runs inside. Its status must not be the
// one that promises that nothing ran.
func janitorKilled(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	if !w.appears("W/beat") {
		s.Fail(errors.New("nothing ran that could be ended"))
	}
	time.Sleep(200 * time.Millisecond) // the last moment may be in no record
	killed := 0
	for _, pid := range launchersOf(w) {
		killed += killChildren(pid)
	}
	if bare := runningProbers(filepath.Base(w.B) + "/"); killed == 0 && len(bare) > 0 { // without a launcher, the command itself is killed
		_ = syscall.Kill(bare[0], syscall.SIGKILL)
		killed++
	}
	o := wait()
	s.obs = s.obs[:len(s.obs)-1] // it was killed before it could end
	switch {
	case killed == 0:
		s.Fail(errors.New("there was nothing to kill"))
	case stillBeating(w):
		w.remembered = "what was started goes on without what guards it"
	case o.Exit == 125:
		w.remembered = "the status says that nothing ran"
	}
	s.Run(Command{Action: "nothing-denied"})
}

// killChildren kills the children of a process and returns their number.
func killChildren(pid int) (n int) {
	for _, child := range childrenOf(pid) {
		if syscall.Kill(child, syscall.SIGKILL) == nil {
			n++
		}
	}
	return n
}

// childrenOf returns the children of a process.
func childrenOf(pid int) (out []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(b)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(out, child)
			}
		}
	}
	return out
}
