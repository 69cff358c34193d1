package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/floor/redact"
)

// wire logs the traffic as JSON lines.
type wire struct {
	number  atomic.Uint64 // of the last request
	secrets *redact.Redactor

	mu  sync.Mutex
	to  io.Writer // nil for no log; guarded by mu while a line is written
	err error     // the first write error; nothing is written after it
}

// masked replaces a key.
const masked = "[masked]"

// wireLine is a line of the log.
type wireLine struct {
	Time    string            `json:"time"`
	Number  uint64            `json:"number"` // of the request; its answer has the same
	Kind    string            `json:"kind"`   // request, answer, refusal
	Method  string            `json:"method,omitempty"`
	Path    string            `json:"path,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	Dialect string            `json:"dialect,omitempty"`
	Text    string            `json:"text,omitempty"`
	Calls   []wireCall        `json:"calls,omitempty"`
	Status  int               `json:"status,omitempty"`
	*note
}

// wireCall is a tool call of an answer.
type wireCall struct {
	ID    string         `json:"id"`
	Tool  string         `json:"tool"`
	Args  map[string]any `json:"arguments,omitempty"`
	Input string         `json:"input,omitempty"`
}

func (w *wire) write(l wireLine) {
	l.Time = time.Now().UTC().Format(time.RFC3339Nano)
	line := jsonText(l) + "\n"
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		_, w.err = io.WriteString(w.to, line)
	}
}

// truncation is the error that truncated the log.
func (w *wire) truncation() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("writing the wire log: %w", w.err)
}

// secretName reports whether a header or parameter of that name holds a key.
func secretName(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"auth", "key", "token", "secret", "cookie", "password", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// request logs a request. Keys are masked wherever they occur: an agent may
// repeat the key of its header in the body. Other text in the body that has the
// shape of a secret is masked too, because agents send what they read. The number
// is for the answer.
func (w *wire) request(r *http.Request, body []byte) (number uint64) {
	if w.to == nil {
		return 0
	}
	number = w.number.Add(1)
	var keys []string
	l := wireLine{Number: number, Kind: "request", Method: r.Method, Headers: map[string]string{}}
	for name, values := range r.Header {
		v := strings.Join(values, ", ")
		if secretName(name) {
			for _, one := range values {
				keys = append(keys, one, one[strings.LastIndexByte(one, ' ')+1:])
			}
			v = masked
		}
		l.Headers[name] = v
	}
	query := r.URL.Query()
	for name, values := range query {
		if secretName(name) {
			keys = append(keys, values...)
			query.Set(name, masked)
		}
	}
	u := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	l.Path = u.String()
	body = []byte(w.secrets.String(string(maskKeys(body, keys))))
	if l.Body = body; !json.Valid(body) {
		l.Body = nil
		if len(body) > 0 {
			l.Text = string(body)
		}
	}
	w.write(l)
	return number
}

// maskKeys masks keys in a text, also as JSON may encode them.
func maskKeys(body []byte, keys []string) []byte {
	for _, k := range keys {
		if len(k) < 8 {
			continue // too short for a key
		}
		quoted, _ := json.Marshal(k)
		for _, form := range []string{k, strings.Trim(jsonText(k), `"`), strings.Trim(string(quoted), `"`), strings.ReplaceAll(k, "/", `\/`)} {
			body = bytes.ReplaceAll(body, []byte(form), []byte(masked))
		}
	}
	return body
}

// answer logs an answer.
func (w *wire) answer(number uint64, q *request, a answer, n *note) {
	if w.to == nil {
		return
	}
	l := wireLine{Number: number, Kind: "answer", Dialect: q.dialect, Text: a.text, note: n}
	for _, c := range a.calls {
		one := wireCall{ID: c.id, Tool: c.tool.fullName(), Args: c.args, Input: c.text}
		if c.argv != nil {
			one.Args = map[string]any{"command": c.argv}
		}
		l.Calls = append(l.Calls, one)
	}
	w.write(l)
}

func (w *wire) refusal(number uint64, status int, err error) {
	if w.to == nil {
		return
	}
	w.write(wireLine{Number: number, Kind: "refusal", Status: status, Text: err.Error()})
}
