package realtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// terminal is a terminal of tmux with a shell of the user's in it. tmux answers
// what programs ask a terminal, and knows what a person would see.
type terminal struct {
	t      *testing.T
	u      *newUser
	socket string

	a        newcomer // who is on it
	h        *hour
	answered string // the screen that was answered last
	at       time.Time
}

const terminalSettings = "set -g default-terminal tmux-256color\nset -g history-limit 50000\nset -g status off\nset -s escape-time 10\n"

// openTerminal starts a shell in the repository. It ends with the test.
func (u *newUser) openTerminal(t *testing.T) *terminal {
	t.Helper()
	s := &terminal{t: t, u: u, socket: filepath.Join(u.root, "tmux")}
	u.write(filepath.Join(u.root, "tmux.conf"), terminalSettings)
	s.tmux("-f", filepath.Join(u.root, "tmux.conf"), "new-session", "-d", "-x", "120", "-y", "50", "-c", u.repo,
		"env", "-u", "TMUX", "-u", "TMUX_PANE", "PS1=$ ", "bash", "--norc", "--noprofile", "-i")
	t.Cleanup(func() { s.command("kill-server").Run() }) // it is gone where the shell ended
	return s
}

func (s *terminal) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...)
	cmd.Dir, cmd.Env = s.u.repo, s.u.env
	testenv.AsUser(s.t, cmd)
	return cmd
}

func (s *terminal) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// visible is what a person sees now, a long line in one piece.
func (s *terminal) visible() string { return s.tmux("capture-pane", "-p", "-J", "-t", ":0") }

// scrolled is that with all lines that were scrolled off.
func (s *terminal) scrolled() string {
	return s.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", ":0")
}

// press presses keys by the names that tmux has for them.
func (s *terminal) press(keys ...string) {
	s.tmux(append([]string{"send-keys", "-t", ":0"}, keys...)...)
}

// typed types a text.
func (s *terminal) typed(text string) { s.tmux("send-keys", "-t", ":0", "-l", "--", text) }
