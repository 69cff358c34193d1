package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// line is one line that a side wrote, without its newline.
type line struct {
	text  []byte // valid until the next read; nil for an empty line and one that is too long
	long  bool   // longer than a message may be; then the fields below are set
	size  int    // bytes
	head  []byte // the beginning
	facts facts
}

// lines reads lines of bounded length. Of a longer one it keeps only a few facts.
type lines struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

// keptBuffer is the maximum capacity of the buffer that is kept between lines.
const keptBuffer = 1 << 20

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line. The last one may lack its newline.
func (l *lines) next() (line, error) {
	if cap(l.buf) > keptBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if ended {
			part = part[:len(part)-1]
		}
		if len(l.buf)+len(part) > l.limit {
			return l.skip(part, ended)
		}
		l.buf = append(l.buf, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(l.buf) == 0 {
			return line{}, err
		}
		text := trim(l.buf)
		return line{text: text, size: len(text)}, nil
	}
}

// skip reads to the end of a line that is too long; part is the last part read.
func (l *lines) skip(part []byte, ended bool) (line, error) {
	var s scan
	out := line{long: true, size: len(l.buf) + len(part)}
	s.write(l.buf)
	out.head = append(out.head, l.buf[:min(len(l.buf), 4*excerpt)]...)
	l.buf = nil
	for {
		s.write(part)
		if ended {
			break
		}
		var err error
		part, err = l.r.ReadSlice('\n')
		ended = !errors.Is(err, bufio.ErrBufferFull) // the next call returns the error again
		out.size += len(part)
	}
	out.facts = s.facts
	return out, nil
}

// trim removes the white space around a message; nil if nothing is left.
func trim(b []byte) []byte {
	if b = bytes.Trim(b, " \t\r"); len(b) == 0 {
		return nil
	}
	return b
}

// facts are what is known about a message without parsing it as a whole.
type facts struct {
	depth  int    // of its deepest object or list
	id     []byte // JSON of the last top-level id; nil for none
	method bool   // it has a method, so it is a request
}

// longest is how much of a key or an id is read, in bytes.
const longest = 256

// scan finds the facts of a message that is written to it in parts. It does not
// check that the text is JSON; the full parser does.
type scan struct {
	facts
	at              int  // nesting depth
	quoted, escaped bool // inside a string, and after its backslash
	value           bool // after the colon of a top-level key
	key, token      []byte
}

func (s *scan) write(part []byte) {
	for _, c := range part {
		if s.quoted {
			s.inString(c)
			continue
		}
		switch c {
		case '"':
			s.quoted = true
			s.start(c)
		case '{', '[':
			s.at++
			s.depth = max(s.depth, s.at)
		case '}', ']':
			if s.at == 1 {
				s.member()
			}
			s.at = max(0, s.at-1)
		case ':':
			if s.at == 1 && !s.value {
				s.value = true
				s.key, s.token = append(s.key[:0], s.token...), s.token[:0]
			}
		case ',':
			if s.at == 1 {
				s.member()
			}
		case ' ', '\t', '\r', '\n':
		default:
			s.add(c)
		}
	}
}

func (s *scan) inString(c byte) {
	s.add(c)
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.quoted = false
	}
}

func (s *scan) start(c byte) {
	if s.at == 1 {
		s.token = append(s.token[:0], c)
	}
}

func (s *scan) add(c byte) {
	if s.at == 1 && len(s.token) <= longest {
		s.token = append(s.token, c)
	}
}

// member handles the end of a top-level key and value.
func (s *scan) member() {
	if s.value {
		switch string(s.key) {
		case `"id"`:
			s.id = append([]byte{}, s.token...)
		case `"method"`:
			s.method = true
		}
	}
	s.value, s.token, s.key = false, s.token[:0], s.key[:0]
}
