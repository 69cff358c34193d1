//go:build linux

package sensors

import (
	"bufio"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Limits of what is found out about ports, all of which a hostile program can try.
const (
	maxPorts     = 64       // that are kept
	maxPortLooks = 8        // at one port
	maxLooks     = 256      // at all ports
	maxListed    = 64 << 10 // bytes of the kernel's list of sockets
)

// loopback finds the ports of the run's loopback that programs inside connect to and
// nothing listens at: often a service of the host is meant. What it finds is for people;
// no decision depends on it.
type loopback struct {
	mu    sync.Mutex // guards what follows
	ports []*loopbackPort
	looks int
}

type loopbackPort struct {
	number int
	looks  int
	missed bool // a connection found nothing
	served bool // something inside listened, or may have
}

// note takes a connect or a bind. first is a process of the run.
func (l *loopback) note(e event.Event, first int) {
	if e.Verdict != event.Allowed || e.Error != "" || e.Detail["type"] != "" {
		return
	}
	at, err := netip.ParseAddrPort(e.Object)
	if ip := at.Addr().Unmap(); err != nil || at.Port() == 0 || at.Port() == 53 || !ip.IsLoopback() && !ip.IsUnspecified() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.port(int(at.Port()))
	switch {
	case p == nil || p.served:
	case e.Action == event.SockBind:
		p.served = true
	case p.looks == maxPortLooks || l.looks == maxLooks:
	default:
		p.looks, l.looks = p.looks+1, l.looks+1
		p.missed, p.served = true, listens(first, at.Port())
	}
}

// port is what is known of a port; nil if it is one too many.
func (l *loopback) port(number int) *loopbackPort {
	for _, p := range l.ports {
		if p.number == number {
			return p
		}
	}
	if len(l.ports) == maxPorts {
		return nil
	}
	p := &loopbackPort{number: number}
	l.ports = append(l.ports, p)
	return p
}

// refused lists the ports where nothing listened, in the order of the first time.
func (l *loopback) refused() (all []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.ports {
		if p.missed && !p.served {
			all = append(all, p.number)
		}
	}
	return all
}

// listens reports whether a TCP socket listens at a port in the network of a process,
// also if there are too many sockets to tell (proc_net_tcp in the kernel's
// documentation).
func listens(pid int, port uint16) bool {
	const state = "0A" // TCP_LISTEN
	want := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			return true
		}
		defer f.Close()
		left := &io.LimitedReader{R: f, N: maxListed}
		for lines := bufio.NewScanner(left); lines.Scan(); {
			fields := strings.Fields(lines.Text()) // number, own address, peer's, state, …
			if len(fields) >= 4 && fields[3] == state && strings.HasSuffix(fields[1], want) {
				return true
			}
		}
		if left.N == 0 {
			return true
		}
	}
	return false
}

// notePort passes on an event of the command.
func (s *Set) notePort(e event.Event) {
	if e.Action != event.SockConnect && e.Action != event.SockBind || !s.began.Load() {
		return
	}
	s.clients.mu.Lock()
	first := s.clients.first
	s.clients.mu.Unlock()
	s.ports.note(e, first)
}

// RefusedPorts lists the ports of the run's loopback that were connected to and where
// nothing inside listened.
func (s *Set) RefusedPorts() []int { return s.ports.refused() }
