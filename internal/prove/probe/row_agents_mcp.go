//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// oneServer is a project with one server that behaves like this.
func oneServer(behave string) func(*World) error {
	return project(func(h hostile) map[string]any {
		return map[string]any{".cursor/mcp.json": tree{"mcpServers": tree{behave: h.server(behave, behave)}}}
	})
}

// pathsBelow sets the paths that a file server is asked for. The server compares
// texts, so a path that begins with W but is not below it keeps its spelling.
func pathsBelow(templates ...string) func(*World) error {
	return func(w *World) error {
		var paths []string
		for _, t := range templates {
			paths = append(paths, w.W+strings.TrimPrefix(t, "W"))
		}
		w.Arg("path=" + strings.Join(paths, " "))
		return nil
	}
}

// hiddenNames makes a server with control and hidden characters in its arguments:
// a launcher may show them.
func hiddenNames(w *World) error {
	h := hostile{w: w, more: []string{"say=\x1b]0;owned\x07\u202egnp.exe\u202c\U000e0072\U000e006d\u200b"}}
	b := tree{"mcpServers": tree{"b": h.server("hidden-names", "matrix")}}
	return project(func(hostile) map[string]any { return map[string]any{".roo/mcp.json": b} })(w)
}

// shownPlainly demands that the record is shown without control or hidden
// characters.
func shownPlainly(w *World, _ Observation) []string {
	rec, err := w.record()
	if err != nil {
		return []string{"the record cannot be read: " + err.Error()}
	}
	for _, r := range string(rec.Shown) {
		// Colours are the target's own.
		if r != 0x1b && r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return []string{fmt.Sprintf("the record is shown with the character %U", r)}
		}
	}
	for _, seq := range []string{"\x1b]", "\x1b[8m", "\x1bP"} {
		if bytes.Contains(rec.Shown, []byte(seq)) {
			return []string{fmt.Sprintf("the record is shown with the sequence %q", seq)}
		}
	}
	return nil
}

// otherSession keeps a server in one run, and calls it from a second one and from
// outside.
func otherSession(s *Session) {
	w := s.World
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fail(err)
		return
	}
	at := free.Addr().String()
	free.Close()
	socket := "/tmp/probe-mcp-" + hexes(4) // every sandbox has a directory for it
	defer os.Remove(socket)                // left there without a sandbox
	services := "at=tcp " + at + "\nunix @mcp-" + hexes(4) + "\nunix " + socket
	wait := s.Start(Command{Action: "mcp-serve", Args: []string{"secret=" + w.Token("what the server knows"), services}})
	for end := time.Now().Add(15 * time.Second); !exists(w.Path("W/server-is-there")) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Post("http://"+at+"/mcp", "application/json", strings.NewReader("{}")); err == nil {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		resp.Body.Close()
		w.seen = append(w.seen, finding{fmt.Sprintf("the server was reached from the host, and said %d bytes", len(b))})
	}
	s.Run(Command{Action: "mcp-visit", Args: []string{services}})
	wait()
	if !exists(w.Path("W/server-is-there")) {
		s.Fail(errors.New("there was no server"))
	}
}

// finding is an effect that a drive saw itself.
type finding []string

func (f finding) effects() []string { return f }
func (finding) received() []byte    { return nil }

// resourceURIs passes the files outside to the action in every form that a URI may
// have.
func resourceURIs(w *World) error {
	var uris []string
	for _, form := range []string{"file://%s", "file:%s", "file://localhost%s", "file:///.%s", "file:////%s", "file:///%%2e%%2e/..%s", "file:///proc/self/root%s", "file:///proc/thread-self/cwd/../../../../../../../../..%s"} {
		uris = append(uris, fmt.Sprintf(form, w.Path("O/canary")), fmt.Sprintf(form, w.Path("H/.ssh/id_probe")))
	}
	uris = append(uris, "../o/canary", "file://"+w.W+"/../o/canary", "file://"+w.W+"/%2e%2e/o/canary", "./../h/.ssh/id_probe", "file:///etc/shadow")
	w.Arg("uri=" + strings.Join(uris, " "))
	return nil
}

// pageOfServer passes the address of a page with a command in it to the action.
func pageOfServer(w *World) error {
	h := hostile{w: w}
	w.Arg("page=http://server.test/\"; $RUN; : \"")
	w.Arg("run=" + strings.Join(h.argv("agent-payload", "page"), " "))
	return nil
}

// shadowedServer is a project with a second server whose tools shadow those of the first.
func shadowedServer(h hostile) map[string]any {
	return map[string]any{".cursor/mcp.json": tree{"mcpServers": tree{"a": h.server("trusted", "plain"), "z": h.server("shadow", "poisoned")}}}
}

// twoServices listens on both loopback addresses and passes them to the action.
func twoServices(w *World) error {
	var addresses []string
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := w.Listen("tcp", addr)
		if err != nil {
			return err
		}
		addresses = append(addresses, "tcp "+l.Addr)
	}
	w.Arg("at=" + strings.Join(addresses, "\n"))
	return nil
}

// namedLikeAnAgent gives the command the name of an agent that has hooks.
func namedLikeAnAgent(w *World) error {
	agent := filepath.Join(filepath.Dir(w.prober), "claude")
	if err := os.Rename(w.prober, agent); err != nil {
		return err
	}
	w.prober = agent
	w.made(agent)
	return nil
}

// deniedTool plays the row under a policy that denies a call.
func deniedTool(s *Session) {
	if t, ok := s.Target.(Flagger); ok {
		path := s.World.B + "/tools.yaml"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\ntools: {deny: [{tool: Bash, when: 'arguments.command.contains(\"sudo\")'}]}\n"), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	s.Run(Command{})
}

// Gateway is a target that can be between an agent outside and a server of tools.
type Gateway interface {
	// Serving returns the target called to start the command as a server of tools. The
	// agent writes to the standard input.
	Serving() Target
}

// honestCall is allowed by every rule of these rows.
const honestCall = `{"options":{"mode":"dry"}}`

// throughGateway has an agent make the calls, after one that is allowed, under a
// rule that denies the tool. Without a gateway the server gets them directly.
func throughGateway(rule string, calls []string) func(*Session) {
	return func(s *Session) {
		w, t := s.World, s.Target
		var said strings.Builder
		for i, arguments := range append([]string{honestCall}, calls...) {
			fmt.Fprintf(&said, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"do","arguments":%s}}`+"\n", i+1, arguments)
		}
		policy := w.B + "/tools.yaml"
		if err := errors.Join(w.File("B/calls", said.String()),
			os.WriteFile(policy, []byte("version: 1\ntools:\n  deny:\n    - {tool: do, when: '"+rule+"'}\n"), 0o600)); err != nil {
			s.Fail(err)
			return
		}
		g, serves := t.(Gateway)
		if serves {
			s.Target = g.Serving()
			if f, ok := s.Target.(Flagger); ok {
				s.Target = f.With("--policy", policy)
			}
		}
		w.Under = []string{"sh", "-c", `exec "$@" <"$0"`, w.Path("B/calls")}
		s.Run(Command{})
		w.Under, s.Target = nil, t
		if serves { // what a server prints is for its agent, not a report of the prober
			s.obs = s.obs[:len(s.obs)-1]
		}
		if heard, err := heardCalls(w); err != nil || len(heard) == 0 || heard[0].Mode != "dry" {
			s.Fail(fmt.Errorf("the server did not get the allowed call, but %+v", heard))
		}
		s.Run(Command{Action: "nothing-denied"})
	}
}

// options are the arguments of a call, as a server written in Go reads them.
type options struct {
	Mode string
	Argv []string
}

// heardCalls returns the calls that reached the server.
func heardCalls(w *World) (out []options, err error) {
	b, err := readSome(w.Path("W/heard"))
	for line := range bytes.Lines(b) {
		var m struct {
			Params struct{ Arguments struct{ Options options } }
		}
		err = errors.Join(err, json.Unmarshal(line, &m))
		out = append(out, m.Params.Arguments.Options)
	}
	return out, err
}

// wentThrough returns the calls that the rule forbids and that reached the
// server.
func wentThrough(w *World, _ Observation) (out []string) {
	heard, err := heardCalls(w)
	if err != nil {
		return []string{"what the server got cannot be read: " + err.Error()}
	}
	for _, o := range heard {
		if o.Mode == "real" || slices.Contains(o.Argv, "sudo") {
			out = append(out, fmt.Sprintf("the server was called with mode %q and the words %q", o.Mode, o.Argv))
		}
	}
	return out
}
