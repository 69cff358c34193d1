//go:build linux

package native

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// openDir is a temporary directory that other users may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// behindDoors runs a shell script behind doors of the given rungs, and gives the
// doors to serve. It returns what the script printed.
func behindDoors(t *testing.T, n boundary.Network, script string, serve func(boundary.Doors)) string {
	t.Helper()
	return behindDoorsAt(t, openDir(t), n, script, serve)
}

// behindDoorsAt does it in a workspace.
func behindDoorsAt(t *testing.T, work string, n boundary.Network, script string, serve func(boundary.Doors)) string {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	n.Open = func(d boundary.Doors) error {
		t.Cleanup(d.Close)
		serve(d)
		return nil
	}
	p, err := (&Backend{}).Start(t.Context(), boundary.Spec{
		Argv: []string{"bash", "-c", script}, Network: &n,
		Plan: policy.Plan{Workspace: work, Dir: work,
			Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Name: "tester", Home: "/home/tester"},
			Env:      []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Stdin().Close()
	var out bytes.Buffer
	io.Copy(&out, io.MultiReader(p.Stdout(), p.Stderr()))
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// answer accepts connections and sends each the address that it dialled.
func answer(t *testing.T, f *os.File) {
	l, err := net.FileListener(f)
	if err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(c, "you dialled %s\n", c.LocalAddr())
			c.Close()
		}
	}()
}

func TestDoors(t *testing.T) {
	testenv.Need(t, testenv.Bash, nil)
	dial := func(host string, port int) string {
		return fmt.Sprintf("(cat < /dev/tcp/%s/%d) 2>&1 | head -1; ", host, port)
	}
	for _, tt := range []struct {
		name      string
		network   boundary.Network
		script    string
		want      []string
		wantNever string
	}{
		{"a connection to any address and port arrives", boundary.Network{Intercept: true}, dial("93.184.215.14", 4711) + dial("2606:2800::1", 443),
			[]string{"you dialled 93.184.215.14:4711", "you dialled [2606:2800::1]:443"}, "refused"},
		{"a connection to the loopback does not", boundary.Network{Intercept: true}, dial("127.0.0.1", 4711) + dial("::1", 443),
			[]string{"onnection refused"}, "dialled"},
		{"one to our own listener is seen as that", boundary.Network{Intercept: true}, dial("127.77.0.1", 15001),
			[]string{"you dialled 127.77.0.1:15001"}, ""},
		{"the ports of the command stay free", boundary.Network{Intercept: true},
			"python3 -c 'import socket; s=socket.socket(); s.bind((\"0.0.0.0\", 443)); print(\"bound\")'", []string{"ermission denied"}, "in use"},
		{"without interception an address is unreachable", boundary.Network{}, dial("93.184.215.14", 443), []string{"unreachable"}, "dialled"},
		{"a host port is on the loopback", boundary.Network{HostPorts: []int{5432}}, dial("127.0.0.1", 5432), []string{"you dialled 127.0.0.1:5432"}, "refused"},
		{"with listeners on some ports those arrive", boundary.Network{Intercept: true, Rungs: []boundary.Rung{boundary.Ports}}, dial("1.2.3.4", 443) + dial("1.2.3.4", 4711),
			[]string{"you dialled 1.2.3.4:443", "onnection refused"}, "4711"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := behindDoors(t, tt.network, tt.script, func(d boundary.Doors) {
				for _, f := range d.TCP {
					answer(t, f)
				}
				for _, f := range d.HostPorts {
					answer(t, f)
				}
			})
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("printed %q, without %q", out, want)
				}
			}
			if tt.wantNever != "" && strings.Contains(out, tt.wantNever) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestNameDoor(t *testing.T) {
	testenv.Need(t, testenv.Bash, nil)
	for _, intercept := range []bool{false, true} {
		t.Run(fmt.Sprintf("interception %v", intercept), func(t *testing.T) {
			asked := make(chan string, 1)
			work := openDir(t)
			behindDoorsAt(t, work, boundary.Network{Intercept: intercept}, "cat /etc/resolv.conf; echo who > /dev/udp/127.0.0.53/53; until test -e heard; do sleep 0.02; done", func(d boundary.Doors) {
				c, err := net.FilePacketConn(d.DNS)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { c.Close() })
				go func() {
					buf := make([]byte, 100)
					c.SetReadDeadline(time.Now().Add(patience))
					n, _, _ := c.ReadFrom(buf)
					if err := os.WriteFile(work+"/heard", nil, 0o644); err != nil {
						t.Error(err)
					}
					asked <- string(buf[:n])
				}()
			})
			if got := <-asked; got != "who\n" {
				t.Errorf("the door heard %q", got)
			}
		})
	}
}

func TestEachRung(t *testing.T) {
	for _, rung := range boundary.Rungs {
		if rung == boundary.Tun {
			continue // TestRootTun
		}
		t.Run(string(rung), func(t *testing.T) { takesRung(t, rung) })
	}
}

// TestRootTun needs a device that is root's alone on most machines.
func TestRootTun(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	takesRung(t, boundary.Tun)
}

func takesRung(t *testing.T, rung boundary.Rung) {
	t.Helper()
	var got boundary.Doors
	behindDoors(t, boundary.Network{Intercept: true, Rungs: []boundary.Rung{rung}}, "true", func(d boundary.Doors) { got = d })
	if got.Rung != rung || (got.TUN != nil) != (rung == boundary.Tun) {
		t.Errorf("got the rung %s, with a device: %v", got.Rung, got.TUN != nil)
	}
}

// TestNextRung makes the better rungs fail.
func TestNextRung(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	work := t.TempDir()
	b := &Backend{tamper: func(p *program) {
		for i, o := range p.ops {
			if strings.HasPrefix(o.name, "intercept: rules") && o.name != "intercept: rules"+acknowledged {
				p.ops[i].nr, p.ops[i].args, p.ops[i].refs = unix.SYS_CLOSE, [6]uint64{1<<32 - 1}, 0
			}
		}
	}}
	var got boundary.Rung
	p, err := b.Start(t.Context(), boundary.Spec{
		Argv: []string{"true"}, Plan: policy.Plan{Workspace: work, Dir: work, Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Home: "/home/tester"},
			Env: []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}}},
		Network: &boundary.Network{Intercept: true, Rungs: []boundary.Rung{boundary.TProxy, boundary.Redirect, boundary.Ports},
			Open: func(d boundary.Doors) error { got = d.Rung; d.Close(); return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill("")
	p.Wait()
	if got != boundary.Ports {
		t.Errorf("got the rung %s", got)
	}
	_, err = b.Start(t.Context(), boundary.Spec{Argv: []string{"true"}, Plan: policy.Plan{Workspace: work, Dir: work},
		Network: &boundary.Network{Intercept: true, Rungs: []boundary.Rung{boundary.TProxy, boundary.Redirect}}})
	var missing *boundary.GapError
	if !errors.As(err, &missing) || missing.Missing[0].Guarantee != policy.Interception {
		t.Errorf("with no rung left: %v", err)
	}
}

// TestDoorsThatNobodyServes: the function that receives the doors can stop the launch,
// and no door is left open.
func TestDoorsThatNobodyServes(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	work := t.TempDir()
	before := countDescriptors(t)
	refusal := errors.New("nobody is there to decide")
	p, err := (&Backend{}).Start(t.Context(), boundary.Spec{
		Argv: []string{"touch", work + "/ran"}, Plan: policy.Plan{Workspace: work, Dir: work,
			Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Home: "/home/tester"},
			Env:      []policy.Env{{Name: "PATH", Value: "/usr/bin:/bin"}}},
		Network: &boundary.Network{Intercept: true, Open: func(d boundary.Doors) error { d.Close(); return refusal }},
	})
	if !errors.Is(err, refusal) {
		t.Errorf("started: %v, %v", p, err)
	}
	if _, err := os.Lstat(work + "/ran"); err == nil {
		t.Error("the command ran")
	}
	if now := countDescriptors(t); now > before {
		t.Errorf("%d descriptors were open, now %d", before, now)
	}
}
