package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"holdfast.dev/holdfast/internal/floor/canonical"
)

// batchMost is the maximum number of messages in one line. Batches existed only
// in version 2025-03-26 of the protocol.
const batchMost = 100

// parse reads the messages of a line: one, or a list.
func parse(text []byte, depth int) ([]jsonrpc.Message, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	var s scan
	s.write(text)
	if s.depth > depth {
		return nil, fmt.Errorf("it is nested deeper than %d", depth)
	}
	if text[0] != '[' {
		m, err := parseOne(text, s.facts)
		return []jsonrpc.Message{m}, err
	}
	if !json.Valid(text) {
		return nil, errors.New("it is not JSON")
	}
	parts, more, err := elements(text, batchMost)
	if err != nil || more || len(parts) == 0 {
		return nil, fmt.Errorf("it is a batch of no messages or of more than %d", batchMost)
	}
	out := make([]jsonrpc.Message, len(parts))
	for i, part := range parts {
		var s scan
		s.write(part)
		m, err := parseOne(part, s.facts)
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

// callMethod is the method to which rules about tools apply.
const callMethod = "tools/call"

// parseOne reads one message. It refuses what the SDK would encode differently
// from what was received.
func parseOne(text []byte, f facts) (jsonrpc.Message, error) {
	if !json.Valid(text) { // the SDK's decoder stops after the first value
		return nil, errors.New("it is not JSON")
	}
	m, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		return nil, fmt.Errorf("it is not a message: %w", err)
	}
	if _, err := makeID(f.id); err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *jsonrpc.Request:
		if m.Method == "" { // the SDK would omit it
			return nil, errors.New("its method has no name")
		}
		if m.Method != callMethod && strings.EqualFold(strings.TrimSpace(m.Method), callMethod) { // bypasses the rules
			return nil, errors.New("its method is " + callMethod + " in another spelling, which a server may take for the same")
		}
	case *jsonrpc.Response:
		if (m.Error == nil) == (m.Result == nil) {
			return nil, errors.New("an answer has either a result or an error")
		}
	}
	return m, nil
}

// makeID reads the id of a message; a missing one becomes the invalid ID.
// JSON-RPC would accept any number. The SDK makes integers of them, and MCP
// allows only integers.
func makeID(text []byte) (jsonrpc.ID, error) {
	if len(text) == 0 {
		return jsonrpc.ID{}, nil
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return jsonrpc.ID{}, errors.New("its id is not JSON")
	}
	switch v := v.(type) {
	case string:
		return jsonrpc.MakeID(v)
	case float64:
		if v == float64(int64(v)) && v < 1<<53 && v > -1<<53 {
			return jsonrpc.MakeID(v)
		}
	}
	return jsonrpc.ID{}, errors.New("its id is neither a string nor an integer below 2^53")
}

// idText is an id in the form of the record.
func idText(id jsonrpc.ID) string {
	if !id.IsValid() {
		return ""
	}
	return fmt.Sprint(id.Raw())
}

// toolCall is the content of a tools/call request.
type toolCall struct {
	name      string
	arguments json.RawMessage // in the form of package canonical
	params    json.RawMessage // all of the parameters, likewise
}

// parseCall reads the parameters of tools/call and writes them again in one
// canonical form, which the rules judge, the record contains and the server gets.
// Parameters that parsers could interpret differently, because a name occurs
// twice or in another case, are refused: the record would not say what the server
// does.
func parseCall(params json.RawMessage) (c toolCall, err error) {
	if len(params) == 0 {
		return c, errors.New("reading a tool call: it has no parameters")
	}
	if c.params, err = canonical.JSON(params); err != nil {
		return c, fmt.Errorf("reading a tool call: %w", err)
	}
	err = members(c.params, func(key string, value json.RawMessage) error {
		for _, known := range []string{"name", "arguments"} {
			if strings.EqualFold(key, known) && key != known {
				return fmt.Errorf("%q is in the tool call in another case than %q", key, known)
			}
		}
		switch key {
		case "name":
			return json.Unmarshal(value, &c.name)
		case "arguments":
			if value[0] != '{' && string(value) != "null" {
				return errors.New("its arguments are not an object")
			}
			c.arguments = bytes.Clone(value)
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("reading a tool call: %w", err)
	}
	if c.name == "" {
		return c, errors.New("reading a tool call: it has no name")
	}
	return c, nil
}

// elements returns the first elements of a list, and whether there are more. It
// does not parse them: a list of a million small values takes a hundred times the
// memory of its text.
func elements(list json.RawMessage, most int) (all []json.RawMessage, more bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(list))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil, false, errors.New("this is not a list")
	}
	for dec.More() {
		if len(all) == most {
			return all, true, nil
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, false, err
		}
		all = append(all, one)
	}
	return all, false, nil
}

// member is the value of an object's last key with this name; nil for none.
func member(object json.RawMessage, name string) json.RawMessage {
	var found json.RawMessage
	err := members(object, func(key string, value json.RawMessage) error {
		if key == name {
			found = value
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return found
}

// textOf is a string in an object; "" for none.
func textOf(object json.RawMessage, name string) string {
	var text string
	if json.Unmarshal(member(object, name), &text) != nil {
		return ""
	}
	return text
}

// members calls f with each key of an object, in order.
func members(object json.RawMessage, f func(key string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("this is not an object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := f(key.(string), value); err != nil { // object keys are strings
			return err
		}
	}
	return nil
}
