package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// sse writes server-sent events, each at once.
type sse struct {
	w     http.ResponseWriter
	flush http.Flusher // nil when the server cannot
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

// event sends v under a name; without one there is only data.
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

// pieceMark stands in a template for the piece of text that is sent with it.
const pieceMark = "holdfast-piece"

// template prepares an event that is sent with many pieces of a text: what is
// the same in all is encoded once.
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

// tokens sends a text in pieces, with the pause of the options between them.
// Without a pause there is nothing to show, and it goes in one.
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

// wait reports whether the client is still there after d.
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

// tokenBytes is about what a token has.
const tokenBytes = 4

// pieces cuts a text into what stands for its tokens: words, and parts of long
// ones, with the space before them.
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

// jsonText is v as JSON; nothing that the package makes cannot be written so.
func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // agents show commands as they stand here
	if e.Encode(v) != nil {
		return "{}"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
