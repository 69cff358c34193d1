//go:build linux

package inside

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// netFor is how long a connection may take: a destination that swallows
// everything must not delay the next.
const netFor = 1500 * time.Millisecond

// tunnelFor is how long the far end of a tunnel may take to answer.
const tunnelFor = 200 * time.Millisecond

// asSent sends a token, reversed, and prints the answer.
func asSent(network string) func(io.Writer, []string) error {
	return func(out io.Writer, words []string) error {
		c, err := net.DialTimeout(network, words[0], netFor)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(netFor))
		if _, err := io.WriteString(c, Reverse(words[1])+"\n"); err != nil {
			return err
		}
		fmt.Fprintln(out, "sent")
		if network == "udp" {
			return nil
		}
		buf := make([]byte, 512)
		n, _ := c.Read(buf) // a service may send nothing
		_, err = out.Write(buf[:n])
		return err
	}
}

func askedName(out io.Writer, words []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), netFor)
	defer cancel()
	all, err := (&net.Resolver{PreferGo: true}).LookupHost(ctx, words[0])
	fmt.Fprintln(out, strings.Join(all, " "))
	return err
}

// getAll requests each address.
func getAll(out io.Writer, urls []string, proxy func(*http.Request) (*url.URL, error)) error {
	c := http.Client{Timeout: netFor, Transport: &http.Transport{Proxy: proxy, DisableKeepAlives: true}}
	var all error
	for _, u := range urls {
		r, err := c.Get(u)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		body, _ := io.ReadAll(io.LimitReader(r.Body, 512)) // what came before an error is of interest too
		r.Body.Close()
		fmt.Fprintf(out, "%s: %s %s\n", u, r.Status, body)
	}
	return all
}

func askedGet(out io.Writer, words []string) error { return getAll(out, words, nil) }

// proxies are the HTTP proxies that the environment names.
func proxies() []*url.URL {
	var all []*url.URL
	seen := map[string]bool{}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.Host == "" || seen[u.Host] || !strings.HasPrefix(u.Scheme, "http") {
			continue
		}
		seen[u.Host] = true
		all = append(all, u)
	}
	return all
}

// askedProxied sends requests to the proxies even for addresses that NO_PROXY
// excepts. Without a proxy it connects directly.
func askedProxied(out io.Writer, words []string) error {
	all := proxies()
	if len(all) == 0 {
		return askedGet(out, words)
	}
	var errs error
	for _, p := range all {
		errs = errors.Join(errs, getAll(out, words, http.ProxyURL(p)))
	}
	return errs
}

// askedLie requests one address but names another in Host: in absolute form and
// through a tunnel, at each proxy, or at the address itself. The names are ones
// that the proxy may allow.
func askedLie(out io.Writer, words []string) error {
	address, token := words[0], Reverse(words[1])
	// The address, and the header that authenticates to the proxy.
	at := [][2]string{{address}}
	if all := proxies(); len(all) > 0 {
		at = nil
		for _, p := range all {
			header := ""
			if p.User != nil {
				header = "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(p.User.String())) + "\r\n"
			}
			at = append(at, [2]string{p.Host, header})
		}
	}
	var errs error
	for _, where := range at {
		for _, name := range words[2:] {
			errs = errors.Join(errs,
				sendRequests(out, where[0], fmt.Sprintf("GET http://%s/%s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", address, token, name, where[1]), ""),
				sendRequests(out, where[0], fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", address, name, where[1]),
					fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", token, name)))
		}
	}
	return errs
}

// sendRequests sends a request, and if the answer opens a tunnel, a second one through
// it.
func sendRequests(out io.Writer, where, first, second string) error {
	c, err := net.DialTimeout("tcp", where, netFor)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(netFor))
	if _, err := io.WriteString(c, first); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	fmt.Fprintln(out, where, strings.TrimSpace(line))
	if second != "" && strings.Contains(line, " 200") {
		_, err = io.WriteString(c, second)
		_ = c.SetDeadline(time.Now().Add(tunnelFor))
		_, _ = c.Read(make([]byte, 512)) // the listener has received it when it answers or hangs up
	}
	return err
}
