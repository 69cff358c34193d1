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

// ToolArguments are the arguments of a tool. A condition fails if it asks for a name
// that is there only in different case: whether the program that gets the arguments
// distinguishes case is not known.
type ToolArguments map[string]string

// Arguments is the first level of the arguments of a tool, which are written as JSON in
// the form of package canonical: texts as they are, other values as JSON. What is not
// an object, such as one that was cut, is as a whole under "".
func Arguments(written string) ToolArguments {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(written), &members) != nil {
		return ToolArguments{"": written}
	}
	out := make(ToolArguments, len(members))
	for k, raw := range members {
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		out[k] = s
	}
	return out
}
