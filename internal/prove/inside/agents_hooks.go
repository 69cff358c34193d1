//go:build linux

package inside

import (
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// hookTries is how many calls the stand-in makes while its hooks are starved.
const hookTries = 3

// starvedHook is an agent that asks the hooks in its machine's settings before it
// calls a tool, while another goroutine connects to every socket in view and
// stays silent. It obeys the hooks' answers.
func starvedHook(p *Probe) {
	call := `{"session_id":"s","cwd":"` + p.Arg("W") + `","tool_name":"Bash","tool_input":{"command":"sudo id"},"tool_use_id":"a"}`
	over, done := make(chan struct{}), &sync.WaitGroup{}
	for range 4 {
		done.Go(func() { occupySockets(over) })
	}
	time.Sleep(100 * time.Millisecond)
	for range hookTries {
		p.Try("call a tool that is denied", func() error {
			if deniedByHook(call) {
				return unix.EACCES
			}
			return create(p.In("W", "went"))
		})
	}
	close(over)
	done.Wait()
}

// occupySockets connects to every socket below /run until over is closed, and keeps some
// hundred connections open at a time.
func occupySockets(over <-chan struct{}) {
	var held []net.Conn
	for {
		_ = filepath.WalkDir("/run", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSocket == 0 {
				return nil
			}
			if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
				held = append(held, c)
			}
			return nil
		})
		for ; len(held) > 200; held = held[1:] {
			held[0].Close()
		}
		select {
		case <-over:
			for _, c := range held {
				c.Close()
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// deniedByHook asks the hooks that come before a call, and reports whether one of
// them denies it.
func deniedByHook(call string) bool {
	var settings struct {
		Hooks struct {
			PreToolUse []struct {
				Hooks []struct{ Command string }
			}
		}
	}
	text, err := os.ReadFile("/etc/claude-code/managed-settings.json")
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return false
	}
	for _, group := range settings.Hooks.PreToolUse {
		for _, hook := range group.Hooks {
			c := exec.Command("sh", "-c", hook.Command)
			c.Stdin = strings.NewReader(call)
			if out, _ := c.Output(); strings.Contains(string(out), `"deny"`) { // its status does not deny
				return true
			}
		}
	}
	return false
}
