package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/syslog"
)

// Anchor keeps checkpoints outside the log, so that verification notices when
// the end of a log, or a whole log, was removed.
type Anchor interface {
	// Publish keeps a signed note. It is called from one goroutine, every ten
	// seconds at most, at serious alerts and at the end.
	Publish(signed []byte) error
	Name() string // for messages
}

// anchorTimeout is how long one attempt to publish may take.
const anchorTimeout = 4 * time.Second

type fileAnchor struct{ path string }

// FileAnchor appends each checkpoint to a file, as a line with a JSON string.
// It is useful if the file is on another machine's disk or can only be appended
// to. A link, or anything but a regular file, is refused.
func FileAnchor(path string) Anchor { return fileAnchor{path} }

func (a fileAnchor) Name() string { return "the file " + a.path }

func (a fileAnchor) Publish(signed []byte) error {
	f, err := os.OpenFile(a.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|openPlain, 0o600)
	if err != nil {
		return err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return errors.Join(err, f.Close(), errors.New("it is not a regular file"))
	}
	line, _ := AppendString(nil, string(signed))
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// AnchoredNotes reads the checkpoints of a session from the file of a file
// anchor. A line that is not a checkpoint is an error, unless it is the last
// one and incomplete: its writer may have been killed, or the disk been full. A
// checkpoint written after an incomplete line is in the same line.
func AnchoredNotes(path, session string) ([][]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading anchored checkpoints: %w", err)
	}
	var notes [][]byte
	n := 0
	for line := range bytes.Lines(content) {
		n++
		var signed string
		err := json.Unmarshal(line, &signed)
		if begin := bytes.LastIndex(line, []byte(`"`+origin+`\n`)); err != nil && begin > 0 && line[0] == '"' {
			err = json.Unmarshal(line[begin:], &signed)
		}
		if err != nil {
			if line[len(line)-1] != '\n' {
				break
			}
			return nil, fmt.Errorf("reading anchored checkpoints: %s:%d: %w", path, n, err)
		}
		if strings.HasPrefix(signed, origin+"\n"+session+"\n") {
			notes = append(notes, []byte(signed))
		}
	}
	return notes, nil
}

type httpAnchor struct {
	url    string
	name   string // without the parts that may grant access: user, path and query
	client *http.Client
}

// HTTPAnchor posts each checkpoint to a URL as text/plain. A status from 200 to
// 299 means that it is kept; redirects are not followed.
func HTTPAnchor(address string) Anchor {
	name := "an HTTP endpoint"
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		name = u.Scheme + "://" + u.Host
	}
	return httpAnchor{address, name, &http.Client{
		Timeout:       anchorTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}, // the next one is seconds away
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (a httpAnchor) Name() string { return a.name }

func (a httpAnchor) Publish(signed []byte) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, a.url, bytes.NewReader(signed))
	if err != nil {
		return errors.New("its address is not a URL") // the error would contain it
	}
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	response, err := a.client.Do(request)
	if hidden := (*url.Error)(nil); errors.As(err, &hidden) { // it contains the whole URL
		return hidden.Err
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

type syslogAnchor struct{ socket string }

// SyslogAnchor sends each checkpoint as a datagram to a socket, in a message of RFC
// 5424 (facility 13, log audit; severity 5, notice; MSGID "checkpoint") whose text is
// a JSON string.
func SyslogAnchor(socket string) Anchor { return syslogAnchor{socket} }

func (a syslogAnchor) Name() string { return "syslog at " + a.socket }

func (a syslogAnchor) Publish(signed []byte) error {
	c, err := net.DialTimeout("unixgram", a.socket, anchorTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(anchorTimeout)); err != nil {
		return err
	}
	host, _ := os.Hostname() // "" is not known
	const priority = 13*8 + 5
	message, _ := AppendString([]byte(syslog.Header(priority, time.Now().UTC(), host, "checkpoint")+" - "), string(signed))
	_, err = c.Write(message)
	return err
}
