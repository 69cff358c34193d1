package credentials

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// newClient makes a client for services that give out secrets. It follows no
// redirect: what authenticates a request must not go where an answer says.
func newClient(config *tls.Config, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	return &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			Proxy:                  proxy,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  fetchTime,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // a fetch every few minutes needs no open connection
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// serviceURL checks the address of a service that gives out secrets: https, or
// http on loopback.
func serviceURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not an address such as https://vault.example.org", text)
	}
	address, bad := netip.ParseAddr(u.Hostname())
	loopback := u.Hostname() == "localhost" || bad == nil && address.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return "", errors.New("a secret is asked for by https only; http is taken on loopback")
	}
	return strings.TrimSuffix(text, "/"), nil
}

// unreachable is a request that got no answer. The address is dropped from the
// error, for a path can say more than a name.
func unreachable(service string, err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err
	}
	return &fetchError{text: service + " cannot be asked", cause: err, hint: "see that the address is right and that its certificate is one that this machine trusts"}
}
