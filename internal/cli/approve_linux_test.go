package cli_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// pushes is a policy that asks before git pushes.
const pushes = "version: 1\nask:\n  - git-push\napprovals: {timeout: 1m}\n"

// onRepository is a shell on a terminal, in a workspace with a policy beside it,
// a remote repository, and a commit to push.
func onRepository(t *testing.T, policy string) *screen {
	t.Helper()
	testenv.Need(t, testenv.Git, nil)
	s := onShell(t)
	if err := os.WriteFile(filepath.Join(s.ws, "../ask.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.line("git init -q . && git -c user.name=n -c user.email=n@example.org commit -q --allow-empty -m first && git init -q --bare remote.git; echo ready=$?")
	s.wait(`ready=0`)
	return s
}

// beside runs a command of the same user elsewhere, until it succeeds.
func (s *screen) beside(script string) string {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir, cmd.Env = s.ws, s.cmd.Env
		out, err := cmd.Output()
		if err == nil {
			return string(out)
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: %v %s; on the screen:\n%s", script, err, out, s.shown())
		}
	}
}

// waitingID is the name of the request that waits.
func (s *screen) waitingID() string {
	s.t.Helper()
	out := s.beside(`holdfast approve list --json | grep '"id"'`)
	return regexp.MustCompile(`"id": "([a-z0-9]+)"`).FindStringSubmatch(out)[1]
}

// Ctrl-C while something is held ends what asked, and the terminal is as it was.
func TestHeldIsInterrupted(t *testing.T) {
	t.Parallel()
	s := onRepository(t, pushes)
	before := s.modes()
	s.line(`holdfast run --policy ../ask.yaml -- git push -q ./remote.git HEAD:main; echo status=$?`)
	s.waitingID()
	if strings.Contains(s.shown(), "holdfast: asks") {
		t.Errorf("a request is printed where the command has the terminal:\n%s", s.shown())
	}
	s.send(ctrlC)
	s.wait(`status=130`)
	if got := s.beside("holdfast approve list"); !strings.Contains(got, "nothing waits") {
		t.Errorf("still waits: %s", got)
	}
	s.line("stty -a >/dev/null; echo again")
	s.wait(`again\r\n`)
	s.wait(`outer> `)
	if after := s.modes(); after != before {
		t.Errorf("the terminal was %s and is %s", before, after)
	}
}

// The screen of holdfast approve answers a run of another terminal, shows what
// that did before, and gives the terminal back however it ends.
func TestApproveScreen(t *testing.T) {
	t.Parallel()
	s := onRepository(t, pushes)
	before := s.modes()
	run := func(branch string) {
		s.line(`holdfast run --policy ../ask.yaml -- sh -c '/bin/echo before-$((40+2)) >/dev/null; git push -q ./remote.git HEAD:` + branch + ` && echo went || echo refused' </dev/null >` + branch + ` 2>&1 &`)
		s.waitingID()
	}
	run("allowed")
	s.line("holdfast approve")
	s.wait(`1 request, 1 run`)
	s.wait(`git push -q ./remote.git HEAD:allowed`)
	// What the session did before is shown below what would happen. The shell computes
	// the mark, so that it is in no command line but that one.
	for end := time.Now().Add(patience); !strings.Contains(s.shown(), "before-42"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("what was before is not shown:\n%s", s.shown())
		}
		s.send(" ")
	}
	time.Sleep(time.Second) // a key right after a request appeared counts for nothing
	s.send("afor the test\r")
	s.wait(`: allowed once`)
	s.resize(8, 40)
	s.wait(`\x1b\[2J`)
	s.resize(24, 80)
	s.send("q")
	s.wait(`\x1b\[\?1049l`)
	s.wait(`outer> `)
	s.line("wait; cat allowed; echo shown")
	s.wait(`went\r\n`)
	s.wait(`shown\r\n`)
	run("denied")
	s.line("holdfast approve")
	s.wait(`HEAD:denied`)
	time.Sleep(time.Second)
	s.send("d\x1bdno\r") // Escape goes back
	s.wait(`: denied`)
	s.send(ctrlC)
	s.wait(`\x1b\[\?1049l`)
	s.wait(`outer> `) // what is typed before the shell reads again is thrown away
	s.line("wait; cat denied; echo shown")
	s.wait(`refused`)
	s.wait(`shown\r\n`)
	s.wait(`outer> `)
	for _, how := range []string{"TERM", "HUP", "QUIT"} {
		s.line("holdfast approve; echo ended=$?")
		s.wait(`nothing waits`)
		s.beside("pkill -" + how + " -P " + strconv.Itoa(s.cmd.Process.Pid) + " holdfast")
		s.wait(`\x1b\[\?1049l`)
		s.wait(`ended=1\d\d`)
		s.wait(`outer> `)
	}
	if after := s.modes(); after != before {
		t.Errorf("the terminal was %s and is %s", before, after)
	}
}

// The server that docs/approvals.md names answers as that page says.
func TestWebhookExample(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.Python, nil)
	testenv.Need(t, testenv.Git, nil)
	program, err := os.ReadFile(filepath.Join(testenv.ModuleRoot(t), "docs/formats/webhook.py"))
	if err != nil {
		t.Fatal(err)
	}
	_, env, dir := household(t)
	beside := filepath.Dir(dir)
	for name, content := range map[string]string{"server.py": string(program), "secret": "sixteen bytes and more of them\n"} {
		if err := os.WriteFile(filepath.Join(beside, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := serveWebhook(t, beside, env)
	for name, content := range map[string]string{
		"hook.yaml": "version: 1\nask:\n  - {set: git-push, attended: true}\napprovals:\n  timeout: 1m\n  notify:\n    - {webhook: http://127.0.0.1:" + port + "/, secret: " + beside + "/secret}\n",
	} {
		if err := os.WriteFile(filepath.Join(beside, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command(t, 0, "git init -q --bare remote.git", env, dir)
	for _, decision := range []string{"allow", "deny"} {
		out := command(t, 0, `sh -c 'for i in $(seq 600); do id=$(holdfast approve list --json | sed -n "s/^    \"id\": \"\(.*\)\",$/\1/p"); test -n "$id" && break; sleep 0.05; done; echo `+decision+` > ../new && mv ../new ../$id' & holdfast run --policy ../hook.yaml -- sh -c 'git push -q ./remote.git HEAD:main && echo went || echo refused' 2>&1; wait`, env, dir)
		want := map[string]string{"allow": "went", "deny": "refused"}[decision]
		if !strings.Contains(out, want) || !strings.Contains(out, "by the directory") {
			t.Errorf("%s: %s", decision, out)
		}
	}
}

// serveWebhook starts the server of a directory until the test ends, and returns its
// port: another one where a test beside this one was faster to take it.
func serveWebhook(t *testing.T, dir string, env []string) string {
	t.Helper()
	for range 5 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		listener.Close()
		server := exec.Command("python3", filepath.Join(dir, "server.py"), filepath.Join(dir, "secret"), dir, port)
		server.Env = env
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			server.Wait()
			close(gone)
		}()
		t.Cleanup(func() {
			server.Process.Signal(syscall.SIGKILL)
			<-gone
		})
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			select {
			case <-gone:
				end = time.Now()
				continue
			default:
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				continue
			}
			conn.Close()
			select {
			case <-gone: // another server answered
			case <-time.After(200 * time.Millisecond):
				return port
			}
		}
	}
	t.Fatal("no port was free")
	return ""
}
