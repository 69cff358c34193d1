package hooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tailscale/hujson"
)

const hook = "/opt/bin/holdfast"

// Texts as people and programs write them. Installing and removing our hooks must
// restore them byte for byte.
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
	{"a comment in the last line", "{\n  \"model\": \"opus\"\n}\n// mine"},
	{"nested deeply", `{"a": ` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`},
	{"keys that are there twice", "{\"a\": 1, \"a\": 2}\n"},
	{"text that is not Unicode", "{\"a\": \"\xff\", \"\xff\": \"\\ud83d\"}\n"},
	{"white space everywhere", "\n {\t\"a\" :\r\n [ 1 ,2 ] ,\n\n\"b\":{ }}\n\n"},
	{"escapes", "{\"a\\u0022b\": \"\\\\\", \"hook\\u0073x\": 1}\n"},
}

func TestInstallAndRemoveLeaveTheRest(t *testing.T) {
	for _, name := range []string{"claude", "codex", "gemini", "qwen"} {
		a := agents()[name]
		for _, tt := range texts {
			in, err := a.editSettings([]byte(tt.text), hook, true)
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
			again, err := a.editSettings(in, hook, true)
			if err != nil || !bytes.Equal(again, in) {
				t.Errorf("%s, %s: the second time it changed: %v", name, tt.name, err)
			}
			moved, err := a.editSettings(in, "/home/you/it's/holdfast", true)
			if state, _, ierr := a.inspect(moved, hook); err != nil || ierr != nil || state != Outdated {
				t.Errorf("%s, %s: of another path it is %s, %v, %v", name, tt.name, state, err, ierr)
			}
			out, err := a.editSettings(moved, hook, false)
			if err != nil || string(squeeze(out)) != string(squeeze([]byte(tt.text))) {
				t.Errorf("%s, %s: %v, left\n%s\nof\n%s", name, tt.name, err, out, tt.text)
			}
		}
	}
}

// squeeze removes white space and trailing commas, which an edit may move.
func squeeze(b []byte) []byte {
	for _, s := range []string{" ", "\t", "\r", "\n"} {
		b = bytes.ReplaceAll(b, []byte(s), nil)
	}
	b = bytes.ReplaceAll(b, []byte(",}"), []byte("}"))
	return bytes.ReplaceAll(b, []byte(",]"), []byte("]"))
}

func TestInstallAndRemoveRestoreEveryByte(t *testing.T) {
	a := agents()["claude"]
	for _, tt := range texts {
		text := tt.text
		if tt.name == "spaces in braces" {
			continue // removed
		}
		in, err := a.editSettings([]byte(text), hook, true)
		if err != nil {
			t.Fatal(err)
		}
		out, err := a.editSettings(in, hook, false)
		if err != nil || string(out) != text {
			t.Errorf("%s: %v: left\n%q\nof\n%q", tt.name, err, out, text)
		}
	}
}

func TestEditedRefuses(t *testing.T) {
	a := agents()["claude"]
	for _, tt := range []struct{ text, want string }{
		{`[]`, "is not in a form that the agent reads"},
		{`{"hooks": []}`, "is not in a form that the agent reads"},
		{`{"hooks": {"PreToolUse": {}}}`, "is not in a form that the agent reads"},
		{`{"hooks": {}, "hooks": {}}`, `"hooks" is there twice`},
		{`{"hooks": {"PreToolUse": [], "PreToolUse": []}}`, "twice"},
		{`{"a": 1`, "parsing object after value: unexpected EOF"},
		{"{\n\"a\": tru\n}", "line 2, column 6: a value is not JSON"},
		{`{"a": "\q"}`, "line 1, column 7: a value is not JSON"},
		{`{} {}`, "after top-level value"},
		{`{"a": /* `, "parsing comment: unexpected EOF"},
		{strings.Repeat("[", maxNested), "parsing value: unexpected EOF"},
		{strings.Repeat("[", maxSettings), "more than 10000 objects and lists"},
		{strings.Repeat(`{"a":`, maxNested+1), "more than 10000 objects and lists"},
		{`{a: 1}`, "line 1, column 2: a value is not JSON"},
		{`{"a": 1,,}`, "line 1, column 9: invalid character ',' at start of value"},
		{`{"a": "\` + "\x1b" + `[31msecret"}`, "line 1, column 7: a value is not JSON"},
		{"{\x1b}", `invalid character '\u001b'`},
		{"{// \xff\n}", "invalid UTF-8 in comment"},
		{`{"a" 1}`, "invalid character '1' after object name"},
		{`{"a": "x`, "parsing string: unexpected EOF"},
		{strings.Repeat(" ", maxSettings) + "{}", "longer than"},
	} {
		out, err := a.editSettings([]byte(tt.text), hook, true)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q\n%.200s", tt.text, err, tt.want, out)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v quotes a value", tt.text, err)
		}
	}
}

// After our hooks are removed, everything that people wrote around them is kept.
func TestRemoveKeepsWhatStandsAroundThem(t *testing.T) {
	a := agents()["claude"]
	group := `{"hooks": [{"type": "command", "command": "` + hook + ` hook claude call"}]}`
	list := `"hooks": {"PreToolUse": [` + group + `]}`
	for _, tt := range []struct{ name, text, want string }{
		{"first, with a comment above", "{ // mine\n  " + list + ", \"b\": 1\n}", "{ // mine\n   \"b\": 1\n}"},
		{"first, with lines below", "{ // mine\n  " + list + ",\n  \"b\": 1\n}", "{ // mine\n  \"b\": 1\n}"},
		{"in the middle", "{\n  \"a\": 1, // one\n  " + list + ", // ours\n  \"b\": 2 // two\n}", "{\n  \"a\": 1, // one\n   // ours\n  \"b\": 2 // two\n}"},
		{"last, with comments before both commas", "{\"a\": 1 /* one */, /* ours */ " + list + " /* gone */,}", "{\"a\": 1 /* one */, /* ours */ }"},
		{"last, with a comment before the comma alone", "{\"a\": 1 // one\n, " + list + " // ours\n}", "{\"a\": 1 // one\n  // ours\n}"},
		{"between groups", `{"hooks": {"PreToolUse": [{}, ` + group + `, /* x */ {"b": [1,]}]}}`, `{"hooks": {"PreToolUse": [{},  /* x */ {"b": [1,]}]}}`},
		{"two in one group", `{"hooks": {"PreToolUse": [{"hooks": [{"command": "` + hook + ` hook claude call"}, /* x */ {"command": "` + hook + ` hook claude call 600"}, {}]}]}}`, `{"hooks": {"PreToolUse": [{"hooks": [ /* x */  {}]}]}}`},
	} {
		out, err := a.editSettings([]byte(tt.text), hook, false)
		if err != nil || string(out) != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, err, out, tt.want)
		}
	}
}

func TestInspectSaysWhatSomebodyChanged(t *testing.T) {
	a := agents()["claude"]
	in, err := a.editSettings([]byte("{}"), hook, true)
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
		mended, err := a.editSettings([]byte(text), hook, true)
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
		got, is := ownHookProgram(tt.text, "claude", Call)
		if got != tt.program || is != (tt.program != "") {
			t.Errorf("%q: %q, %t", tt.text, got, is)
		}
	}
	if slices.Contains(Agents(), "") || len(Agents()) != 6 {
		t.Error(Agents())
	}
}

// standard is a text without comments and trailing commas; an empty one becomes
// {}.
func standard(text string) []byte {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	if strings.TrimSpace(text) == "" {
		return []byte("{}")
	}
	out, err := hujson.Standardize([]byte(text + "\n"))
	if err != nil {
		return nil
	}
	return out
}

func FuzzSettings(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	f.Add(`{"hooks":{"PreToolUse":[{"hooks":[{"command":"/x hook claude call"}]}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		a := agents()["claude"]
		in, err := a.editSettings([]byte(text), hook, true)
		if err != nil {
			return
		}
		if state, _, err := a.inspect(in, hook); err != nil || state != Installed && !strings.Contains(text, "disableAllHooks") {
			t.Fatalf("%q became %q, which is %s, %v", text, in, state, err)
		}
		out, err := a.editSettings(in, hook, false)
		if err != nil {
			t.Fatalf("%q became %q, from which nothing can be removed: %v", text, in, err)
		}
		if state, _, _ := a.inspect(out, hook); state != Absent {
			t.Fatalf("%q became %q: %s", text, out, state)
		}
		if d, err := parseSettings([]byte(text)); err == nil && size(&d.root) > 0 {
			if i, err := index(&d.root, "hooks"); err == nil && i < 0 && string(out) != text {
				t.Fatalf("%q became %q", text, out)
			}
		}
		var before, after map[string]any
		if json.Unmarshal(standard(text), &before) != nil || json.Unmarshal(standard(string(out)), &after) != nil {
			t.Fatalf("%q became %q", text, out)
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
