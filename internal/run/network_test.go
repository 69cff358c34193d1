//go:build linux

package run

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// hosts of the private network of these tests.
var hosts = map[string]string{"allowed.test": "93.184.215.14", "denied.test": "93.184.215.15", "inner.test": "10.9.8.7"}

// site serves a line at an address of the other side, and counts the
// connections.
func site(t *testing.T, n *testenv.Network, address string) *counted {
	t.Helper()
	remote, err := n.Listen(address)
	if err != nil {
		t.Fatal(err)
	}
	l := &counted{Listener: remote}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s says %s\n", address, r.URL.Path)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l
}

type counted struct {
	net.Listener
	n atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

func allow(rules ...policy.HostRule) []policy.HostRule { return rules }

// browse is a task that fetches what the script asks for.
func browse(t *testing.T, script string) (*Task, func() string) {
	t.Helper()
	task, out := newBench(t, "sh", "-c", script)
	return task, out.String
}

const fetch = "curl -sS --max-time 10 "

// TestEveryRung reaches what is allowed, and nothing else, by each way to
// intercept but the one that needs root's device.
func TestEveryRung(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		for _, rung := range []boundary.Rung{boundary.TProxy, boundary.Redirect, boundary.Ports} {
			t.Run(string(rung), func(t *testing.T) { reaches(t, n, rung) })
		}
	})
}

func TestRootTunRung(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) { reaches(t, n, boundary.Tun) })
}

func reaches(t *testing.T, n *testenv.Network, rung boundary.Rung) {
	allowed, denied := site(t, n, "93.184.215.14:80"), site(t, n, "93.184.215.15:80")
	task, out := browse(t, fetch+"http://allowed.test/a; "+fetch+"http://denied.test/b; "+fetch+"http://93.184.215.15/c; "+
		fetch+"http://93.184.215.14/d; "+fetch+"-H 'Host: denied.test' http://allowed.test/e; "+fetch+"https://denied.test/f; "+fetch+"https://93.184.215.15/g; "+
		"getent ahostsv4 no.invalid || echo no name; true")
	task.Rungs = []boundary.Rung{rung}
	task.Plan.Allow = allow(policy.HostRule{Host: "allowed.test", Ports: []int{80}, Kind: policy.HTTP})
	testenv.NoGoroutines(t)
	r, err := task.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out(), "93.184.215.14:80 says /a") || allowed.n.Load() != 1 || denied.n.Load() != 0 {
		t.Errorf("printed %q; %d connections to the allowed host, %d to the other", out(), allowed.n.Load(), denied.n.Load())
	}
	// What is refused is answered, also in TLS, which curl trusts.
	for _, want := range []string{"refused denied.test:80: no rule", "refused 93.184.215.15:80: no name", "refused denied.test:443: no rule", "refused 93.184.215.15:443: no name", "\nno name\n"} {
		if !strings.Contains(out(), want) {
			t.Errorf("printed %q, without %q", out(), want)
		}
	}
	var refused []string
	for _, f := range r.Refused {
		refused = append(refused, fmt.Sprintf("%s:%d %v", f.Name, f.Port, f.High))
	}
	for _, want := range []string{"denied.test:80 false", "denied.test:443 false", "no.invalid:0 false", "93.184.215.15:80 false", "93.184.215.14:80 false", "allowed.test:80 true"} {
		if !strings.Contains(strings.Join(refused, "\n"), want) {
			t.Errorf("refused are %q, without %q", refused, want)
		}
	}
}

// TestReload changes the rules of a running run.
func TestReload(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		site(t, n, "93.184.215.14:80")
		site(t, n, "93.184.215.15:80")
		task, out := browse(t, fetch+"http://allowed.test/1; touch first; for i in $(seq 100); do "+fetch+"-f http://denied.test/2 && break; sleep 0.1; done; "+fetch+"http://allowed.test/3; true")
		one := policy.HostRule{Host: "allowed.test", Ports: []int{80}, Kind: policy.HTTP}
		other := policy.HostRule{Host: "denied.test", Ports: []int{80}, Kind: policy.HTTP}
		task.Plan.Allow = allow(one)
		plans := []policy.Plan{{Allow: allow(policy.HostRule{Host: "not valid"})}, {Allow: allow(policy.HostRule{Host: "x.test", Kind: policy.TLS})}, {Allow: allow(other)}}
		replans := 0
		task.Replan = func() (policy.Plan, error) { replans++; return plans[replans-1], nil }
		done := make(chan error, 1)
		go func() {
			_, err := task.Run(t.Context())
			done <- err
		}()
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			if _, err := os.Stat(task.Plan.Workspace + "/first"); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		for replans < len(plans) && time.Now().Before(deadline) {
			all, err := Reload(t.Context(), task.State)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range all {
				last := replans == len(plans)
				if one.Err != nil && last || one.Err == nil && !last && replans > 0 {
					t.Errorf("reload %d: %v", replans, one.Err)
				}
			}
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := out(); !strings.Contains(got, "says /1\n") || !strings.Contains(got, "says /2\n") || strings.Contains(got, "says /3") {
			t.Errorf("printed %q", got)
		}
	})
}

// TestHostPort reaches one service of the host's loopback and not the others.
func TestHostPort(t *testing.T) {
	services := [2]net.Listener{}
	for i := range services {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		services[i] = l
		go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "service", i) }))
	}
	port := func(i int) int { return services[i].Addr().(*net.TCPAddr).Port }
	task, out := browse(t, fmt.Sprintf(fetch+"http://127.0.0.1:%d/; "+fetch+"http://127.0.0.1:%d/; true", port(0), port(1)))
	task.Plan.HostPorts = []policy.Port{{Host: port(0), Inside: port(0)}}
	if _, err := task.Run(t.Context()); err != nil || out() != "service 0\n" {
		t.Errorf("printed %q, %v", out(), err)
	}
}
