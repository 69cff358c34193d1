//go:build linux

package inside

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// netFollow gets a URL and follows a redirect, through the same door.
func netFollow(p *Probe) {
	tries := doorLines(p.Arg("try"))
	netControls(p, tries)
	var all []attempt
	for _, t := range tries {
		all = append(all, attempt{t[0] + " " + t[1], func() ([]byte, error) {
			b, err := fetch(t[0], t[1])
			_, rest, _ := strings.Cut(string(b), "Location: ")
			to, _, found := strings.Cut(rest, "\r\n")
			if err != nil || !found {
				return b, err
			}
			return fetch(t[0], to)
		}})
	}
	netAttempts(p, all)
}

// netAllowed gets allowed URLs; each that fails is a failed attempt.
func netAllowed(p *Probe) {
	all := gets(doorLines(p.Arg("try")))
	outcome := runAttempts(all)
	for i, a := range all {
		p.Try(a.name, func() error { return judgeControl(outcome(i)) })
	}
}

// netPrint prints what a terminal or a viewer might fetch.
func netPrint(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	p.Try("print", func() error {
		fmt.Println(p.Arg("text"))
		return refusedErr{"printed"}
	})
}

// netEnvironment sets variables that make a client use no proxy, or another one.
func netEnvironment(p *Probe) {
	for _, env := range [][]string{{"NO_PROXY=*", "no_proxy=*"}, {"HTTP_PROXY=", "HTTPS_PROXY="}, {"HTTP_PROXY=http://1.2.3.4:3128", "HTTPS_PROXY=http://1.2.3.4:3128"}} {
		for _, kv := range env {
			k, v, _ := strings.Cut(kv, "=")
			os.Setenv(k, v)
		}
		for raw := range strings.SplitSeq(p.Arg("try"), "\n") {
			p.Read(strings.Join(env, " ")+" "+raw, func() ([]byte, error) {
				c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: netPatience}
				resp, err := c.Get(raw)
				if err != nil {
					return nil, denial(err)
				}
				defer resp.Body.Close()
				return judgeReply(io.ReadAll(io.LimitReader(resp.Body, 64<<10)))
			})
		}
	}
}

// netListeners connects to everything that listens on the loopback.
func netListeners(p *Probe) {
	netControls(p, [][2]string{{"direct", "http://allowed.test/"}})
	var all []attempt
	for _, at := range listening() {
		for _, text := range []string{"GET / HTTP/1.0\r\nHost: denied.test\r\n\r\n", "CONNECT denied.test:80 HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n"} {
			all = append(all, attempt{fmt.Sprintf("say %.7s to the listener %s", text, at), func() ([]byte, error) {
				c, err := net.DialTimeout("tcp", at.String(), netPatience)
				if err != nil {
					return nil, err
				}
				defer c.Close()
				if _, err := io.WriteString(c, text); err != nil {
					return nil, err
				}
				return listen(c)
			}})
		}
	}
	netAttempts(p, all)
}

// listening returns the addresses of listening sockets, from proc_net(5), and
// some common ones.
func listening() []netip.AddrPort {
	out := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:3128"), netip.MustParseAddrPort("127.0.0.1:15001"), netip.MustParseAddrPort("127.0.0.53:53"), netip.MustParseAddrPort("127.0.0.1:8080")}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(file)
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" {
				continue
			}
			if at, err := procAddr(f[1]); err == nil && !slices.Contains(out, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// procAddr parses an address as /proc/net/tcp writes it, in native words.
func procAddr(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, ok := netip.AddrFromSlice(b)
	var n uint16
	if _, err := fmt.Sscanf(port, "%x", &n); err != nil || !ok {
		return netip.AddrPort{}, fmt.Errorf("%s is no address", text)
	}
	if a.IsUnspecified() {
		a = netip.MustParseAddr("127.0.0.1")
	}
	return netip.AddrPortFrom(a, n), nil
}
