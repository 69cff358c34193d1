package canonical

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestMarshal: what HTML would read as markup is not escaped, also in a type's own
// output.
func TestMarshal(t *testing.T) {
	v := map[string]any{"a&b": "<c> && d", "raw": json.RawMessage(`"e>f"`)}
	if got, err := Marshal(v); err != nil || string(got) != `{"a&b":"<c> && d","raw":"e>f"}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Marshal(make(chan int)); err == nil {
		t.Errorf("%s", got)
	}
}

func TestJSON(t *testing.T) {
	for _, tt := range []struct{ name, value, want, err string }{
		{"an escape that hides a word", `{"o":{"x":"\u0073udo"}}`, `{"o":{"x":"sudo"}}`, ""},
		{"an escape in a name", `{"comm\u0061nd":1}`, `{"command":1}`, ""},
		{"white space and the order of names", " { \"b\" : [ 1 , { } ] ,\n\"a\":null }\t", `{"a":null,"b":[1,{}]}`, ""},
		{"escapes that JSON demands", `"\"\\\/\b\n\u001F\u007f<>&\u2028"`, "\"\\\"\\\\/\\u0008\\n\\u001f\x7f<>&\u2028\"", ""},
		{"a pair of surrogates, and half of one", `["\ud83d\ude00","\ud83d"]`, "[\"\U0001F600\",\"\uFFFD\"]", ""},
		{"an integer in many forms", `[22,22.0,2.2e1,220E-1,0.22e+2,-0,0.0,1e3,9007199254740993]`, `[22,22,22,22,22,0,0,1000,9007199254740993]`, ""},
		{"a float", `[0.1,1.50,22.00000000000000000001,-1e-7,1e300]`, `[0.1,1.5,22,-1e-07,1e+300]`, ""},
		{"nothing in it", `[{},[],""]`, `[{},[],""]`, ""},
		{"a name twice", `{"a":1,"a":2}`, "", `the name "a" appears twice in it`},
		{"a name twice, once escaped, deep", `[{"a":[{"x":1,"\u0078":2}]}]`, "", `the name "x" appears twice in it`},
		{"a name in both cases", `{"a":{"command":"ls","Command":"sudo"}}`, "", `differ only in case`},
		{"a name with a letter that folds to another", "{\"task\":1,\"ta\u017fk\":2}", "", `differ only in case`},
		{"the same name in two objects", `[{"a":1},{"a":1}]`, `[{"a":1},{"a":1}]`, ""},
		{"a number out of range", `1e400`, "", "out of range"},
		{"no JSON", `{"a":1}{`, "", "it is not JSON"},
		{"no UTF-8", "\"\xff\"", "", "it is not UTF-8"},
		{"too deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), "", "nested deeper than 128"},
		{"too many members", "[" + strings.Repeat(`{"a":1},`, maxMembers+1) + "1]", "", "more than 100000 members"},
	} {
		got, err := JSON([]byte(tt.value))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %s, %v, want %q", tt.name, got, err, tt.err)
			}
		} else if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
}

// FuzzJSON holds what is written against what encoding/json reads.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,{"b":"\u0073"}],"A2":null}`, `[[],{},"",-0,1e5,true]`, `"\ud83d\ude00\ud83d"`, `{"a":1,"A":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		got, err := JSON(value)
		if err != nil {
			return
		}
		again, err := JSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and then %q, %v", value, got, again, err)
		}
		var was, is any
		if json.Unmarshal(value, &was) == nil && (json.Unmarshal(got, &is) != nil || !reflect.DeepEqual(was, is)) {
			t.Fatalf("%q became %q", value, got)
		}
	})
}
