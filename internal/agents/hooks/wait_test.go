package hooks

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPatience(t *testing.T) {
	for waits, want := range map[int]time.Duration{0: 7500 * time.Millisecond, 4: 3 * time.Second, 60: 55 * time.Second, callTime: 595 * time.Second} {
		if got := (Report{Waits: waits}).AnswerTime(); got != want {
			t.Errorf("%d: %v, want %v", waits, got, want)
		}
	}
	r, err := Receive(strings.NewReader(`{"agent":"a","kind":"call","tool":"t","waits":99999999}` + "\n"))
	if err != nil || r.Waits != callTime {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestEveryInstalledHookSaysHowLongItsAgentWaits compares the command with the
// timeout next to it.
func TestEveryInstalledHookSaysHowLongItsAgentWaits(t *testing.T) {
	for name, a := range agents() {
		var text string
		if a.ownFile != nil {
			text = string(a.ownFile(hook))
		} else {
			data, err := a.editSettings([]byte("{}"), hook, true)
			if err != nil {
				t.Fatal(err)
			}
			text = string(data)
		}
		hookInput := fmt.Sprintf(" hook %s call %d", name, callTime)
		var limit string
		switch name {
		case "gemini", "qwen":
			limit = fmt.Sprintf(`"timeout": %d000`, callTime)
		case "opencode":
			hookInput, limit = fmt.Sprintf("const callTime = %d", callTime), "callTime : 10) * 1000"
		case "copilot":
			limit = fmt.Sprintf(`"timeoutSec": %d`, callTime)
		default:
			limit = fmt.Sprintf(`"timeout": %d`, callTime)
		}
		if !strings.Contains(text, hookInput) || !strings.Contains(text, limit) {
			t.Errorf("%s: without %q or %q:\n%s", name, hookInput, limit, text)
		}
	}
	if text := string(codexRequirements(hook)); !strings.Contains(text, fmt.Sprintf("hook codex call %d\"\ntimeout = %d\n", callTime, callTime)) {
		t.Errorf("codex:\n%s", text)
	}
}

// TestAWaitThatComesToNothingDenies: the peer says that a human is asked, and
// then disconnects, hangs, or sends an invalid answer.
func TestAWaitThatComesToNothingDenies(t *testing.T) {
	for name, then := range map[string]func(net.Conn){
		"it goes":        func(net.Conn) {},
		"it hangs":       func(c net.Conn) { c.Read(make([]byte, 1)) },
		"it waits again": func(c net.Conn) { fmt.Fprintln(c, `{"wait":50}`) },
		"no answer":      func(c net.Conn) { fmt.Fprintln(c, `nonsense`) },
	} {
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			bufio.NewReader(c).ReadString('\n')
			fmt.Fprintln(c, `{"wait":50}`)
			then(c)
		}()
		var told time.Duration
		begun := time.Now()
		a, err := Send(socket, Report{Agent: "claude", Kind: Call, Tool: "Bash", Waits: 600}, func(d time.Duration) { told = d })
		if err != nil || a.Deny == "" || told != 50*time.Millisecond+channelTimeout || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %+v, %v, told %v", name, a, err, told)
		}
		l.Close()
	}
}
