package model

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/redact"
)

// Options say what a server plays.
type Options struct {
	Scripts []Script

	// Lookup, if not nil, looks up scripts instead of Scripts, at each request
	// and from many goroutines.
	Lookup func(name string) (Script, bool)

	// Turn, if not nil, is called before each scripted request is answered, and
	// the answer waits for it. An error ends the script: the model answers with
	// its text and makes no further call.
	Turn func(context.Context, Turn) error

	// Wire, if not nil, receives the traffic as JSON lines. Keys, and text that
	// looks like a secret, are masked. Writes do not overlap.
	Wire io.Writer

	// Token, if not nil, returns the delay before the next piece of a streamed
	// text. If nil, texts are streamed in one piece.
	Token func() time.Duration
}

// Server answers agents. Its only state is its options.
type Server struct {
	options Options
	wire    wire
}

// New makes a server. It starts nothing.
func New(o Options) *Server {
	if o.Lookup == nil {
		all := map[string]Script{}
		for _, s := range o.Scripts {
			all[s.Name] = s
		}
		o.Lookup = func(name string) (Script, bool) {
			s, ok := all[name]
			return s, ok
		}
	}
	return &Server{options: o, wire: wire{to: o.Wire, secrets: redact.New()}}
}

// ErrNotLoopback means that a listener could be reached from another machine.
var ErrNotLoopback = errors.New("the scripted model listens on loopback or a Unix socket only")

// Serve answers on l until ctx ends, and closes it. It returns when no request is
// being answered any more; nil if ctx was the reason and the wire log is
// complete.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	switch a := l.Addr().(type) {
	case *net.TCPAddr:
		if !a.IP.IsLoopback() {
			return errors.Join(fmt.Errorf("listening on %s: %w", a, ErrNotLoopback), l.Close())
		}
	case *net.UnixAddr:
	default:
		return errors.Join(fmt.Errorf("listening on %s: %w", a, ErrNotLoopback), l.Close())
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	h := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			running.Add(1)
			defer running.Done()
			s.ServeHTTP(w, r)
		}),
		BaseContext:       func(net.Listener) context.Context { return inner },
		ReadHeaderTimeout: 10 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          nil,
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	err := h.Serve(l)
	cancel()
	if stop() {
		h.Close()
	}
	running.Wait()
	if ctx.Err() != nil {
		return s.wire.truncation()
	}
	return fmt.Errorf("serving the scripted model: %w", err)
}

// maxBody is more than any agent sends, even with images and a long conversation.
const maxBody = 64 << 20

// dialect is a wire format.
type dialect interface {
	read(body []byte, path string) (*request, error)
	whole(q *request, a answer, id string) any
	stream(e *sse, q *request, a answer, id string)
}

// ServeHTTP answers one request of an agent.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		s.answerStatus(w, r, path)
		return
	}
	body, status, err := readBody(w, r)
	number := s.wire.request(r, body)
	if err != nil {
		s.refuse(w, number, status, err)
		return
	}
	d, more := route(path)
	switch {
	case d == nil && more != nil:
		s.write(w, number, more)
		return
	case d == nil:
		s.refuse(w, number, http.StatusNotFound, fmt.Errorf("no such path: %s", r.URL.Path))
		return
	}
	q, err := d.read(body, path)
	if err != nil {
		s.refuse(w, number, http.StatusBadRequest, err)
		return
	}
	a, note := s.decide(r.Context(), q)
	s.wire.answer(number, q, a, note)
	id := idOf(body)
	if q.stream {
		e := newSSE(w, r, s.options.Token)
		d.stream(e, q, a, id)
		return
	}
	s.write(w, number, d.whole(q, a, id))
}

// idOf derives the IDs of an answer from the request: equal requests get equal
// answers.
func idOf(body []byte) string {
	h := fnv.New64a()
	h.Write(body)
	return fmt.Sprintf("%016x", h.Sum64())
}

// route finds the dialect by the end of a path, because base URLs differ. more is
// a fixed answer, for requests that need no model.
func route(path string) (d dialect, more any) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}, nil
	case strings.HasSuffix(path, "/messages/count_tokens"):
		return nil, object{"input_tokens": 10}
	case strings.HasSuffix(path, "/responses"):
		return responses{}, nil
	case strings.HasSuffix(path, "/chat/completions"):
		return chat{}, nil
	case strings.HasSuffix(path, ":generateContent"), strings.HasSuffix(path, ":streamGenerateContent"):
		return gemini{}, nil
	case strings.HasSuffix(path, ":countTokens"):
		return nil, object{"totalTokens": 10}
	}
	return nil, nil
}

// readBody reads a whole request. Some agents compress it.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	var in io.Reader = http.MaxBytesReader(w, r.Body, maxBody)
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("unpacking the request: %w", err)
		}
		in = io.LimitReader(z, maxBody+1)
	default:
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("unknown Content-Encoding %q", coding)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(in); err != nil || b.Len() > maxBody {
		var large *http.MaxBytesError
		if err == nil || errors.As(err, &large) {
			return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request is larger than %d MiB", maxBody>>20)
		}
		return nil, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err)
	}
	return b.Bytes(), 0, nil
}

// answerStatus answers the requests that agents send first: whether the server is up, and
// which models there are.
func (s *Server) answerStatus(w http.ResponseWriter, r *http.Request, path string) {
	number := s.wire.request(r, nil)
	switch {
	case r.Header.Get("Upgrade") != "":
		s.refuse(w, number, http.StatusUpgradeRequired, errors.New("WebSockets are not supported"))
	case strings.HasSuffix(path, "/models"):
		s.write(w, number, object{"object": "list", "data": []any{}, "models": []any{}, "has_more": false})
	default:
		s.write(w, number, object{"status": "ok"})
	}
}

func (s *Server) write(w http.ResponseWriter, number uint64, v any) {
	w.Header().Set("Content-Type", "application/json")
	data, err := json.Marshal(v)
	if err != nil {
		s.refuse(w, number, http.StatusInternalServerError, err)
		return
	}
	w.Write(data)
}

// refuse answers with an error in a form that all dialects understand.
func (s *Server) refuse(w http.ResponseWriter, number uint64, status int, err error) {
	s.wire.refusal(number, status, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	io.WriteString(w, jsonText(object{"type": "error", "error": object{"type": "invalid_request_error", "code": status, "message": err.Error()}}))
}
