package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// newClient makes a client for services that give out secrets. It follows no
// redirect: what authenticates a request must not go where an answer points.
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

// upstream makes the client for a service at the first request: reading the authorities
// takes longer than the start of a run may.
func (c Config) upstream() func() (*http.Client, error) {
	return sync.OnceValues(func() (*http.Client, error) {
		if c.Client != nil {
			return c.Client, nil
		}
		authorities, err := c.authorities()
		if err != nil {
			return nil, err
		}
		return newClient(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, http.ProxyFromEnvironment), nil
	})
}

// authorities are those of Roots; nil for those of the system.
func (c Config) authorities() (*x509.CertPool, error) {
	if c.Roots == nil {
		return nil, nil
	}
	return c.Roots()
}

// unreachable is the error for a request without an answer, which a program inside reads
// as well. It says only what kind of failure it was: the text of net/http quotes what was
// sent, and names resolvers and proxies.
func unreachable(service string, err error) error {
	var (
		untrusted *tls.CertificateVerificationError
		late      net.Error
		name      *net.DNSError
		op        *net.OpError
		own       *fetchError
	)
	why := "its answer is not HTTP, or is too large"
	switch {
	case errors.As(err, &own):
		why = own.text
	case errors.As(err, &untrusted):
		why = "its certificate cannot be verified"
	case errors.As(err, &late) && late.Timeout():
		why = "it did not answer in time"
	case errors.As(err, &name):
		why = "its name is not found"
	case errors.As(err, &op) && op.Op == "remote error":
		why = "it ended the handshake: " + op.Err.Error() // one of the texts of crypto/tls
	case errors.As(err, &op):
		why = "there is no connection to it"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "it closed the connection"
	}
	return &fetchError{text: service + " cannot be reached: " + why, hint: "check the address, and that this machine trusts the certificate of the server"}
}
