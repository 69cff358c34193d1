package realtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// freePort is a loopback port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func devServer(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Node)
	p.write(map[string]string{
		"page":      "version 1",
		"server.js": "const fs = require('fs');\nrequire('http').createServer((q, a) => a.end(q.url + ' ' + fs.readFileSync('page'))).listen(3000, '127.0.0.1');\n",
	})
	port := freePort(t)
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	cmd := p.command(ctx, testenv.Binary(t), "run", "--publish", fmt.Sprintf("%d:3000", port), "--", "node", "server.js")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	contains(t, get(t, port, "/a"), "/a version 1")
	p.write(map[string]string{"page": "version 2"})
	contains(t, get(t, port, "/b"), "/b version 2")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("the server ended with %v: %s", cmd.ProcessState, out.String())
	}
	if c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

// get retries until the server is up.
func get(t *testing.T, port int, path string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var last error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
		if err != nil {
			last = err
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	t.Fatal(last)
	return ""
}

// Chromium's own sandbox needs what the boundary refuses, so it runs without.
func chromium(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Chromium)
	p.write(map[string]string{"page.html": "<!doctype html><title>t</title><p id=p>before</p><script>p.textContent = 'computed ' + (6 * 7)</script>"})
	out := p.inside(`chromium --headless --no-sandbox --disable-gpu --dump-dom "file://$PWD/page.html" 2>chromium.log`)
	contains(t, out, "computed 42")
}
