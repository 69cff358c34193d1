package alert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/syslog"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

const (
	facility = 10 // security and authorisation (RFC 5424, 6.2.1)
	// enterprise is the number that RFC 5612 reserves for documentation: Holdfast has
	// none of its own, and RFC 5424 requires one after the name of structured data.
	enterprise = "32473"

	datagramBytes = 2048 // what every receiver should take (RFC 5424, 6.1)
	streamBytes   = 8192
	lingering     = time.Second // for the other side to end a connection
)

// syslogSeverities are those of RFC 5424, 6.2.1, as in the exports.
var syslogSeverities = map[string]int{"critical": 2, "high": 3, "medium": 4, "low": 5, "info": 6}

// syslogSink sends messages of RFC 5424.
type syslogSink struct {
	networks  []string // to be tried, in this order
	addresses []string // likewise
	tls       *tls.Config
	host      string
	most      int // bytes of a message
}

func newSyslog(s policy.AlertSink, o Options) (sink, error) {
	l := &syslogSink{host: o.Host, most: datagramBytes}
	if s.Address == "local" {
		l.networks, l.addresses, l.most = []string{"unixgram"}, []string{"/dev/log", "/var/run/syslog"}, streamBytes
		return l, nil
	}
	u, err := url.Parse(s.Address)
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	switch u.Scheme {
	case "unix":
		l.networks, l.addresses, l.most = []string{"unixgram"}, []string{u.Path}, streamBytes
	case "udp":
		l.networks, l.addresses = []string{"udp"}, []string{u.Host}
	case "tcp", "tls":
		l.networks, l.addresses, l.most = []string{"tcp"}, []string{u.Host}, streamBytes
	default:
		return nil, fmt.Errorf("%q is not a transport to a syslog daemon", u.Scheme)
	}
	if u.Scheme == "tls" {
		if l.tls, err = trust(s.Authority); err != nil {
			return nil, err
		}
		l.tls.ServerName = u.Hostname()
	}
	return l, nil
}

// send opens a connection for each alert: they are rare, a daemon may have restarted
// in between, and the end of a stream is the only sign that the alert arrived.
func (l *syslogSink) send(ctx context.Context, body []byte) error {
	d, err := decode(body)
	if err != nil {
		return err
	}
	message := l.message(d)
	c, err := l.dial(ctx)
	if err != nil {
		return fmt.Errorf("sending an alert: %w", err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	stream := l.networks[0] == "tcp"
	if stream {
		message = append([]byte(strconv.Itoa(len(message))+" "), message...) // RFC 6587, 3.4.1
	}
	if _, err := c.Write(message); err != nil {
		return fmt.Errorf("sending an alert: %w", err)
	}
	if !stream {
		return nil
	}
	return closeStream(c)
}

func (l *syslogSink) dial(ctx context.Context) (net.Conn, error) {
	var first error
	for _, network := range l.networks {
		for _, address := range l.addresses {
			c, err := l.dialOne(ctx, network, address)
			if err == nil {
				return c, nil
			}
			if first == nil || errors.Is(first, os.ErrNotExist) {
				first = err
			}
		}
	}
	return nil, first
}

func (l *syslogSink) dialOne(ctx context.Context, network, address string) (net.Conn, error) {
	if l.tls != nil {
		return (&tls.Dialer{Config: l.tls}).DialContext(ctx, network, address)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// closeStream ends our side of a stream and waits a moment for the other: if the
// connection is reset, the message is lost.
func closeStream(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return fmt.Errorf("sending an alert: %w", err)
		}
	}
	c.SetReadDeadline(time.Now().Add(lingering))
	_, err := io.CopyN(io.Discard, c, answerBytes)
	var late net.Error
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &late) && late.Timeout() {
		return nil
	}
	return fmt.Errorf("sending an alert: %w", err)
}

// message is the whole message of RFC 5424. Nothing in an alert can end it or
// begin another one: the header has only printable ASCII, and all else is escaped.
func (l *syslogSink) message(d *Document) []byte {
	severity, ok := syslogSeverities[d.Severity]
	if !ok {
		severity = 5
	}
	var b strings.Builder
	b.WriteString(syslog.Header(facility*8+severity, d.Time, l.host, d.Rule) + " [holdfast@" + enterprise)
	for _, p := range [][2]string{
		{"id", d.ID}, {"session", d.Session}, {"rule", d.Rule}, {"severity", d.Severity},
		{"technique", strings.Join(d.Technique, ",")}, {"count", strconv.Itoa(d.Count)},
	} {
		if p[1] != "" {
			b.WriteString(" " + p[0] + `="` + param(escape(p[1], 200)) + `"`)
		}
	}
	b.WriteString("] \ufeff" + d.line()) // the mark says that it is UTF-8
	if s := b.String(); len(s) > l.most {
		return []byte(text.Cut(s, l.most-len("…")))
	}
	return []byte(b.String())
}

// param escapes the value of a parameter (RFC 5424, 6.3.3), after escape.
func param(s string) string {
	return strings.NewReplacer(`"`, `\"`, `\`, `\\`, `]`, `\]`).Replace(s)
}
