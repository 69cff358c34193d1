package realtest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// measuredVar contains the commands that a process of TestFence must measure.
const measuredVar = "HOLDFAST_TEST_MEASURED"

const fenceRounds = 5

// TestFence compares the processor time of basic operations with that of
// bubblewrap, in the same run: a change that makes a start 50 % more expensive
// fails here, even if no one reads the report of the bench. It counts all
// processes, including orphans, and no waiting time. A limit is the measured
// value plus half; the bench has the goals.
func TestFence(t *testing.T) {
	if text := os.Getenv(measuredVar); text != "" {
		measure(t, text)
		return
	}
	testenv.Need(t, "bubblewrap", func() error { return exec.Command("bwrap", "--version").Run() })
	p := newFixture(t, t.TempDir(), testenv.FUSE)
	p.write(map[string]string{"f": "x"})
	port := listen(t)
	for _, row := range []struct {
		name    string
		flags   []string
		command []string
		most    float64 // times the cost with bubblewrap
	}{
		{"start", nil, []string{"/bin/true"}, 9.5},
		{"200 execs", nil, []string{"/bin/sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"}, 2.3},
		{"10,000 opens", nil, []string{"/usr/bin/python3", "-c", "for i in range(10000): open('f').close()"}, 2.2},
		{"50 connections", []string{"--host-port", port}, []string{"/usr/bin/python3", "-c",
			"import socket\nfor i in range(50): socket.create_connection(('127.0.0.1', " + port + ")).recv(1)"}, 4.7},
	} {
		t.Run(row.name, func(t *testing.T) {
			peer := append([]string{"bwrap", "--unshare-all", "--share-net", "--die-with-parent", "--ro-bind", "/", "/",
				"--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--bind", p.ws, p.ws, "--chdir", p.ws, "--"}, row.command...)
			ours := slices.Concat([]string{testenv.Binary(t), "run"}, row.flags, []string{"--"}, row.command)
			took := p.measured(peer, ours)
			ratio := float64(took[1]) / float64(took[0])
			t.Logf("%v, bubblewrap %v: %.1f times", took[1], took[0], ratio)
			if ratio > row.most {
				t.Errorf("takes %.1f times the processor time of bubblewrap, at most %.1f is borne with: profile it (go run ./bench)", ratio, row.most)
			}
		})
	}
}

// listen sends one byte on each connection to the port that it returns.
func listen(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("x")) // a client that has gone reports that itself
			c.Close()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// measured is the median processor time of each command, measured in a separate
// process, which becomes the parent of the commands' orphans.
func (p *fixture) measured(commands ...[]string) []time.Duration {
	p.t.Helper()
	text, err := json.Marshal(commands)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFence$", "-test.v")
	cmd.Dir, cmd.Env = p.ws, append(slices.Clone(p.env), measuredVar+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	var took []time.Duration
	for line := range strings.Lines(string(out)) {
		if _, said, ok := strings.Cut(line, "median "); ok {
			d, err := time.ParseDuration(strings.TrimSpace(said))
			if err != nil {
				p.t.Fatal(err)
			}
			took = append(took, d)
		}
	}
	if len(took) != len(commands) {
		p.t.Fatalf("%d of %d commands were measured:\n%s", len(took), len(commands), out)
	}
	return took
}

// measure runs the commands in turn and prints the medians of their costs.
func measure(t *testing.T, text string) {
	var commands [][]string
	if err := json.Unmarshal([]byte(text), &commands); err != nil {
		t.Fatal(err)
	}
	if err := os.Unsetenv(measuredVar); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	costs := make([][]time.Duration, len(commands))
	for range fenceRounds {
		for i, c := range commands {
			costs[i] = append(costs[i], cost(t, c))
		}
	}
	for _, c := range costs {
		slices.Sort(c)
		fmt.Println("median", c[len(c)/2])
	}
}

// cost is the processor time of a command and all its descendants.
func cost(t *testing.T, command []string) time.Duration {
	t.Helper()
	before := testenv.ProcessorTime(t, unix.RUSAGE_CHILDREN)
	cmd := exec.Command(command[0], command[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(command[0]), err, out)
	}
	for { // orphans
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			break
		} else if err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	return testenv.ProcessorTime(t, unix.RUSAGE_CHILDREN) - before
}
