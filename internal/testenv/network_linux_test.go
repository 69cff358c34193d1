package testenv

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestNetwork(t *testing.T) {
	WithNetwork(t, map[string]string{"public.test": "93.184.215.14", "six.test": "2606:2800:21f:cb07::1"}, func(t *testing.T, n *Network) {
		for _, tt := range []struct{ name, listen, dial string }{
			{"a public address is listened on", "1.2.3.4:443", "1.2.3.4:443"},
			{"an address of a metadata service is listened on", "169.254.169.254:80", "169.254.169.254:80"},
			{"a private address is listened on", "10.9.8.7:22", "10.9.8.7:22"},
			{"a name of the test leads to its address", "93.184.215.14:80", "public.test:80"},
			{"a name of the test leads to its IPv6 address", "[2606:2800:21f:cb07::1]:443", "six.test:443"},
			{"a unique local address is listened on", "[fd00:ec2::254]:80", "[fd00:ec2::254]:80"},
		} {
			t.Run(tt.name, func(t *testing.T) { greet(t, n, tt.listen, tt.dial) })
		}
		t.Run("where nobody listens, connections are refused", func(t *testing.T) {
			if c, err := net.DialTimeout("tcp", "1.2.3.4:81", 10*time.Second); err == nil || os.IsTimeout(err) {
				t.Errorf("got %v, %v", c, err)
			}
		})
		t.Run("the resolver of the test is asked", func(t *testing.T) { asked(t, n) })
		t.Run("a server of the network is trusted", func(t *testing.T) { trusted(t, n) })
		t.Run("the user has no capability that he had not before", func(t *testing.T) {
			status, err := os.ReadFile("/proc/thread-self/status")
			if err != nil {
				t.Fatal(err)
			}
			if os.Geteuid() != 0 && !strings.Contains(string(status), "CapPrm:\t0000000000000000") {
				t.Errorf("%s", status)
			}
		})
		t.Run("what the test starts is in the network", func(t *testing.T) {
			out, err := exec.Command("cat", "/etc/hosts", "/proc/net/route").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "public.test") || !strings.Contains(string(out), "near0") {
				t.Errorf("%v: %s", err, out)
			}
		})
	})
}

// greet listens on the other side and reaches it from this one.
func greet(t *testing.T, n *Network, listen, dial string) {
	l, err := n.Listen(listen)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "from "+c.RemoteAddr().String())
			c.Close()
		}
	}()
	c, err := net.DialTimeout("tcp", dial, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); err != nil || string(b) != "from "+c.LocalAddr().String() {
		t.Errorf("got %q, %v", b, err)
	}
}

// trusted checks that the system's list of authorities is enough for a program.
func trusted(t *testing.T, n *Network) {
	l, err := n.Listen("93.184.215.14:443")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{n.Certificate(t, "public.test")}}
	server := &http.Server{TLSConfig: config, Handler: http.NotFoundHandler()}
	go server.ServeTLS(l, "", "")
	defer server.Close()
	answer, err := http.Get("https://public.test/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if !strings.Contains(string(n.Authority(t)), "BEGIN CERTIFICATE") || answer.StatusCode != http.StatusNotFound {
		t.Errorf("status %s, authority %q", answer.Status, n.Authority(t))
	}
}

func asked(t *testing.T, n *Network) {
	c, err := n.ListenPacket(NetworkResolver + ":53")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = net.DefaultResolver.LookupHost(ctx, "query.test")
	}()
	b := make([]byte, 512)
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	l, _, err := c.ReadFrom(b)
	cancel()
	c.Close()
	if err != nil || !strings.Contains(string(b[:l]), "\x05query\x04test") {
		t.Errorf("got %q, %v", b[:l], err)
	}
}

func TestNetworkSaysWhatIsWrong(t *testing.T) {
	WithNetwork(t, nil, func(t *testing.T, n *Network) {
		if l, err := n.Listen("nowhere"); err == nil || errors.Is(err, os.ErrClosed) {
			t.Errorf("got %v, %v", l, err)
		}
		if l, err := n.Listen("1.2.3.4:80"); err != nil {
			t.Error(err)
		} else {
			defer l.Close()
		}
		if l, err := n.Listen("1.2.3.4:80"); err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("got %v, %v", l, err)
		}
	})
}

func TestHoldfastRunsInANetwork(t *testing.T) {
	WithNetwork(t, map[string]string{"public.test": "93.184.215.14"}, func(t *testing.T, _ *Network) {
		cmd := exec.Command(Binary(t), "run", "--", "sh", "-c", "echo inside")
		cmd.Dir = t.TempDir()
		cmd.Env = append(HomeEnv(TempHome(t)), "PATH="+os.Getenv("PATH"))
		if out, err := cmd.Output(); err != nil || string(out) != "inside\n" {
			t.Errorf("got %q, %v, %+v", out, err, err)
		}
	})
}
