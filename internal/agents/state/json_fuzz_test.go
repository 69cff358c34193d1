//go:build linux

package state

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// The change to the host's settings is exactly what was shown: each value that a
// change names is the shown one, and all others are unchanged.
func FuzzSplice(f *testing.F) {
	for _, s := range [][3]string{
		{`{"a":1,"b":{"c":[1,2]}}`, `{"b":{"c":[1,2]}}`, `{"b":{"c":[1,3]},"d":{}}`},
		{`{"permissions":{"deny":["x"]}}`, `{}`, `{"permissions":{}}`},
		{"{\n// comment\n\"a\":1}", `{"a":1}`, `{"a":2}`},
		{`{"a":1,"a":2}`, `{"a":2}`, `{}`}, {`{"a":{"b":1},"a":{"c":2}}`, `{"a":{"c":2}}`, `{"a":{"c":3}}`},
		{"\xef\xbb\xbf{}", `{}`, `{"a":1}`}, {"{\"k\":\"\xff\"}", `{}`, `{"a":1}`}, {`{"k":"\ud83d"}`, `{}`, `{"a":1}`},
		{`{"":{"":1}}`, `{"":{"":1}}`, `{"":{"":1.0}}`}, {`{"a.b":1,"a":{"b":1}}`, `{"a":{"b":1}}`, `{"a":{}}`},
		{`{"n":10000000000000000001,"m":1e400}`, `{}`, `{"x":-0}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]), []byte(s[2]))
	}
	f.Fuzz(func(t *testing.T, host, was, is []byte) {
		before, err1 := parseJSON(was)
		after, err2 := parseJSON(is)
		if err1 != nil || err2 != nil {
			return
		}
		keys := differences(before, after, nil, nil)
		out, err := withKeys(host, keys)
		if err != nil {
			return // nothing is written
		}
		texts(t, host, out, keys)
		old, _ := parseJSON(host)
		now, err := parseJSON(out)
		if err != nil {
			t.Fatalf("wrote %q: %v", out, err)
		}
		for _, k := range keys {
			above := descend(now, k.Key[:len(k.Key)-1])
			value, there := above[k.Key[len(k.Key)-1]]
			if there == k.Removed || there && !reflect.DeepEqual(value, k.Value) {
				t.Fatalf("%q is %v in %q, and %v was shown", k.Key, value, out, k.Value)
			}
		}
		others(t, old, now, nil, keys)
	})
}

// others compares all values that no change concerns.
func others(t *testing.T, old, now map[string]any, above []string, keys []KeyChange) {
	t.Helper()
	for name, value := range old {
		way := append(append([]string{}, above...), name)
		exact, below := false, false
		for _, k := range keys {
			n := min(len(k.Key), len(way))
			if reflect.DeepEqual(k.Key[:n], way[:n]) {
				exact = exact || len(k.Key) <= len(way)
				below = below || len(k.Key) > len(way)
			}
		}
		inner, isObject := value.(map[string]any)
		other, _ := now[name].(map[string]any)
		switch {
		case exact:
		case below && isObject:
			others(t, inner, other, way, keys)
		case !reflect.DeepEqual(value, now[name]):
			t.Fatalf("%q was %v and is %v, which nobody was shown", way, value, now[name])
		}
	}
}

// texts fails if text that the decoder cannot represent was altered.
func texts(t *testing.T, host, out []byte, keys []KeyChange) {
	t.Helper()
	shown, _ := json.Marshal(keys)
	n := 0
	for _, text := range [][]byte{host, shown} {
		n += bytes.Count(text, []byte("\ufffd")) + bytes.Count(bytes.ToLower(text), []byte(`\ufffd`))
	}
	if bytes.Count(out, []byte("\ufffd")) > n || bytes.Contains(host, []byte{0xff}) {
		t.Fatalf("text of %q is another one in %q", host, out)
	}
}
