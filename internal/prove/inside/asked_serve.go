//go:build linux

package inside

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// servedTools are the tools that the prober offers as an MCP server: their
// parameters, and what they do. No agent has a tool of its own with one of these
// names: some show the tools of servers beside their own.
var servedTools = []struct {
	name, about string
	given       []string
	does        func(out io.Writer, given map[string]string) error
}{
	{"run", "Runs a shell command.", []string{"command"}, servedRun},
	{"get", "Reads a file.", []string{"path"}, func(out io.Writer, given map[string]string) error { return askedRead(out, []string{given["path"]}) }},
	{"put", "Writes a file.", []string{"path", "content"}, servedWrite},
	{"send", "Sends a text to HOST:PORT, to the path of a Unix socket, or to @NAME.", []string{"address", "text"}, servedSend},
	{"environment", "Prints the environment of the server.", nil, func(out io.Writer, _ map[string]string) error {
		_, err := io.WriteString(out, strings.Join(os.Environ(), "\n")+"\n")
		return err
	}},
}

func servedRun(out io.Writer, given map[string]string) error {
	c := exec.Command("sh", "-c", given["command"])
	c.Stdout, c.Stderr, c.WaitDelay = out, out, time.Second
	return c.Run()
}

func servedWrite(out io.Writer, given map[string]string) error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(given["path"]), 0o755), os.WriteFile(given["path"], []byte(given["content"]), 0o644)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "wrote")
	return err
}

func servedSend(out io.Writer, given map[string]string) error {
	network := "tcp"
	if strings.HasPrefix(given["address"], "/") || strings.HasPrefix(given["address"], "@") {
		network = "unix"
	}
	return asSent(network)(out, []string{given["address"], given["text"]})
}

// serveAsked is a server of the Model Context Protocol (revision 2025-06-18,
// stdio) that does, without a shell, what an agent's tools do. It answers a
// client of any revision with the client's own.
func serveAsked(in io.Reader, out io.Writer) int {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(out)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string         `json:"protocolVersion"`
				Name      string         `json:"name"`
				Arguments map[string]any `json:"arguments"`
			} `json:"params"`
		}
		// The ID is a number or a text, and is returned unchanged. A message without
		// one wants no answer.
		if json.Unmarshal(lines.Bytes(), &m) != nil || len(m.ID) == 0 {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
		switch m.Method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": m.Params.Version, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]string{"name": "probe", "version": "1"}}
		case "ping":
			answer["result"] = map[string]any{}
		case "tools/list":
			answer["result"] = map[string]any{"tools": servedList()}
		case "tools/call":
			answer["result"] = servedCall(m.Params.Name, m.Params.Arguments)
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "no such method: " + m.Method}
		}
		if answers.Encode(answer) != nil {
			return 1
		}
	}
	return 0
}

func servedList() []any {
	var list []any
	for _, t := range servedTools {
		given := map[string]any{}
		for _, name := range t.given {
			given[name] = map[string]string{"type": "string"}
		}
		list = append(list, map[string]any{"name": t.name, "description": t.about, "inputSchema": map[string]any{"type": "object", "properties": given, "required": append([]string{}, t.given...)}})
	}
	return list
}

func servedCall(name string, arguments map[string]any) map[string]any {
	given := map[string]string{}
	for k, v := range arguments {
		given[k] = fmt.Sprint(v)
	}
	var output bytes.Buffer
	err := fmt.Errorf("no tool %q", name)
	for _, t := range servedTools {
		if t.name == name && !slices.ContainsFunc(t.given, func(g string) bool { return given[g] == "" }) {
			err = t.does(&output, given)
		}
	}
	if err != nil {
		output.WriteString("failed: " + err.Error() + "\n")
	}
	return map[string]any{"content": []any{map[string]string{"type": "text", "text": output.String()}}, "isError": err != nil}
}
