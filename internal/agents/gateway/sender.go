package gateway

import (
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// sender writes whole messages to one side.
type sender struct {
	mu sync.Mutex // held while a message is written
	w  io.Writer

	since struct {
		sync.Mutex
		time time.Time // start of the current write; zero if there is none
	}
}

func newSender(w io.Writer) *sender { return &sender{w: w} }

func (s *sender) send(m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return &dropError{reason: err.Error()}
	}
	return s.raw(string(text))
}

func (s *sender) fail(id jsonrpc.ID, code int64, reason string) error {
	return s.send(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: "holdfast: " + reason}})
}

func (s *sender) raw(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark(time.Now())
	defer s.mark(time.Time{})
	_, err := io.WriteString(s.w, text+"\n")
	return err
}

func (s *sender) mark(t time.Time) {
	s.since.Lock()
	defer s.since.Unlock()
	s.since.time = t
}

// stuck reports whether a write has taken longer than d.
func (s *sender) stuck(d time.Duration) bool {
	s.since.Lock()
	defer s.since.Unlock()
	return !s.since.time.IsZero() && time.Since(s.since.time) > d
}
