//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const classEgress = "net.direct-egress"

// netDenials are Denials and what a network that is not there answers.
var netDenials = append([]string{"EHOSTUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENODEV", "ETIMEDOUT"}, Denials...)

func egressRows() []Row {
	rows := append(egressDirect(), egressOther()...)
	for i := range rows {
		rows[i].Trace = networkTraces()[rows[i].ID]
	}
	return rows
}

// answered is why a connection that is made is no escape by itself.
const answered = "who takes a connection may be a gateway of the sandbox: whether the service was reached, its listener says"

// egressDirect are ways to a service that listens on the host.
func egressDirect() []Row {
	return []Row{
		{ID: "NET-001", Class: classEgress, Core: true, Kind: Sandbox, Promise: "P5",
			Title: "a service on the host's loopback is reached by TCP",
			Refs:  []string{"github.com/Kilo-Org/kilocode/pull/11596"}, Accept: netDenials,
			Setup: services("tcp 127.0.0.1:0"), Action: "dial"},
		{ID: "NET-003", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "a service on the host's IPv6 loopback, or its IPv4 loopback in IPv6 spelling, is reached",
			Refs:  []string{"ipv6(7)"}, Accept: netDenials,
			Setup: services("tcp [::1]:0", "tcp [::ffff:127.0.0.1]:0"), Action: "dial"},
		{ID: "NET-004", Class: classEgress, Core: true, Kind: Sandbox, Promise: "P5",
			Title: "a datagram reaches the host",
			Refs:  []string{"udp(7)"}, Accept: netDenials,
			Setup: services("udp 127.0.0.1:0", "udp [::1]:0"), Action: "dial",
			Harmless: "a datagram to a loopback of one's own goes nowhere"},
		{ID: "NET-006", Class: classEgress, Core: true, Kind: Sandbox, Promise: "P5",
			Title: "a client that ignores the proxy reaches a service",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"}, Accept: netDenials,
			Setup: services("tcp 127.0.0.1:0"), Action: "http", Harmless: answered},
		{ID: "NET-008", Class: classEgress, Core: true, Kind: Sandbox, Promise: "P5",
			Title: "the shell's /dev/tcp and /dev/udp reach a service",
			Refs:  []string{"bash(1) REDIRECTION"}, Needs: []string{"bash"}, Accept: netDenials,
			Setup: services("tcp 127.0.0.1:0", "udp 127.0.0.1:0"), Action: "shell-dial",
			Harmless: "a datagram to a loopback of one's own goes nowhere, and " + answered},
		{ID: "NET-009", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "the usual clients reach a service, with and without a proxy in the environment",
			Refs:  []string{"curl(1)", "ssh(1)", "git-ls-remote(1)"}, Needs: []string{"bash"}, Accept: netDenials,
			Setup: services("tcp 127.0.0.1:0"), Action: "client-dial", Timeout: 60 * time.Second, Harmless: answered},
		{ID: "NET-013", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "TCP fast open, multipath TCP and SCTP reach a service",
			Refs:  []string{"Landlock: multipath TCP is not covered", "tcp(7) MSG_FASTOPEN"}, Accept: netDenials,
			Setup: services("tcp 127.0.0.1:0"), Action: "odd-dial", Harmless: answered},
	}
}

// services opens listeners and tells the action where they are.
func services(which ...string) func(*World) error {
	return func(w *World) error {
		var at []string
		for _, s := range which {
			network, addr, _ := strings.Cut(s, " ")
			l, err := w.Listen(network, addr)
			if err != nil {
				return fmt.Errorf("%w: listening on %s: %v", ErrMissing, addr, err)
			}
			at = append(at, network+" "+l.Addr)
		}
		w.Arg("at=" + strings.Join(at, "\n"))
		return nil
	}
}

// egressOther are ways to more of the network than its sockets.
func egressOther() []Row {
	return []Row{
		{ID: "NET-010", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "an echo request is sent, from a raw or a ping socket, or a packet below IP",
			Refs:  []string{"icmp(7)", "raw(7)", "packet(7)"}, BareUser: asRoot, Accept: netDenials,
			Action: "low-sockets"},
		{ID: "NET-018", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "a network namespace that lies in the file system is joined",
			Refs:  []string{"CVE-2026-32038", "ip-netns(8)"}, Needs: []string{"root"},
			Setup:   networkInFile,
			Options: Options{Read: []string{"B/netns"}},
			Accept:  append([]string{"EINVAL"}, netDenials...), RefusalHolds: true,
			Action: "join-file", Args: []string{"path=B/netns/host"}},
		{ID: "NET-019", Class: classEgress, Kind: Sandbox, Promise: "P5",
			Title: "an interface, an address or a filter is changed, to what it is",
			Refs:  []string{"netdevice(7)", "rtnetlink(7)"}, BareUser: asRoot, Accept: netDenials,
			Action: "set-interface"},
		{ID: "NET-019b", Class: classEgress, Kind: Control, Promise: "P5",
			Title:  "a server inside is reached from inside",
			Refs:   []string{"ip(7)"},
			Action: "own-loopback"},
	}
}

// networkInFile puts the network namespace of the host where it can be opened.
func networkInFile(w *World) error {
	if err := w.File("B/netns/host", ""); err != nil {
		return err
	}
	if err := unix.Mount("/proc/self/ns/net", w.Path("B/netns/host"), "", unix.MS_BIND, ""); err != nil {
		return err
	}
	_, err := os.Stat(w.Path("B/netns/host"))
	return err
}
