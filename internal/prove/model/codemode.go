package model

import (
	"encoding/json"
	"strings"
)

// Code mode is how Codex offers its tools to some models: one tool, exec, runs a
// program, and the program calls the others. They are declared in its
// description, in TypeScript:
//
//	declare const tools: { exec_command(args: {
//	  // Shell command to execute.
//	  cmd: string;
//	  login?: boolean;
//	}): Promise<unknown>; };
const (
	declaration = "declare const tools: { "
	executor    = "exec"
)

// declared lists the tools that a description declares.
func declared(about string) []tool {
	var all []tool
	for _, part := range strings.Split(about, declaration)[1:] {
		name, rest, ok := strings.Cut(part, "(")
		if !ok || name == "" || len(name) > 128 {
			continue
		}
		t := tool{name: name, nested: true}
		if strings.HasPrefix(rest, "input: string)") {
			t.kind = custom
		} else {
			fields, _, _ := strings.Cut(strings.TrimPrefix(rest, "args: {"), "}): Promise")
			t.schema = fieldsOf(fields)
		}
		all = append(all, t)
	}
	return all
}

// fieldsOf is the JSON schema of the fields of a TypeScript type. Only the top
// level is read: no tool needs deeper fields for the arguments that we fill.
func fieldsOf(text string) json.RawMessage {
	props := object{}
	required := []string{}
	depth := 0
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "//") {
			continue
		}
		before := depth
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		name, kind, ok := strings.Cut(strings.TrimSuffix(line, ";"), ":")
		if before > 0 || !ok {
			continue
		}
		name, optional := strings.CutSuffix(strings.TrimSpace(name), "?")
		if strings.ContainsAny(name, " ({") {
			continue
		}
		props[name] = typeOf(strings.TrimSpace(kind))
		if !optional {
			required = append(required, name)
		}
	}
	return json.RawMessage(jsonText(object{"type": "object", "properties": props, "required": required}))
}

// typeOf is the JSON schema of a simple TypeScript type.
func typeOf(kind string) object {
	switch {
	case strings.HasPrefix(kind, "Array<"), strings.HasSuffix(kind, "[]"):
		return object{"type": "array"}
	case strings.HasPrefix(kind, `"`):
		values := []string{}
		for _, v := range strings.Split(kind, "|") {
			values = append(values, strings.Trim(strings.TrimSpace(v), `"`))
		}
		return object{"type": "string", "enum": values}
	case kind == "string", kind == "number", kind == "boolean":
		return object{"type": kind}
	default:
		return object{}
	}
}

// nest wraps a call of a declared tool in the program that makes it.
func (q *request) nest(c call) call {
	if !c.tool.nested {
		return c
	}
	t, ok := q.find(executor)
	if !ok {
		return c
	}
	input := jsonText(c.args)
	if c.tool.kind == custom {
		input = jsonText(c.text)
	}
	return call{tool: t, text: program(jsonText(c.tool.name), input)}
}

// programMark precedes what a program reports about itself.
const programMark = "holdfast: "

// program calls one tool and shows its result. It waits for a command that is
// still running.
func program(name, input string) string {
	return `try {
  let r = await tools[` + name + `](` + input + `);
  while (r && r.session_id !== undefined) {
    text(r.output);
    r = await tools.write_stdin({session_id: r.session_id, chars: "", yield_time_ms: 30000});
  }
  text(r && r.output !== undefined ? r.output : r);
  if (r && r.exit_code) text("exit code " + r.exit_code);
} catch (e) {
  text("error: " + (e && e.message || e));
}`
}

// search returns a program that looks for a tool which the description omits, by
// its possible names, and calls it.
func (q *request) search(names []string, args map[string]any, none string) (call, bool) {
	t, ok := q.find(executor)
	if !ok || t.kind != custom || !strings.Contains(t.about, "ALL_TOOLS") {
		return call{}, false
	}
	text := `const plain = s => s.toLowerCase().replace(/[^a-z0-9]+/g, "_");
const found = ALL_TOOLS.find(t => ` + jsonText(names) + `.includes(plain(t.name)));
if (!found) { text(` + jsonText(programMark+none) + `); exit(); }
` + program("found.name", jsonText(args))
	return call{tool: t, text: text}, true
}
