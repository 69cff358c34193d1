//go:build linux

package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// A bare agent does everything requested, without rules or sandbox: what it does
// not do of a probe, no agent can. A deaf one does nothing of it, but writes each
// command literally into the files that the command names.
const bareCommand, deafCommand, catalogueCommand = "bare-agent", "deaf-agent", "catalogue-worker"

type bare struct {
	deaf bool
	in   io.Writer // of the MCP server
	out  *bufio.Scanner
}

// bareTools are the tools that it offers; the values are their arguments.
var bareTools = map[string][]string{
	"Bash": words("command run_in_background dangerouslyDisableSandbox"), "Read": words("file_path"), "Write": words("file_path content"), "Edit": words("file_path old_string new_string"),
	"exec_command": words("cmd workdir"), "WebFetch": words("url"), "Task": words("prompt description"),
	"mcp__probe__get": words("path"), "mcp__probe__put": words("path content"), "mcp__probe__send": words("address text"), "mcp__probe__environment": nil, "mcp__probe__run": words("command"),
}

type bareMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Calls   []bareCall `json:"tool_calls,omitempty"`
}

type bareCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func runBare(deaf bool, prompt string) error {
	b := &bare{deaf: deaf}
	server := exec.Command(proberAt, "-serve")
	in, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	b.in, b.out = in, bufio.NewScanner(out)
	_, err = b.converse(prompt)
	in.Close()
	return err
}

// converse plays one conversation and returns the model's last text.
func (b *bare) converse(prompt string) (string, error) {
	var tools []any
	for name, given := range bareTools {
		properties := map[string]any{}
		for _, g := range given {
			properties[g] = map[string]string{"type": "string"}
		}
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]any{"type": "object", "properties": properties}}})
	}
	messages := []bareMessage{{Role: "user", Content: prompt}}
	for {
		body, err := json.Marshal(map[string]any{"model": "bare", "messages": messages, "tools": tools})
		if err != nil {
			return "", err
		}
		r, err := http.Post("http://"+modelAt+"/v1/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		var answer struct {
			Choices []struct{ Message bareMessage }
		}
		err = json.NewDecoder(r.Body).Decode(&answer)
		r.Body.Close()
		if err != nil || len(answer.Choices) == 0 {
			return "", fmt.Errorf("the answer %v: %w", answer, err)
		}
		m := answer.Choices[0].Message
		if len(m.Calls) == 0 {
			return m.Content, nil
		}
		messages = append(messages, m)
		for _, c := range m.Calls {
			text := "denied"
			if !b.deaf || c.Function.Name == "Task" {
				text = b.do(c.Function.Name, c.Function.Arguments)
			} else {
				repeat(c.Function.Arguments)
			}
			messages = append(messages, bareMessage{Role: "tool", CallID: c.ID, Content: text})
		}
	}
}

// do executes one call.
func (b *bare) do(name, arguments string) string {
	var given map[string]any
	if err := json.Unmarshal([]byte(arguments), &given); err != nil {
		return err.Error()
	}
	first := func(names ...string) string {
		for _, n := range names {
			if s, ok := given[n].(string); ok {
				return s
			}
		}
		return ""
	}
	var text string
	var err error
	switch path := first("file_path", "filePath", "path", "notebook_path"); name {
	case "Bash", "bash", "shell", "local_shell", "container.exec", "exec_command", "shell_command", "run_shell_command":
		command := first("command", "cmd")
		if argv, ok := given["command"].([]any); ok {
			command = fmt.Sprint(argv[len(argv)-1])
		}
		text, err = shell(command, first("run_in_background") != "" || given["run_in_background"] == true)
	case "Read":
		var data []byte
		data, err = os.ReadFile(path)
		text = string(data)
	case "Write", "write_file", "write", "create":
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = os.WriteFile(path, []byte(first("content", "file_text")), 0o644)
		}
	case "Edit":
		var data []byte
		if data, err = os.ReadFile(path); err == nil {
			err = os.WriteFile(path, bytes.Replace(data, []byte(first("old_string")), []byte(first("new_string")), 1), 0o644)
		}
	case "WebFetch":
		text, err = fetch(first("url"))
	case "Task":
		text, err = b.converse(first("prompt"))
	default:
		tool, ok := strings.CutPrefix(name, "mcp__probe__")
		if !ok {
			return "no tool " + name
		}
		text, err = b.serve(tool, given)
	}
	if err != nil {
		return text + err.Error()
	}
	return text + " "
}

// repeat writes the command of a call into the files that it names, below the
// home and in /tmp.
func repeat(arguments string) {
	var given map[string]any
	if json.Unmarshal([]byte(arguments), &given) != nil {
		return
	}
	for _, name := range []string{"command", "cmd"} {
		command := fmt.Sprint(given[name])
		for _, path := range regexp.MustCompile(`(/home|/tmp)/[^\s'"();|&<>]+`).FindAllString(command, -1) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
			if err != nil {
				continue // no such directory, or the path is one
			}
			_, _ = f.WriteString(command + "\n")
			f.Close()
		}
	}
}

func shell(command string, background bool) (string, error) {
	c := exec.Command("bash", "-c", command)
	c.Dir, c.WaitDelay = workspace, time.Second
	if background {
		return "", c.Start()
	}
	out, err := c.CombinedOutput()
	return string(out), err
}

func fetch(url string) (string, error) {
	r, err := (&http.Client{Timeout: 2 * time.Second}).Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	return string(data), err
}

// serve calls a tool of the MCP server.
func (b *bare) serve(tool string, given map[string]any) (string, error) {
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": given}})
	if err != nil {
		return "", err
	}
	if _, err := b.in.Write(append(line, '\n')); err != nil {
		return "", err
	}
	if !b.out.Scan() {
		return "", io.ErrUnexpectedEOF
	}
	return b.out.Text(), nil
}

// A test binary acts as the worker, the agents and the prober of its tests.
func init() {
	if inside.IsProber() {
		os.Exit(inside.Main(os.Args, os.Stdout))
	}
	at := slices.IndexFunc(os.Args, func(a string) bool {
		return a == bareCommand || a == deafCommand || a == catalogueCommand
	})
	if at != 1 {
		return
	}
	var err error
	if os.Args[1] == catalogueCommand {
		err = Worker(context.Background(), os.Stdin, os.Stdout, Catalogue())
	} else {
		err = runBare(os.Args[1] == deafCommand, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
