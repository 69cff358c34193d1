package hooks

import (
	"bytes"
	"encoding/json"
	"strings"
)

// sheet is a text that is edited in place.
type sheet struct {
	data []byte
	root *node
	unit string // of indentation
	line string // how lines end
}

func newSheet(data []byte) (*sheet, error) {
	root, err := scan(data)
	if err != nil {
		return nil, err
	}
	s := &sheet{data: data, root: root, unit: "  ", line: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		s.line = "\r\n"
	}
	if len(root.members) > 0 {
		if lead, own := s.lead(root.members[0].from); own && lead != "" {
			s.unit = lead
		}
	}
	return s, nil
}

// lead is the white space before at in its line, and whether nothing else is.
func (s *sheet) lead(at int) (string, bool) {
	from := bytes.LastIndexByte(s.data[:at], '\n') + 1
	lead := string(s.data[from:at])
	return lead, from > 0 && strings.Trim(lead, " \t") == ""
}

// replace puts text where [from, to) was, and reads the whole again.
func (s *sheet) replace(from, to int, text string) error {
	out := make([]byte, 0, len(s.data)+len(text))
	out = append(append(append(out, s.data[:from]...), text...), s.data[to:]...)
	root, err := scan(out)
	if err != nil {
		return err
	}
	s.data, s.root = out, root
	return nil
}

// render writes a value for a line that is indented by lead.
func (s *sheet) render(v any, lead string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(lead, s.unit)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", s.line), nil
}

// add puts a value at the end of n, under a key where n is an object.
func (s *sheet) add(n *node, depth int, key string, v any) error {
	lead := strings.Repeat(s.unit, depth+1)
	if len(n.members) > 0 {
		if own, alone := s.lead(n.members[len(n.members)-1].from); alone {
			lead = own
		}
	}
	text, err := s.render(v, lead)
	if err != nil {
		return err
	}
	if n.kind == '{' {
		quoted, err := json.Marshal(key)
		if err != nil {
			return err
		}
		text = string(quoted) + ": " + text
	}
	if len(n.members) == 0 {
		inner := s.data[n.from+1 : n.to-1]
		if len(bytes.TrimSpace(inner)) == 0 {
			return s.replace(n.from+1, n.to-1, s.line+lead+text+s.line+strings.Repeat(s.unit, depth))
		}
		return s.replace(n.from+1, n.from+1, s.line+lead+text)
	}
	end := n.members[len(n.members)-1].value.to
	comma := scanner{data: s.data, at: end}
	if comma.skip() == nil && comma.peek() == ',' {
		return s.replace(comma.at+1, comma.at+1, s.line+lead+text)
	}
	return s.replace(end, end, ","+s.line+lead+text)
}

// commented says whether comments stand in n, outside of its only value: people
// keep hooks in them that they have switched off.
func (s *sheet) commented(n *node) bool {
	m := n.members[0]
	return bytes.ContainsRune(s.data[n.from:m.from], '/') || bytes.ContainsRune(s.data[m.value.to:n.to], '/')
}

// drop removes the i-th value of n, with its comma and its line.
func (s *sheet) drop(n *node, i int) error {
	m := n.members[i]
	from, to := m.from, m.value.to
	after := scanner{data: s.data, at: to}
	comma := after.skip() == nil && after.peek() == ','
	if lead, alone := s.lead(from); alone {
		from -= len(lead) + 1
		if from > 0 && s.data[from-1] == '\r' {
			from--
		}
	}
	if comma {
		// What stands between the value and its comma is a comment on it.
		return s.replace(from, after.at+1, "")
	}
	if i == 0 {
		if inner := bytes.TrimSpace(append(bytes.Clone(s.data[n.from+1:from]), s.data[to:n.to-1]...)); len(inner) == 0 {
			from, to = n.from+1, n.to-1
		}
		return s.replace(from, to, "")
	}
	before := scanner{data: s.data, at: n.members[i-1].value.to}
	if before.skip() != nil || before.peek() != ',' {
		return s.replace(from, to, "")
	}
	// First the later bytes: the places of the earlier stay as they are.
	out := append(bytes.Clone(s.data[:before.at]), s.data[before.at+1:from]...)
	out = append(out, s.data[to:]...)
	root, err := scan(out)
	if err != nil {
		return err
	}
	s.data, s.root = out, root
	return nil
}
