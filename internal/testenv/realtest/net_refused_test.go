package realtest

import (
	"bufio"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// attempt is something that a policy does not allow (or only just), tried with a
// real program. Without a boundary it must succeed, or the refusal proves
// nothing.
type attempt struct {
	name    string
	policy  string // {ip} becomes the address of the files
	script  string // output without a boundary
	bare    string // regular expression for the output inside
	inside  string // expression for what is printed inside
	closing string // expression for a line at the end of the run
}

var attempts = []attempt{
	{
		name: "another name", policy: "files.example.org",
		script: `curl -sS -m 20 https://other.example.org/ || echo status $?`,
		bare:   "the other host\n", inside: `^holdfast refused other\.example\.org:443: no rule allows it; [^\n]*: --allow other\.example\.org\n$`, closing: `other\.example\.org.*--allow other\.example\.org`,
	},
	{
		name: "another port", policy: "files.example.org",
		script: `curl -sS -m 20 http://files.example.org:8080/hello || echo status $?`,
		bare:   "hello by HTTP/1.1\n", inside: `status |403|--allow`, closing: `files\.example\.org.*--allow files\.example\.org:8080`,
	},
	{
		name: "the address of an allowed name", policy: "files.example.org",
		script: `curl -sS -k -m 20 --connect-to files.example.org:443:{ip}:443 https://files.example.org/hello || echo status $?`,
		bare:   "hello by HTTP/2.0\n", inside: `^holdfast refused 93\.184\.215\.10:443: [^\n]*\n$`, closing: `93\.184\.215\.10`,
	},
	{
		name: "another server name on the way to an allowed one", policy: "files.example.org",
		script: `curl -sS -k -m 20 --connect-to other.example.org:443:files.example.org:443 https://other.example.org/ || echo status $?`,
		bare:   "the other host\n", inside: `^status \d+\n$`, closing: `files\.example\.org`,
	},
	{
		name: "no server name", policy: "files.example.org",
		script: `curl -sS -k -m 20 -H 'Host: files.example.org' "https://$(getent ahostsv4 files.example.org | cut -d' ' -f1 | head -1)/hello" || echo status $?`,
		bare:   "hello by HTTP/2.0\n", inside: `^status \d+\n$`, closing: `files\.example\.org`,
	},
	{
		name: "another Host in the clear", policy: "files.example.org",
		script: `curl -sS -m 20 -H 'Host: other.example.org' http://files.example.org/`,
		bare:   "the other host\n", inside: `^holdfast refused files\.example\.org:80: `, closing: `files\.example\.org|other\.example\.org`,
	},
	{
		name: "another authority where TLS is terminated", policy: "{host: files.example.org, inspect: true}",
		script: `curl -sS -m 20 -H 'Host: other.example.org' -w '%{http_code}' https://files.example.org/`,
		bare:   "the other host\n200", inside: `4\d\d$`, closing: `files\.example\.org|other\.example\.org`,
	},
	{
		name: "another method", policy: "{host: files.example.org, methods: [GET]}",
		script: `curl -sS -m 20 https://files.example.org/hello; for i in 1 2 3 4 5; do curl -sS -m 20 -d x -w '%{http_code}\n' https://files.example.org/count; done`,
		bare:   "hello by HTTP/2.0\n" + strings.Repeat("POST of 1 bytes <nil>\n200\n", 5), inside: `^hello by HTTP/2.0\n([^\n]*files\.example\.org[^\n]*\n403\n){5}$`, closing: `files\.example\.org`,
	},
	{
		name: "another path", policy: "{host: files.example.org, paths: [/hello]}",
		script: `curl -sS -m 20 https://files.example.org/hello; curl -sS -m 20 -w '%{http_code}\n' https://files.example.org/ranges; curl -sS --path-as-is -o /dev/null -w '%{http_code}\n' https://files.example.org/hello/../bytes/1`,
		bare:   "hello by HTTP/2.0\n0123456789\n200\n307\n", inside: `^hello by HTTP/2.0\n[^\n]*files\.example\.org[^\n]*\n403\n4\d\d\n$`, closing: `files\.example\.org`,
	},
	{
		name: "a server that cannot say who it is", policy: "{host: impostor.example.org, inspect: true}",
		script: `curl -sS -k -m 20 -o /dev/null -w '%{http_code}\n' https://impostor.example.org/ || true`,
		bare:   "421\n", inside: `^(50\d|000)\n$`,
	},
	{
		name: "a name that leads to a private address", policy: "intranet.example.org",
		script: `curl -sS -m 20 https://intranet.example.org/hello || echo status $?`,
		bare:   "hello by HTTP/2.0\n", inside: `^holdfast refused intranet\.example\.org:443: [^\n]*internal: true\n$`, closing: `intranet\.example\.org.*private address.*internal: true`,
	},
	{
		name: "the same, where the policy means it", policy: "{host: intranet.example.org, internal: true}",
		script: `curl -sS -m 20 https://intranet.example.org/hello`,
		bare:   "hello by HTTP/2.0\n", inside: `^hello by HTTP/2.0\n$`,
	},
	{
		name: "a name that leads to a metadata service", policy: "metadata.example.org",
		script: `curl -sS -m 20 -w ' %{http_code}' http://metadata.example.org/hello`,
		bare:   "hello by HTTP/1.1\n 200", inside: `metadata\.example\.org.*\n 403$`, closing: `metadata\.example\.org`,
	},
	{
		name: "a name server of one's own", policy: "files.example.org",
		script: `python3 -c '
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(10)
s.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06secret\x05other\x07example\x03org\x00\x00\x01\x00\x01", ("11.0.0.53", 53))
answer = s.recv(512)
print(answer[3] & 15, b"\xc6\x12" in answer or b"\xc6\x13" in answer)'`,
		bare: "0 False\n", inside: `^0 True\n$`, closing: `other\.example\.org`,
	},
}

// TestNetworkRefusals tries what the policy does not allow.
func TestNetworkRefusals(t *testing.T) {
	testenv.WithNetwork(t, addresses, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := newWorld(t, n, root)
		asked := w.nameServer()
		for _, a := range attempts {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				a.run(t, w)
			})
		}
		t.Run("two runs at once", func(t *testing.T) {
			t.Parallel()
			twoRuns(t, w)
		})
		t.Cleanup(func() {
			questions := 0
			for name, n := range asked() {
				if strings.Contains(name, "\x07example\x03org") {
					questions += n
				}
			}
			if questions > 1 { // one comes from the control without a boundary
				t.Errorf("%d queries went out: %v", questions, asked())
			}
		})
	})
}

func (a attempt) run(t *testing.T, w *world) {
	p := newFixture(t, w.root, testenv.Curl, testenv.Python)
	script := strings.ReplaceAll(a.script, "{ip}", addresses[filesHost])
	if got := p.bare(script); got != a.bare {
		t.Fatalf("without a boundary: %q, want %q", got, a.bare)
	}
	p.write(map[string]string{"../policy.yaml": "version: 1\nextends: local\nnetwork:\n  allow:\n    - " + a.policy + "\n"})
	out, end := p.both(testenv.Binary(t), "run", "--policy", p.ws+"/../policy.yaml", "--", "sh", "-euc", script)
	if !regexp.MustCompile(a.inside).MatchString(out) {
		t.Errorf("inside: %q does not match %q\n%s", out, a.inside, end)
	}
	if !regexp.MustCompile("(?m)" + a.closing).MatchString(end) {
		t.Errorf("at the end: %q does not match %q", end, a.closing)
	}
}

// twoRuns lets one run try to use the proxies, names and addresses of another.
func twoRuns(t *testing.T, w *world) {
	p := newFixture(t, w.root, testenv.Curl)
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	first := p.command(ctx, testenv.Binary(t), "run", "--allow", filesHost, "--", "sh", "-euc", `
		getent ahostsv4 files.example.org | head -1 | cut -d' ' -f1
		read wait
		curl -sS -x http://127.0.0.1:3128 https://files.example.org/hello`)
	in, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := first.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	heard := bufio.NewReader(out)
	address, err := heard.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)

	beside := t.TempDir()
	second := newFixture(t, beside, testenv.Curl)
	got := second.inside(`
		curl -sS -m 20 https://files.example.org/hello
		curl -sS -k -m 20 --connect-to files.example.org:443:`+address+`:443 https://files.example.org/hello
		curl -sS -m 20 -x http://127.0.0.1:3128 https://files.example.org/hello 2>&1 || echo no proxy
		curl -sS -m 20 -x socks5h://127.0.0.1:3128 https://files.example.org/hello 2>&1 || echo no socks
		curl -sS https://other.example.org/`, "--allow", otherHost)
	contains(t, got, "holdfast refused files.example.org:443: no rule", "holdfast refused "+address+":443: no name maps", "403", "no proxy\n", "no socks\n", "the other host\n")
	// The host cannot reach them either.
	contains(t, second.bare(`curl -sS -m 20 -x http://127.0.0.1:3128 http://files.example.org/hello 2>&1 || echo no proxy`), "no proxy")
	contains(t, second.bare(`curl -sS -k -m 5 --connect-to files.example.org:443:`+address+`:443 https://files.example.org/hello 2>&1 || echo no address`), "no address")

	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(heard)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil || string(rest) != "hello by HTTP/2.0\n" {
		t.Errorf("the first run: %v, %q", err, rest)
	}
}
