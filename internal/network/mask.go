package network

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maskedEncodings is the fewest bytes of a secret whose encodings are masked
// too: those of less are in many texts.
const maskedEncodings = 6

// masks are texts that must not come back: secrets, and what they look like encoded.
// They are found by their first two bytes, so that their number, which grows as leases
// are renewed, makes little difference. Nil means none.
type masks struct {
	texts [][]byte
	begin [1 << 16 / 64]uint64 // bits: a text begins with these two bytes
	by    map[uint16][][]byte
}

func newMasks(secrets [][]byte) *masks {
	var texts [][]byte
	for _, s := range secrets {
		texts = append(texts, s)
		if len(s) < maskedEncodings {
			continue
		}
		for _, text := range escapedForms(string(s)) {
			texts = append(texts, []byte(text))
		}
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				// Of what the secret is encoded with, only the letters that it alone
				// decides: six bits each.
				text := encoding.EncodeToString(append(make([]byte, before), s...))
				texts = append(texts, []byte(text[(before*8+5)/6:(before+len(s))*8/6]))
			}
		}
	}
	texts = slices.DeleteFunc(texts, func(text []byte) bool { return len(text) < 2 }) // one byte is everywhere
	if len(texts) == 0 {
		return nil
	}
	slices.SortFunc(texts, bytes.Compare)
	m := &masks{texts: slices.CompactFunc(texts, bytes.Equal), by: map[uint16][][]byte{}}
	for _, text := range m.texts {
		k := bytePair(text)
		m.begin[k/64] |= 1 << (k % 64)
		m.by[k] = append(m.by[k], text)
	}
	return m
}

func bytePair(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }

// find yields the positions of the texts in raw.
func (m *masks) find(raw []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		if m == nil {
			return
		}
		for i := 0; i+1 < len(raw); i++ {
			k := bytePair(raw[i:])
			if m.begin[k/64]&(1<<(k%64)) == 0 {
				continue
			}
			for _, text := range m.by[k] {
				if bytes.HasPrefix(raw[i:], text) && !yield(i, text) {
					return
				}
			}
		}
	}
}

// escapedForms are how programs write a text that others should take as it is:
// in an address, with the digits of escapes in capitals and in small letters; in
// JSON, where some escape the slash; in HTML; in hexadecimal.
func escapedForms(s string) []string {
	forms := []string{
		url.QueryEscape(s), url.PathEscape(s), strings.ReplaceAll(s, "/", `\/`),
		html.EscapeString(s), strings.ReplaceAll(html.EscapeString(s), "+", "&#43;"),
		fmt.Sprintf("%x", s), fmt.Sprintf("%X", s),
	}
	for _, text := range forms[:2] {
		forms = append(forms, smallEscapes(text))
	}
	if quoted, err := json.Marshal(s); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	return forms
}

// smallEscapes puts the digits of percent escapes in small letters.
func smallEscapes(s string) string {
	parts := strings.Split(s, "%")
	for i, p := range parts[1:] {
		parts[i+1] = strings.ToLower(p[:2]) + p[2:]
	}
	return strings.Join(parts, "%")
}

// cover puts stars into out at the positions where raw, of the same length, has one of
// the texts.
func (m *masks) cover(out, raw []byte) {
	for at, text := range m.find(raw) {
		for k := range text {
			out[at+k] = '*'
		}
	}
}

// coverAll is cover when p is the only copy of the data.
func (m *masks) coverAll(p []byte) {
	for range m.find(p) {
		m.cover(p, bytes.Clone(p))
		return
	}
}

// open returns how many of the last bytes of raw could be the beginning of one of
// the texts.
func (m *masks) open(raw []byte) int {
	if m == nil || len(raw) == 0 {
		return 0
	}
	longest := 0
	for _, text := range m.texts {
		for n := min(len(text)-1, len(raw)); n > longest; n-- {
			if text[0] == raw[len(raw)-n] && bytes.HasPrefix(text, raw[len(raw)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

func (m *masks) text(s string) string {
	out := []byte(s)
	m.cover(out, []byte(s))
	return string(out)
}

// header masks values. A header that has one of the texts in its name, where
// capitals mean nothing, is taken out.
func (m *masks) header(h http.Header) {
	if m == nil {
		return
	}
	for name, values := range h {
		if slices.ContainsFunc(m.texts, func(text []byte) bool {
			return len(text) <= len(name) && strings.Contains(strings.ToLower(name), strings.ToLower(string(text)))
		}) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = m.text(v)
		}
	}
}

// masked reads with secrets replaced by stars. It holds back only bytes that could be
// the beginning of one.
type masked struct {
	src   io.Reader
	fresh func() *masks // those of this moment; nil where they stay as they are
	masks *masks
	end   func() // at the end of src

	raw, out []byte // held back; out has its stars
	ready    int    // bytes of out that may pass
	err      error  // of src
}

func (m *masked) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if m.ready > 0 {
			n := copy(p, m.out[:m.ready])
			m.raw, m.out, m.ready = m.raw[n:], m.out[n:], m.ready-n
			if len(m.out) == 0 {
				m.raw, m.out = nil, nil
			}
			return n, nil
		}
		if m.err != nil {
			if m.ready = len(m.out); m.ready > 0 {
				continue
			}
			return 0, m.err
		}
		n, err := m.src.Read(p)
		if m.err = err; errors.Is(err, io.EOF) && m.end != nil {
			m.end()
		}
		if m.fresh != nil {
			m.masks = m.fresh()
		}
		if n == 0 {
			continue
		}
		if len(m.raw) == 0 && m.masks.open(p[:n]) == 0 {
			m.masks.coverAll(p[:n])
			return n, nil
		}
		m.raw, m.out = append(m.raw, p[:n]...), append(m.out, p[:n]...)
		m.masks.cover(m.out, m.raw)
		m.ready = len(m.raw) - m.masks.open(m.raw)
	}
	return 0, nil
}

// body is a reader that closes another.
type body struct {
	io.Reader
	io.Closer
}

// socket is body after 101, which is written too.
type socket struct {
	io.Reader
	io.Writer
	io.Closer
}

// masks are those of this moment. The returned function recomputes them only if a
// secret was lent meanwhile: an answer may last longer than what is known at its
// beginning.
func (x *exchange) masks() func() *masks {
	known := int64(-1)
	var m *masks
	return func() *masks {
		if n := x.engine.web.lent.Load(); n != known {
			known, m = n, x.engine.web.masksOf(x.engine.config.Credentials.Issued())
		}
		return m
	}
}

// masksOf makes masks, or returns those that are there: what was issued only
// grows.
func (w *web) masksOf(issued [][]byte) *masks {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.masks == nil || w.masked != len(issued) {
		w.masks, w.masked = newMasks(issued), len(issued)
	}
	return w.masks
}

// conceal masks what of an answer would bring a secret back. Headers are always
// looked at, bodies where they come from a destination that secrets go to.
func (x *exchange) conceal(r *http.Response) error {
	if x.engine.config.Credentials == nil {
		return nil
	}
	fresh := x.masks()
	fresh().header(r.Header)
	end := func() { fresh().header(r.Trailer) }
	switched := r.StatusCode == http.StatusSwitchingProtocols
	if !x.lends() {
		if !switched {
			r.Body = body{&masked{src: r.Body, end: end}, r.Body}
		}
		return nil
	}
	if switched {
		if raw, ok := r.Body.(io.ReadWriteCloser); ok {
			r.Body = socket{&masked{src: raw, fresh: fresh}, raw, raw}
		}
		return nil
	}
	src, err := readable(r)
	if err != nil {
		return err
	}
	r.Body = body{&masked{src: src, fresh: fresh, end: end}, r.Body}
	return nil
}

// readable returns the body of an answer as plain bytes. It was asked for without
// an encoding; a server that has it only compressed is heard, other encodings
// cannot be searched.
func readable(r *http.Response) (io.Reader, error) {
	encoding := strings.ToLower(strings.Join(r.Header["Content-Encoding"], ","))
	empty := r.Request.Method == http.MethodHead || r.ContentLength == 0 ||
		r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified
	switch {
	case encoding == "" || encoding == "identity" || empty:
		return r.Body, nil
	case encoding == "gzip" && r.StatusCode != http.StatusPartialContent:
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		return &unzipped{src: r.Body}, nil
	}
	return nil, &ownError{errors.New("its answer is encoded, although it was asked for a plain one, and cannot be searched for secrets")}
}

// unzipped begins to read at the first Read: before, there may be nothing yet.
type unzipped struct {
	src io.Reader
	zip *gzip.Reader
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.zip == nil {
		zip, err := gzip.NewReader(u.src)
		if err != nil {
			return 0, err
		}
		u.zip = zip
	}
	return u.zip.Read(p)
}
