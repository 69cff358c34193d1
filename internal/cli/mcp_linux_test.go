package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestMain lets the test binary be the MCP server that a test runs inside.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "mcp-server" {
		os.Exit(serve(os.Args[2]))
	}
	os.Exit(m.Run())
}

// serve is an MCP server of the SDK, or something less kind.
func serve(mode string) int {
	switch mode {
	case "silent":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		exec.Command("sleep", "1000").Start()
		select {} // also after the end of its input
	case "flood":
		for {
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
	}
	type args struct {
		Arg string `json:"arg"`
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	for name, do := range map[string]func(string) (string, error){
		"read":  func(path string) (string, error) { b, err := os.ReadFile(path); return string(b), err },
		"write": func(path string) (string, error) { return "", os.WriteFile(path, []byte("x"), 0o600) },
		"list":  func(dir string) (string, error) { l, err := os.ReadDir(dir); return fmt.Sprint(len(l)), err },
		"dial": func(addr string) (string, error) { // and sees whether the connection stays
			c, err := net.DialTimeout("tcp", addr, patience)
			if err != nil {
				return "", err
			}
			defer c.Close()
			c.SetReadDeadline(time.Now().Add(patience))
			_, err = c.Read(make([]byte, 1))
			return "", err
		},
		"env":   func(string) (string, error) { return strings.Join(os.Environ(), "\n"), nil },
		"where": func(string) (string, error) { return os.Getwd() },
		"print": func(text string) (string, error) {
			fmt.Println(text)
			fmt.Fprintln(os.Stderr, "\x1b]0;"+text+"\a")
			return "", nil
		},
		"die": func(string) (string, error) { os.Exit(7); return "", nil },
	} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, a args) (*mcp.CallToolResult, any, error) {
			text, err := do(a.Arg)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// mcpPlace is where a server runs: a home, and something of the user's beside it.
type mcpPlace struct {
	t                  *testing.T
	dir, home, project string
	stderr             bytes.Buffer
}

func newMCPPlace(t *testing.T) *mcpPlace {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testenv.NoLeaks(t, dir)
	p := &mcpPlace{t: t, dir: dir, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "project")}
	p.write("home/.config/holdfast/mcp.yaml", "version: 1\nfilesystem:\n  read: [~/data]\n")
	p.write("home/data/shown", "shown to the server")
	p.write("home/.ssh/id_ed25519", "not to be seen")
	p.write("project/file", "of the project")
	return p
}

func (p *mcpPlace) write(name, text string) {
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

// command is an agent's command for a server of this program's.
func (p *mcpPlace) command(mode string) *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	c := exec.Command(testenv.Binary(p.t), "mcp", "run", "--policy", filepath.Join(p.home, ".config/holdfast/mcp.yaml"), "--ro", self, "--", self, "mcp-server", mode)
	c.Dir, c.Stderr = p.project, &p.stderr
	c.Env = append(testenv.HomeEnv(p.home), "PATH="+systemPath, "API_TOKEN=sk-not-to-be-seen")
	return c
}

func (p *mcpPlace) connect(mode string) *mcp.ClientSession {
	p.t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "2"}, nil).Connect(p.t.Context(), &mcp.CommandTransport{Command: p.command(mode)}, nil)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	return s
}

// recorded are the events of the gateway in the last session.
func (p *mcpPlace) recorded() (out []string) {
	p.t.Helper()
	c := exec.Command(testenv.Binary(p.t), "log", "query", `sensor == "gateway"`, "--json")
	c.Env = testenv.HomeEnv(p.home)
	text, err := c.Output()
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var e struct {
			Action, Object string
			Detail         map[string]string
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatal(err)
		}
		out = append(out, strings.TrimSpace(e.Action+" "+e.Object+" "+e.Detail["arguments"]+e.Detail["outcome"]+e.Detail["text"]))
	}
	return out
}

func TestMCPServerInside(t *testing.T) {
	p := newMCPPlace(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	s := p.connect("files")
	call := func(tool, arg string) (string, bool) {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: map[string]string{"arg": arg}})
		if err != nil {
			t.Fatalf("%s %s: %v", tool, arg, err)
		}
		return r.Content[0].(*mcp.TextContent).Text, r.IsError
	}
	where, _ := call("where", "")
	for _, row := range []struct {
		tool, arg, want string
		refused         bool
	}{
		{"read", filepath.Join(p.home, "data/shown"), "shown to the server", false},
		{"read", filepath.Join(p.home, ".ssh/id_ed25519"), "no such file", true},
		{"read", filepath.Join(p.project, "file"), "no such file", true},
		{"write", filepath.Join(p.home, "data/new"), "read-only", true},
		{"write", filepath.Join(where, "new"), "read-only", true},
		{"list", where, "0", false},
		{"dial", outside.Addr().String(), "refused", true},
		{"dial", "192.0.2.1:443", "", true},
		{"print", "no message", "", false},
	} {
		if got, refused := call(row.tool, row.arg); refused != row.refused || !strings.Contains(got, row.want) {
			t.Errorf("%s %s: %q, refused: %v", row.tool, row.arg, got, refused)
		}
	}
	if env, _ := call("env", ""); strings.Contains(env, "not-to-be-seen") {
		t.Error("the server has the agent's token")
	}
	if err := s.Close(); err != nil {
		t.Errorf("the end: %v\n%s", err, p.stderr.String())
	}
	got := p.recorded()
	for _, want := range []string{
		`tool.call read {"arg":"` + filepath.Join(p.project, "file") + `"}`, "tool.result read ok", "tool.result read error", "tool.drop server no message",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in the record: %q", want, got)
		}
	}
	if e := p.stderr.String(); strings.ContainsAny(e, "\x1b\a") || !strings.Contains(e, `\x1b]0;no message`) || !strings.Contains(e, "1 lines or messages") {
		t.Errorf("said: %q", e)
	}
}

func TestMCPServerDies(t *testing.T) {
	p := newMCPPlace(t)
	s := p.connect("files")
	if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "die", Arguments: map[string]string{"arg": ""}}); err == nil || !strings.Contains(err.Error(), "the server ended before it answered") {
		t.Errorf("the call: %v", err)
	}
	var exit *exec.ExitError
	if err := s.Close(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("the end: %v", err)
	}
	if got := p.recorded(); !slices.Contains(got, "tool.result die lost") {
		t.Errorf("%q", got)
	}
}

// TestMCPAgentGoes stops the agent of a server that would not end on its own.
func TestMCPAgentGoes(t *testing.T) {
	for name, leave := range map[string]func(*exec.Cmd, io.Closer, io.Closer){
		"closing its ends":       func(_ *exec.Cmd, in, out io.Closer) { in.Close(); out.Close() },
		"closing what it writes": func(_ *exec.Cmd, in, _ io.Closer) { in.Close() },
		"asking us to end":       func(c *exec.Cmd, _, _ io.Closer) { c.Process.Signal(syscall.SIGTERM) },
		"killing us":             func(c *exec.Cmd, _, _ io.Closer) { c.Process.Kill() },
	} {
		for _, mode := range []string{"silent", "flood"} {
			t.Run(name+", "+mode, func(t *testing.T) {
				p := newMCPPlace(t)
				c := p.command(mode)
				in, err := c.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				out, err := c.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"\n")
				if mode == "flood" {
					bufio.NewReader(out).ReadString('\n')
				} else {
					waitFor(t, func() bool { return len(p.sessions()) > 0 })
					time.Sleep(300 * time.Millisecond)
				}
				began := time.Now()
				leave(c, in, out)
				go io.Copy(io.Discard, out)
				c.Wait() // how it ends depends on how it was ended
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

func (p *mcpPlace) sessions() []string {
	found, err := filepath.Glob(filepath.Join(p.home, ".local/state/holdfast/sessions/*/control"))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !what(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}
