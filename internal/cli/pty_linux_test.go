package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// patience is how long a screen may take to show what is waited for. It is
// only used up where something is broken.
const patience = 30 * time.Second

// screen is a pseudo-terminal with a program on it, in a workspace of its own.
type screen struct {
	t      *testing.T
	ws     string // the workspace, where the program started
	master *os.File
	cmd    *exec.Cmd
	gone   chan struct{} // closed when the program was waited for

	mu   sync.Mutex
	all  bytes.Buffer // all that was shown
	seen int          // how much of it was waited for
}

// onScreen starts a program on a terminal of 24 rows and 80 columns; the
// directory of holdfast comes first in its PATH.
func onScreen(t *testing.T, argv ...string) *screen {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.TTY, nil)
	root := t.TempDir()
	home, ws := filepath.Join(root, "home"), filepath.Join(root, "ws")
	for _, dir := range []string{home, ws} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := &screen{t: t, ws: ws, gone: make(chan struct{})}
	line := s.open()
	if argv[0] == "holdfast" {
		argv[0] = testenv.Binary(t)
	}
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Dir = ws
	s.cmd.Env = append(testenv.HomeEnv(home), "PATH="+binDir(t)+":"+systemPath, "TERM=xterm", "LANG=C.UTF-8", "PS1=outer> ", "PWD="+ws)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = line, line, line
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line.Close()
	go s.collect()
	go func() {
		s.cmd.Wait() // its status is read from ProcessState
		close(s.gone)
	}()
	t.Cleanup(s.close)
	return s
}

// onShell starts an interactive bash, as a user has one.
func onShell(t *testing.T) *screen {
	t.Helper()
	testenv.Need(t, testenv.Bash, nil)
	s := onScreen(t, "bash", "--norc", "--noprofile", "--noediting", "-i")
	s.wait(`outer> `)
	return s
}

// open makes the terminal (pty(7)) and returns the side of the program.
func (s *screen) open() *os.File {
	s.t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		s.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		s.t.Fatal(err)
	}
	s.resize(24, 80)
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return line
}

func (s *screen) resize(rows, cols uint16) {
	s.t.Helper()
	s.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	})
}

// control runs f on the terminal without taking it from the poller.
func (s *screen) control(f func(fd int) error) {
	s.t.Helper()
	raw, err := s.master.SyscallConn()
	if err == nil {
		if cerr := raw.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
			err = cerr
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// modes are the settings of the terminal, as text to compare.
func (s *screen) modes() string {
	s.t.Helper()
	var text string
	s.control(func(fd int) error {
		m, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			text = fmt.Sprintf("%x %x %x %x %x", m.Iflag, m.Oflag, m.Cflag, m.Lflag, m.Cc)
		}
		return err
	})
	return text
}

func (s *screen) collect() {
	buf := make([]byte, 4096)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.all.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return // EIO: the other side is closed
		}
	}
}

// send types keys; line types a line.
func (s *screen) send(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) line(text string) {
	s.t.Helper()
	s.send(text + "\r")
}

// wait returns when the screen shows pattern after what was waited for last,
// and returns the groups of the match.
func (s *screen) wait(pattern string) []string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		text := s.all.String()[s.seen:]
		at := re.FindStringSubmatchIndex(text)
		if at != nil {
			s.seen += at[1]
			s.mu.Unlock()
			return re.FindStringSubmatch(text)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Fatalf("the screen does not show %q after %q; all of it:\n%s", pattern, s.all.String()[:s.seen], s.all.String())
	return nil
}

// shown is all that was on the screen.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// ended waits for the program's end and returns its exit status.
func (s *screen) ended() int {
	s.t.Helper()
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.t.Fatalf("the program does not end; on the screen:\n%s", s.shown())
	}
	return s.cmd.ProcessState.ExitCode()
}

// close hangs up, and kills the program where that does not end it.
func (s *screen) close() {
	s.master.Close()
	select {
	case <-s.gone:
	case <-time.After(patience):
		s.cmd.Process.Kill()
		<-s.gone
		s.t.Errorf("the program outlived its terminal")
	}
}

// file returns what a file of the workspace holds, once it is there.
func (s *screen) file(name string) string {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(s.ws, name))
		if err == nil && len(data) > 0 {
			return strings.TrimSpace(string(data))
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s holds %q (%v); on the screen:\n%s", name, data, err, s.shown())
		}
	}
}

// foregroundOf waits until a command has its terminal: a shell gives it away
// after it named the job (proc_pid_stat(5)).
func (s *screen) foregroundOf(command string) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range all {
			argv, _ := os.ReadFile(path)
			if strings.TrimRight(strings.ReplaceAll(string(argv), "\x00", " "), " ") != command {
				continue
			}
			stat, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
			_, rest, _ := strings.Cut(string(stat), ") ")
			if f := strings.Fields(rest); len(f) > 5 && f[2] == f[5] { // its group is that of the terminal
				return
			}
		}
	}
	s.t.Fatalf("%s does not get the terminal; on the screen:\n%s", command, s.shown())
}
