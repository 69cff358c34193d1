package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// sse writes server-sent events, each immediately.
type sse struct {
	w     http.ResponseWriter
	flush http.Flusher // nil if the server cannot flush
	pause func() time.Duration
	done  <-chan struct{} // of the request
	buf   []byte
	err   error
}

func newSSE(w http.ResponseWriter, r *http.Request, pause func() time.Duration) *sse {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	f, _ := w.(http.Flusher)
	return &sse{w: w, flush: f, pause: pause, done: r.Context().Done()}
}

// event sends v under a name; without a name it sends only data.
func (e *sse) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.raw(name, data)
}

func (e *sse) raw(name string, data []byte) {
	if e.err != nil {
		return
	}
	e.buf = e.buf[:0]
	if name != "" {
		e.buf = append(append(append(e.buf, "event: "...), name...), '\n')
	}
	e.buf = append(append(append(e.buf, "data: "...), data...), "\n\n"...)
	if _, e.err = e.w.Write(e.buf); e.err == nil && e.flush != nil {
		e.flush.Flush()
	}
}

// pieceMark is the placeholder in a template for the piece of text that is sent.
const pieceMark = "holdfast-piece"

// template prepares an event that is sent with many pieces of a text: the common
// part is encoded once.
func (e *sse) template(name string, v any) func(piece string) {
	before, after, _ := strings.Cut(jsonText(v), `"`+pieceMark+`"`)
	var data []byte
	return func(piece string) {
		quoted, err := json.Marshal(piece)
		if err != nil && e.err == nil {
			e.err = err
		}
		data = append(append(append(data[:0], before...), quoted...), after...)
		e.raw(name, data)
	}
}

// tokens sends a text in pieces, with the configured pause between them. Without
// a pause it sends one piece.
func (e *sse) tokens(text string, send func(piece string)) {
	if e.pause == nil {
		if text != "" {
			send(text)
		}
		return
	}
	for i, piece := range pieces(text) {
		if i > 0 && !e.wait(e.pause()) || e.err != nil {
			return
		}
		send(piece)
	}
}

// wait reports whether the client is still connected after d.
func (e *sse) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-e.done:
		return false
	}
}

// tokenBytes is roughly the length of a token.
const tokenBytes = 4

// pieces cuts a text into approximate tokens: words, and parts of long words,
// with the space before them.
func pieces(text string) []string {
	var all []string
	for text != "" {
		n := strings.IndexAny(text[1:], " \n") + 1
		if n <= 0 {
			n = len(text)
		}
		for n > 4*tokenBytes {
			cut := tokenBytes
			for cut < n && text[cut]&0xc0 == 0x80 { // not within a character
				cut++
			}
			all, text, n = append(all, text[:cut]), text[cut:], n-cut
		}
		if n > 0 {
			all, text = append(all, text[:n]), text[n:]
		}
	}
	return all
}

// jsonText is v as JSON; everything that this package makes can be encoded.
func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // agents show commands as they are written here
	if e.Encode(v) != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
