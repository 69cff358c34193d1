//go:build linux

package probe

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The ways out that an action tries: past every proxy, and through one in each of
// its protocols.
var allDoors = []string{"direct", "connect", "forward", "socks"}

// linesByDoor writes one line per way and URL.
func linesByDoor(doors []string, urls ...string) string {
	var b strings.Builder
	for _, u := range urls {
		for _, d := range doors {
			if d == "forward" && !strings.HasPrefix(u, "http:") {
				continue
			}
			fmt.Fprintf(&b, "%s %q\n", d, u)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sayLine writes one line that sends chunks to a destination.
func sayLine(to string, chunks ...string) string {
	for _, c := range chunks {
		to += " " + strconv.Quote(c)
	}
	return to
}

// listeners starts services on the host's own loopback that nothing may reach.
func listeners(at ...string) func(*World) error {
	return func(w *World) error {
		if _, err := w.internet(); err != nil {
			return err
		}
		for _, a := range at {
			if _, err := w.Listen("tcp", a); err != nil {
				return err
			}
		}
		return nil
	}
}

// hostServices starts one service on the host's loopback that is visible inside,
// and others that are not.
func hostServices(w *World) error {
	if err := listeners("127.0.0.1:5433", "[::1]:5433", "11.0.0.1:5433", "[::1]:5432", "11.0.0.1:5432")(w); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:5432")
	if err != nil {
		return err
	}
	w.Defer(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello from the host\n")
			c.Close()
		}
	}()
	return nil
}

func quiet(n *internet) { n.silent = true }

// tunnelled reports what got out in names below the wildcard, if it is more than
// a tool needs: data leaves in names that differ.
func tunnelled(w *World, _ Observation) []string {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	names := map[string]bool{}
	for _, q := range w.net.queries {
		if strings.HasSuffix(q.name, ".wild.test") {
			names[q.name] = true
		}
	}
	bytes := 0
	for name := range names {
		bytes += len(name)
	}
	if len(names) > 100 || bytes > 12<<10 {
		return []string{fmt.Sprintf("%d different names of %d bytes were asked for below a wildcard", len(names), bytes)}
	}
	return nil
}

// also runs a Setup and then steps in the network that it opened.
func also(first func(*World) error, more ...func(*internet)) func(*World) error {
	return func(w *World) error {
		if err := first(w); err != nil {
			return err
		}
		for _, f := range more {
			f(w.net)
		}
		return nil
	}
}

func resolvesAll(below string, addresses ...string) func(*internet) {
	return func(n *internet) {
		for i, a := range addresses {
			resolves(fmt.Sprintf("n%d.%s", i, below), addrs(a))(n)
		}
	}
}

// lookedUpOnce demands that a name is not looked up more than twice per connection.
func lookedUpOnce(w *World, _ Observation) []string {
	if a := w.net.asked("flip.test"); a > 2*24 {
		return []string{fmt.Sprintf("a name was looked up %d times for 24 connections", a)}
	}
	return nil
}

// services opens listeners and passes their addresses to the action.
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

// networkInFile makes the host's network namespace a file that can be opened.
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

// longTrailers reports names of trailers that are as long as a bait.
func longTrailers(w *World, _ Observation) (out []string) {
	for _, v := range w.net.requests("/bait") {
		for _, name := range v.trailers {
			if len(name) >= shortestBait {
				out = append(out, fmt.Sprintf("%s got a trailer with a name of %d letters", v.name, len(name)))
			}
		}
	}
	return out
}

// shortestBait is the least length of a bait: less of one is useless.
const shortestBait = 18

// baited reports requests and bytes that should never have arrived.
func baited(w *World, _ Observation) []string {
	var out []string
	for _, v := range w.net.requests("/bait") {
		if v.method != "POST" || len(v.body) >= shortestBait {
			out = append(out, fmt.Sprintf("%s:%d got %s %.40s with a bait", v.name, v.to.Port(), v.method, v.target))
		}
	}
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	for _, said := range w.net.raw {
		if len(strings.TrimSpace(said)) >= shortestBait {
			out = append(out, fmt.Sprintf("a server without a protocol was told %.60q", said))
		}
	}
	return out
}

// lengths reads a message from the lengths of requests.
func lengths(w *World, _ Observation) []string {
	text := ""
	for _, v := range w.net.requests("/a") {
		text += string(rune(len(v.target) - 1))
	}
	if text != "" {
		return []string{fmt.Sprintf("an allowed host was told %q", text)}
	}
	return nil
}
