package alert

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/syslog"
	"holdfast.dev/holdfast/internal/policy"
)

// Limits of what is read.
const (
	answerBytes = 64 << 10 // of an answer
	configBytes = 64 << 10 // of a file of headers or a key
	bundleBytes = 4 << 20  // of a file of authorities
	shortestKey = 16       // bytes of a key of signatures
)

// poster sends JSON by HTTP.
type poster struct {
	client *http.Client
	url    string
	header http.Header // of every request
}

func newPoster(s policy.AlertSink, o Options) (*poster, error) {
	u, err := url.Parse(s.Address)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("its address must be an https URL without a user name") // the URL may be secret
	}
	config, err := trust(s.Authority)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	transport.MaxResponseHeaderBytes = answerBytes
	transport.DisableCompression = true
	p := &poster{url: s.Address, header: http.Header{}, client: &http.Client{
		Transport: transport,
		// An answer must not choose who else gets alerts, and headers with tokens.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	p.header.Set("User-Agent", strings.TrimSuffix("holdfast/"+o.Version, "/"))
	if s.Headers != "" {
		if err := readHeaders(s.Headers, p.header); err != nil {
			return nil, err
		}
	}
	p.header.Set("Content-Type", "application/json")
	return p, nil
}

// close closes the connections that are kept for further requests.
func (p *poster) close() { p.client.CloseIdleConnections() }

// trust is how servers are verified: by the system's authorities, and those of a
// file besides.
func trust(authority string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority == "" {
		return config, nil
	}
	data, err := readFile(authority, bundleBytes, 0o022)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authorities: %w", err)
	}
	if config.RootCAs, err = x509.SystemCertPool(); err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("reading the certificate authorities: there is no certificate in %s", escape(authority, 200))
	}
	return config, nil
}

// readFile reads a small file that others may not touch in the ways of mode.
func readFile(path string, most int64, mode os.FileMode) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", escape(path, 200))
	case st.Mode()&mode != 0:
		return nil, fmt.Errorf("%s is accessible to other users (mode %04o): run chmod 600", escape(path, 200), st.Mode().Perm())
	case st.Size() > most:
		return nil, fmt.Errorf("%s is larger than %d bytes", escape(path, 200), most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// reservedHeaders are those that a file may not set.
var reservedHeaders = []string{"Host", "Content-Type", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade"}

// readHeaders reads a header a line. No message repeats a value.
func readHeaders(path string, into http.Header) error {
	data, err := readFile(path, configBytes, 0o077)
	if err != nil {
		return fmt.Errorf("reading the headers: %w", err)
	}
	n := 0
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		n++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch canonical := http.CanonicalHeaderKey(name); {
		case !ok || !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf("reading the headers: line %d of %s is not NAME: VALUE", n, escape(path, 200))
		case slices.Contains(reservedHeaders, canonical) || strings.HasPrefix(canonical, "Holdfast-"):
			return fmt.Errorf("reading the headers: line %d of %s sets %s, which is set already", n, escape(path, 200), canonical)
		default:
			into.Set(canonical, value)
		}
	}
	return nil
}

// isToken reports whether s can be the name of a header (RFC 9110, 5.6.2).
func isToken(s string) bool {
	return s != "" && strings.Trim(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// do sends a body, with headers besides those of every request. No error
// contains the URL, which may be secret.
func (p *poster) do(ctx context.Context, body []byte, extra http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, &refusal{errors.New("its address is not a URL")}
	}
	r.Header = p.header.Clone()
	maps.Copy(r.Header, extra)
	answer, err := p.client.Do(r)
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return answer, err
}

// post sends an alert and returns the beginning of the answer.
func (p *poster) post(ctx context.Context, body []byte, extra http.Header) ([]byte, error) {
	answer, err := p.do(ctx, body, extra)
	if err != nil {
		return nil, fmt.Errorf("sending an alert: %w", err)
	}
	defer answer.Body.Close()
	start, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if answer.StatusCode/100 == 2 {
		return start, nil // the status is final, even if the rest of the answer is lost
	}
	return nil, judge(answer, err)
}

// judge is what an answer other than success means.
func judge(answer *http.Response, err error) error {
	cause := fmt.Errorf("sending an alert: the server answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if answer.StatusCode/100 == 3 {
		cause = fmt.Errorf("%w: it points elsewhere, and redirects are not followed", cause)
	}
	if err != nil {
		cause = fmt.Errorf("%w, and then: %v", cause, err)
	}
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return &refusal{cause}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if wait := retryAfter(answer); wait > 0 {
			return &retryLater{cause, wait}
		}
	}
	return cause
}

// retryAfter is the time that an answer asks to wait, an hour at most; 0 for none.
func retryAfter(answer *http.Response) time.Duration {
	seconds, err := strconv.Atoi(answer.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}

// webhook posts each alert as JSON.
type webhook struct {
	*poster
	key []byte // of the signature; nil for none
	now func() time.Time
}

func newWebhook(s policy.AlertSink, o Options) (sink, error) {
	p, err := newPoster(s, o)
	if err != nil {
		return nil, err
	}
	w := &webhook{poster: p, now: time.Now}
	if s.Secret == "" {
		return w, nil
	}
	data, err := readFile(s.Secret, configBytes, 0o077)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the signature: %w", err)
	}
	if w.key = bytes.TrimRight(data, "\r\n"); len(w.key) < shortestKey {
		return nil, fmt.Errorf("reading the key of the signature: %s has fewer than %d bytes", escape(s.Secret, 200), shortestKey)
	}
	return w, nil
}

func (w *webhook) send(ctx context.Context, body []byte) error {
	d, err := decode(body)
	if err != nil {
		return err
	}
	extra := http.Header{}
	if w.key != nil {
		extra = signatureHeaders(w.key, w.now(), body)
	}
	extra.Set("Holdfast-Alert-Id", syslog.Field(d.ID, 128))
	_, err = w.post(ctx, body, extra)
	return err
}

// Signature is the HMAC-SHA256, in hex, of the time in the header
// Holdfast-Timestamp, a dot, and the body: a receiver that checks both
// recognises a forged request and one that was sent again later.
func Signature(key []byte, stamp string, body []byte) string {
	return hex.EncodeToString(sign(key, stamp, body))
}

func sign(key []byte, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	io.WriteString(m, stamp+".")
	m.Write(body)
	return m.Sum(nil)
}

// signatureHeaders are the headers of a request that is signed now.
func signatureHeaders(key []byte, now time.Time, body []byte) http.Header {
	stamp := strconv.FormatInt(now.Unix(), 10)
	return http.Header{"Holdfast-Timestamp": {stamp}, "Holdfast-Signature": {"v1=" + Signature(key, stamp, body)}}
}
