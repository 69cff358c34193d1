//go:build linux

package supervise

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestSocketOutcomes holds what was foreseen of calls with addresses against what came.
func TestSocketOutcomes(t *testing.T) {
	dir := makeTree(t)
	for _, kind := range []string{"unix", "unixgram"} {
		// One that is served, and one that is no longer open anywhere.
		for _, name := range []string{dir + "/" + kind, dir + "/stale-" + kind, "@served-" + kind + strconv.Itoa(unix.Getpid())} {
			c := listenAt(t, kind, name)
			if strings.Contains(name, "stale") {
				c.Close()
			}
		}
	}
	local := func(path string) []byte { return append([]byte{unix.AF_UNIX, 0}, path...) }
	served := "\x00served-unix" + strconv.Itoa(unix.Getpid())
	abroad := []byte{unix.AF_INET, 0, 0x27, 0x0f, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0} // TEST-NET-1 of RFC 5737, port 9999
	const stream, datagram, file = 40, 41, 42
	connect := func(fd int, b []byte) aCall { return aCall{NR: unix.SYS_CONNECT, Args: []any{fd, b, len(b)}} }
	bind := func(fd int, b []byte) aCall { return aCall{NR: unix.SYS_BIND, Args: []any{fd, b, len(b)}} }
	calls := []aCall{
		{NR: unix.SYS_SOCKET, Args: []any{unix.AF_UNIX, unix.SOCK_STREAM, 0}, As: stream},
		{NR: unix.SYS_SOCKET, Args: []any{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, As: datagram},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "file", unix.O_RDONLY, 0}, As: file},
		connect(stream, local("none\x00")),
		connect(stream, local("file\x00")),
		connect(stream, local("stale-unix\x00")),
		connect(stream, local("unixgram\x00")),
		connect(stream, local("\x00nobody")),
		connect(stream, local("")),
		connect(file, local("unix\x00")),
		connect(99, local("unix\x00")),
		bind(stream, local("file\x00")),
		bind(stream, local("none/x\x00")),
		bind(stream, local(served)),
		connect(datagram, local("unix\x00")),
		connect(datagram, local("stale-unixgram\x00")),
		{NR: unix.SYS_SENDTO, Args: []any{datagram, []byte("x"), 1, 0, local("none\x00"), 7}},
		connect(datagram, local("unixgram\x00")),
		connect(stream, local("unix\x00")),
	}
	r, got := makeCalls(t, dir, calls)
	var seen []event.Event
	for _, e := range r.sink.events {
		if strings.HasPrefix(e.Action, "sock.") {
			seen = append(seen, e)
		}
	}
	if len(seen) != len(calls)-3 {
		t.Fatalf("%d events, want %d: %s", len(seen), len(calls)-3, r.dump())
	}
	for i, e := range seen {
		if want := strings.TrimPrefix(got[i+3], "-"); e.Error != want || e.Verdict != event.Allowed {
			t.Errorf("%s %q by descriptor %s: foreseen %v %q, came to %s", e.Action, e.Object, e.Detail["fd"], e.Verdict, e.Error, got[i+3])
		}
	}
	if abroadIs := dropsOf(t, dir, abroad); abroadIs != "denied egress" {
		t.Errorf("a datagram that goes nowhere: %s", abroadIs)
	}
}

// TestSocketOutsideView: one that the view does not have is refused by it.
func TestSocketOutsideView(t *testing.T) {
	dir := makeTree(t)
	listenAt(t, "unix", dir+"/empty/outside")
	address := append([]byte{unix.AF_UNIX, 0}, dir+"/empty/outside\x00"...)
	r, _ := makeCalls(t, dir, []aCall{
		{NR: unix.SYS_SOCKET, Args: []any{unix.AF_UNIX, unix.SOCK_STREAM, 0}, As: 40},
		{NR: unix.SYS_CONNECT, Args: []any{40, address, len(address)}},
	}, trees(policy.Tree{Path: "/proc", Access: policy.Write}, policy.Tree{Path: "/usr", Access: policy.Read}, policy.Tree{Path: dir + "/sub", Access: policy.Write}))
	if e := r.last(event.SockConnect); e.Verdict != event.Denied || e.Layer != event.LayerView || e.Error != "ENOENT" {
		t.Errorf("%+v", e)
	}
}

// listenAt serves a local socket until the test ends.
func listenAt(t *testing.T, kind, name string) interface{ Close() error } {
	t.Helper()
	if kind == "unixgram" {
		c, err := net.ListenUnixgram(kind, &net.UnixAddr{Name: name, Net: kind})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	l, err := net.ListenUnix(kind, &net.UnixAddr{Name: name, Net: kind})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	return l
}

// dropsOf is verdict and layer of a datagram to an address where connections go to the
// egress. It goes to a network that no host has (RFC 5737).
func dropsOf(t *testing.T, dir string, to []byte) string {
	t.Helper()
	r, _ := makeCalls(t, dir, []aCall{
		{NR: unix.SYS_SOCKET, Args: []any{unix.AF_INET, unix.SOCK_DGRAM, 0}, As: 40},
		{NR: unix.SYS_CONNECT, Args: []any{40, to, len(to)}},
		{NR: unix.SYS_SENDTO, Args: []any{40, []byte("x"), 1, 0, to, len(to)}},
	}, func(_ *run, c *Config, _ *exec.Cmd) { c.View.Intercepted = true })
	if e := r.last(event.SockConnect); e.Verdict != event.Allowed {
		t.Errorf("connecting a socket for datagrams sends none: %+v", e)
	}
	e := r.last(event.SockSend)
	return e.Verdict.String() + " " + e.Layer
}
