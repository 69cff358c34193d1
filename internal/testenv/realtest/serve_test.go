package realtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// vite runs the development server of that name as users do, and meets it through a
// published port, at both loopbacks of the host: a page, and the WebSocket by which a
// change of a file gets to the browser.
func vite(flags string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Parallel()
		p := newFixture(t, root, testenv.Node, testenv.Vite)
		p.bare(`cp -r "$0"/. .`, testenv.ViteDir)
		p.write(map[string]string{
			"index.html": "<!doctype html><script type=module src=/main.js></script>\n",
			"main.js":    "import.meta.hot.accept()\n",
		})
		port := freePort(t)
		ctx, cancel := context.WithTimeout(context.Background(), slow)
		t.Cleanup(cancel)
		cmd := p.command(ctx, testenv.Binary(t), "run", "--publish", fmt.Sprintf("%d:5173", port), "--", "sh", "-c", "exec node_modules/.bin/vite "+flags)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait() // by the signal
			if t.Failed() {
				t.Log(out.String())
			}
		})
		contains(t, get(t, port, "/"), "src=/main.js")
		contains(t, get(t, port, "/main.js"), "import.meta.hot")
		_, token, _ := strings.Cut(get(t, port, "/@vite/client"), `wsToken = "`)
		token, _, _ = strings.Cut(token, `"`)
		for _, address := range []string{"127.0.0.1", "::1"} {
			c, err := net.Dial("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
			if errors.Is(err, syscall.EADDRNOTAVAIL) && address == "::1" {
				continue // this host is without
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "GET /?token=%s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
				"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: vite-hmr\r\nOrigin: http://localhost:%d\r\n\r\n", token, port, port)
			heard := bufio.NewReader(c)
			readUntil(t, heard, "HTTP/1.1 101")
			readUntil(t, heard, `"type":"connected"`)
			// Of two changes in a moment vite hears one, and it may be the last one's.
			end := everySecond(func(n int) {
				os.WriteFile(filepath.Join(p.ws, "main.js"), fmt.Appendf(nil, "import.meta.hot.accept() // %s %d\n", address, n), 0o644)
			})
			readUntil(t, heard, `"path":"/main.js"`)
			end()
		}
	}
}

// everySecond calls do with 0, 1, 2 … until the returned function is called, which waits.
func everySecond(do func(n int)) (end func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			do(n)
			select {
			case <-ended:
				return
			case <-time.After(time.Second):
			}
		}
	})
	return func() {
		close(ended)
		all.Wait()
	}
}

// readUntil reads until it has seen a text.
func readUntil(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		b, err := r.ReadByte()
		if err != nil {
			t.Fatalf("%q is not in %q: %v", text, seen.String(), err)
		}
		seen.WriteByte(b)
	}
}
