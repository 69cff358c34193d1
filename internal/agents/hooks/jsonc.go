package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// What is edited at most: settings are written by people.
const (
	maxSettings = 4 << 20 // bytes
	maxDepth    = 64
)

// node is a value of a text of JSON with comments and trailing commas, by where it
// stands: an edit replaces a few bytes and leaves the others as they are.
type node struct {
	from, to int    // in the text
	kind     byte   // the first byte: { [ " or that of a bare word
	text     string // of a string
	members  []member
}

// member is a value in an object, with its key, or one in a list.
type member struct {
	from  int // of the key, or of the value in a list
	key   string
	value *node
}

// find gives the value of a key; an error when the key stands there twice, for
// readers do not agree on which of them counts.
func (n *node) find(key string) (*node, error) {
	var found *node
	if n.kind != '{' {
		return nil, nil
	}
	for _, m := range n.members {
		if m.key != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("the key %q stands there twice", key)
		}
		found = m.value
	}
	return found, nil
}

// word is the text of a string at a key; "" for none.
func (n *node) word(key string) string {
	v, err := n.find(key)
	if err != nil || v == nil || v.kind != '"' {
		return ""
	}
	return v.text
}

// scanner reads the text.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) fail(what string) error {
	line := 1 + bytes.Count(s.data[:min(s.at, len(s.data))], []byte{'\n'})
	return fmt.Errorf("line %d: %s", line, what)
}

// scan reads a whole text.
func scan(data []byte) (*node, error) {
	s := &scanner{data: data}
	if len(data) > maxSettings {
		return nil, fmt.Errorf("it is longer than %d MiB", maxSettings>>20)
	}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		s.at = 3
	}
	if err := s.skip(); err != nil {
		return nil, err
	}
	n, err := s.value(0)
	if err != nil {
		return nil, err
	}
	if err := s.skip(); err != nil {
		return nil, err
	}
	if s.at != len(data) {
		return nil, s.fail("something stands behind the value")
	}
	return n, nil
}

// skip passes white space and comments.
func (s *scanner) skip() error {
	for s.at < len(s.data) {
		rest := s.data[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.at++
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			s.at += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return s.fail("a comment does not end")
			}
			s.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

func (s *scanner) peek() byte {
	if s.at < len(s.data) {
		return s.data[s.at]
	}
	return 0
}

func (s *scanner) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, s.fail("it is nested too deeply")
	}
	n := &node{from: s.at, kind: s.peek()}
	var err error
	switch n.kind {
	case '{', '[':
		err = s.container(n, depth)
	case '"':
		n.text, err = s.quoted()
	default:
		for s.at < len(s.data) && strings.IndexByte(" \t\r\n,]}/", s.data[s.at]) < 0 {
			s.at++
		}
		if !json.Valid(s.data[n.from:s.at]) {
			err = s.fail("a value is missing or is no JSON")
		}
	}
	n.to = s.at
	return n, err
}

func (s *scanner) quoted() (string, error) {
	from := s.at
	for s.at++; s.at < len(s.data); s.at++ {
		switch s.data[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			var text string
			if err := json.Unmarshal(s.data[from:s.at], &text); err != nil {
				return "", s.fail("a text is no JSON")
			}
			return text, nil
		}
	}
	s.at = len(s.data)
	return "", s.fail("a text does not end")
}

// container reads an object or a list.
func (s *scanner) container(n *node, depth int) error {
	end := n.kind + 2 // in ASCII both brackets stand two before their ends
	s.at++
	for {
		if err := s.skip(); err != nil {
			return err
		}
		if s.peek() == end {
			s.at++
			return nil
		}
		m := member{from: s.at}
		if n.kind == '{' {
			if err := s.key(&m); err != nil {
				return err
			}
		}
		var err error
		if m.value, err = s.value(depth + 1); err != nil {
			return err
		}
		n.members = append(n.members, m)
		if err := s.skip(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case end:
		default:
			return s.fail("a comma or an end is missing")
		}
	}
}

func (s *scanner) key(m *member) (err error) {
	if s.peek() != '"' {
		return s.fail("a key is missing")
	}
	if m.key, err = s.quoted(); err != nil {
		return err
	}
	if err := s.skip(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return s.fail("a colon is missing")
	}
	s.at++
	return s.skip()
}
