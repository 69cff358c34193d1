package expr

import (
	"encoding/json"
	"strings"
)

// ofTool gives the fields that only events about tools have, made of others.
func ofTool(f Fields, name string) (any, bool) {
	switch name {
	case "tool", "server", "agent", "arguments":
	default:
		return nil, false
	}
	if action, _ := f.Field("action"); !strings.HasPrefix(text(action), "tool.") {
		return nil, false
	}
	if name == "tool" {
		return f.Field("object")
	}
	d, _ := f.Field("detail")
	detail, ok := d.(map[string]string)
	if !ok {
		return nil, false
	}
	if name != "arguments" {
		return detail[name], true
	}
	return Arguments(detail["arguments"]), true
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// Arguments is the first level of the arguments of a tool, which are written as
// JSON: texts as they are, other values as JSON. What is no object, such as one
// that was cut, stands as a whole under "".
func Arguments(written string) map[string]string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &members) != nil {
		return map[string]string{"": written}
	}
	out := make(map[string]string, len(members))
	for k, raw := range members {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		out[k] = s
	}
	return out
}
