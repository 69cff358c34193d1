package hooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const hook = "/opt/bin/holdfast"

// A text that people and programs write, and what must be there after our hooks
// were put in and taken out again: the same bytes.
var texts = []struct{ name, text string }{
	{"nothing but braces", "{}\n"},
	{"spaces in braces", "{ \n}\n"},
	{"one line", `{"model": "opus"}`},
	{"comments", "{\n  // mine\n  \"model\": \"opus\", // this one\n  /* and\n this */ \"env\": {\"A\": \"//no comment\"}\n}\n"},
	{"trailing commas", "{\n\t\"model\": \"opus\",\n\t\"list\": [1, 2,],\n}\n"},
	{"lines of the other kind", "{\r\n  \"model\": \"opus\"\r\n}\r\n"},
	{"a mark of byte order", "\xef\xbb\xbf{\n    \"model\": \"opus\"\n}"},
	{"hooks of somebody else", "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [{\"type\": \"command\", \"command\": \"/usr/bin/lint --of claude\"}]\n      }\n    ],\n    \"Stop\": []\n  }\n}\n"},
	{"hooks switched off", "{\n  \"hooks\": {\n    // \"Stop\": [],\n    /* \"SessionStart\": [] */\n  }\n}\n"},
	{"lists with one switched off", "{\"hooks\": {\n\"PreToolUse\": [\n// {\"hooks\": []}\n],\n\"BeforeTool\": [\n/* x */\n]\n}}"},
	{"escapes", "{\"a\\u0022b\": \"\\\\\", \"hook\\u0073x\": 1}\n"},
}

func TestInstallAndRemoveLeaveTheRest(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "qwen"} {
		a := agents()[name]
		for _, tt := range texts {
			in, err := a.edited([]byte(tt.text), hook, true)
			if err != nil {
				t.Errorf("%s, %s: %v", name, tt.name, err)
				continue
			}
			if state, program, err := a.inspect(in, hook); err != nil || state != Installed || program != hook {
				t.Errorf("%s, %s: %s %s %v\n%s", name, tt.name, state, program, err, in)
			}
			for line := range strings.Lines(tt.text) {
				if rest := strings.Trim(line, " \t\r\n,{}"); !bytes.Contains(in, []byte(rest)) {
					t.Errorf("%s, %s: lost %q\n%s", name, tt.name, rest, in)
				}
			}
			again, err := a.edited(in, hook, true)
			if err != nil || !bytes.Equal(again, in) {
				t.Errorf("%s, %s: the second time it changed: %v", name, tt.name, err)
			}
			moved, err := a.edited(in, "/home/you/it's/holdfast", true)
			if state, _, ierr := a.inspect(moved, hook); err != nil || ierr != nil || state != Outdated {
				t.Errorf("%s, %s: of another path it is %s, %v, %v", name, tt.name, state, err, ierr)
			}
			out, err := a.edited(moved, hook, false)
			if err != nil || string(squeeze(out)) != string(squeeze([]byte(tt.text))) {
				t.Errorf("%s, %s: %v, left\n%s\nof\n%s", name, tt.name, err, out, tt.text)
			}
		}
	}
}

// squeeze takes out white space and commas at ends, which an edit may move.
func squeeze(b []byte) []byte {
	for _, s := range []string{" ", "\t", "\r", "\n"} {
		b = bytes.ReplaceAll(b, []byte(s), nil)
	}
	b = bytes.ReplaceAll(b, []byte(",}"), []byte("}"))
	return bytes.ReplaceAll(b, []byte(",]"), []byte("]"))
}

func TestExactBytesWhereNothingElseStandsThere(t *testing.T) {
	a := agents()["claude"]
	for _, text := range []string{"{\n  \"model\": \"opus\"\n}\n", "{\n\t\"a\": 1,\n\t\"b\": 2\n}", texts[7].text, texts[5].text} {
		in, err := a.edited([]byte(text), hook, true)
		if err != nil {
			t.Fatal(err)
		}
		out, err := a.edited(in, hook, false)
		if err != nil || string(out) != text {
			t.Errorf("%v: left\n%q\nof\n%q", err, out, text)
		}
	}
}

func TestEditedRefuses(t *testing.T) {
	a := agents()["claude"]
	for _, tt := range []struct{ text, want string }{
		{`[]`, "is not what the agent reads"},
		{`{"hooks": []}`, "is not what the agent reads"},
		{`{"hooks": {"PreToolUse": {}}}`, "is not what the agent reads"},
		{`{"hooks": {}, "hooks": {}}`, `"hooks" stands there twice`},
		{`{"hooks": {"PreToolUse": [], "PreToolUse": []}}`, "twice"},
		{`{"a": 1`, "a comma or an end is missing"},
		{"{\n\"a\": tru\n}", "line 2: a value is missing or is no JSON"},
		{`{"a": "\q"}`, "a text is no JSON"},
		{`{} {}`, "something stands behind"},
		{`{"a": /* `, "a comment does not end"},
		{strings.Repeat("[", 200), "nested too deeply"},
		{`{a: 1}`, "a key is missing"},
		{`{"a" 1}`, "a colon is missing"},
		{`{"a": "x`, "a text does not end"},
		{strings.Repeat(" ", maxSettings) + "{}", "longer than"},
	} {
		if out, err := a.edited([]byte(tt.text), hook, true); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q\n%.200s", tt.text, err, tt.want, out)
		}
	}
}

func TestInspectSaysWhatSomebodyChanged(t *testing.T) {
	a := agents()["claude"]
	in, err := a.edited([]byte("{}"), hook, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, from, to string
		want           State
	}{
		{"a matcher that leaves tools out", `"matcher": "*"`, `"matcher": "Read"`, Changed},
		{"a timeout", `"timeout": 10`, `"timeout": 1`, Changed},
		{"one moment gone", `"PostToolUse"`, `"PostToolUsed"`, Changed},
		{"a field more", `"type": "command"`, `"type": "command", "async": true`, Changed},
		{"all hooks off", `{` + "\n", "{\n\"disableAllHooks\": true,\n", Changed},
		{"one of another path", hook, "/opt/old/holdfast", Changed},
		{"one that does not say how long the agent waits", " hook claude call 600", " hook claude call", Changed},
		{"a program that only ends so", hook + " hook claude call", "/bin/true; " + hook + " hook claude call", Changed},
	} {
		text := strings.Replace(string(in), tt.from, tt.to, 1)
		if text == string(in) {
			t.Fatalf("%s: nothing to change", tt.name)
		}
		if got, _, err := a.inspect([]byte(text), hook); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v", tt.name, got, err)
		}
		mended, err := a.edited([]byte(text), hook, true)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := a.inspect(mended, hook); got != Installed && tt.name != "all hooks off" {
			t.Errorf("%s: installed again it is %s\n%s", tt.name, got, mended)
		}
	}
}

func TestOursIsExact(t *testing.T) {
	for _, tt := range []struct {
		text    string
		program string
	}{
		{"/usr/bin/holdfast hook claude call", "/usr/bin/holdfast"},
		{"'/home/a b/it'\\''s' hook claude call", "/home/a b/it's"},
		{"holdfast hook claude call", ""},
		{"/usr/bin/holdfast hook claude call; id", ""},
		{"/bin/a; /usr/bin/holdfast hook claude call", ""},
		{"'/bin/a' hook claude call", ""},
		{"/usr/bin/holdfast hook codex call", ""},
		{" hook claude call", ""},
	} {
		got, is := ours(tt.text, "claude", Call)
		if got != tt.program || is != (tt.program != "") {
			t.Errorf("%q: %q, %t", tt.text, got, is)
		}
	}
	if slices.Contains(Agents(), "") || len(Agents()) != 6 {
		t.Error(Agents())
	}
}

func FuzzSettings(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	f.Add(`{"hooks":{"PreToolUse":[{"hooks":[{"command":"/x hook claude call"}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		a := agents()["claude"]
		in, err := a.edited([]byte(text), hook, true)
		if err != nil {
			return
		}
		if state, _, err := a.inspect(in, hook); err != nil || state != Installed && !strings.Contains(text, "disableAllHooks") {
			t.Fatalf("%q became %q, which is %s, %v", text, in, state, err)
		}
		out, err := a.edited(in, hook, false)
		if err != nil {
			t.Fatalf("%q became %q, from which nothing can be removed: %v", text, in, err)
		}
		if state, _, _ := a.inspect(out, hook); state != Absent {
			t.Fatalf("%q became %q: %s", text, out, state)
		}
		var before, after map[string]any
		if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal(out, &after) != nil {
			return
		}
		delete(before, "hooks")
		delete(after, "hooks")
		x, _ := json.Marshal(before)
		y, _ := json.Marshal(after)
		if !bytes.Equal(x, y) {
			t.Fatalf("%q became %q", text, out)
		}
	})
}
