//go:build linux

package gate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

// tellTime is how long a program that notifies a human may take.
const tellTime = 5 * time.Second

// hostPrograms is where programs that notify humans are looked for. The user's
// PATH may have directories that programs inside can write.
var hostPrograms = []string{"/usr/local/bin", "/usr/bin", "/bin", "/run/current-system/sw/bin", "/home/linuxbrew/.linuxbrew/bin"}

// hostProgram finds a program of the host; "" for none.
func hostProgram(name string) string {
	for _, dir := range hostPrograms {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// notifySend shows a notification of the desktop.
func notifySend(ctx context.Context, id, what string) {
	program := hostProgram("notify-send")
	if program == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	// The text of a notification may be markup (Desktop Notifications, 1.2).
	plain := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	cmd := exec.CommandContext(ctx, program, "--app-name=holdfast", "--urgency=critical", "--", "holdfast asks: "+id, plain.Replace(what)+"\n\nanswer with: holdfast approve")
	cmd.WaitDelay = time.Second
	cmd.Run() // without a desktop there are other ways
}

// popups shows holdfast approve in the user's tmux.
type popups struct {
	socket, program string
	environ         []string // of the pop-up, which otherwise has that of the tmux server

	mu    sync.Mutex
	shown bool // a pop-up, which shows further requests by itself
}

// newPopups prepares pop-ups in the tmux that TMUX names, which is SOCKET,PID,N;
// nil where there is none.
func newPopups(tmux, program, state string) *popups {
	socket, _, _ := strings.Cut(tmux, ",")
	if socket == "" || program == "" || hostProgram("tmux") == "" {
		return nil
	}
	p := &popups{socket: socket, program: program, environ: []string{"XDG_STATE_HOME=" + filepath.Dir(state)}}
	for _, name := range []string{"HOME", "NO_COLOR"} {
		if value := os.Getenv(name); value != "" {
			p.environ = append(p.environ, name+"="+value)
		}
	}
	return p
}

// show opens a pop-up until nothing waits any more, unless there is one. A tmux
// before 3.2 shows a message.
func (p *popups) show(ctx context.Context, id string) {
	p.mu.Lock()
	first := !p.shown
	p.shown = true
	p.mu.Unlock()
	if !first {
		return
	}
	defer func() {
		p.mu.Lock()
		p.shown = false
		p.mu.Unlock()
	}()
	words := append([]string{"env"}, p.environ...)
	words = append(words, p.program, "approve", "--until-empty", "--via", "tmux")
	for i, w := range words {
		words[i] = text.Quote(w)
	}
	if p.tmux(ctx, "display-popup", "-E", "-w", "90%", "-h", "80%", strings.Join(words, " ")) == nil || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	// No text from inside: in a message tmux replaces #(…) by the output of a command.
	p.tmux(ctx, "display-message", "holdfast asks: "+id+" (holdfast approve)")
}

func (p *popups) tmux(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, hostProgram("tmux"), append([]string{"-S", p.socket}, args...)...)
	cmd.WaitDelay = time.Second
	return cmd.Run()
}
