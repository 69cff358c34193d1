package credentials

import (
	"bytes"
	b32 "encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

var testDecoys = []Decoy{
	{"aws", "AKIAX7QZ2MB5RT6KWPLN"},
	{"aws", "q8/Zr+fJm2Lx0VbTn5WcYd1GhK7pEuAi3SoRvXkQ"},
	{"github", "ghp_9tRbXw2LmQ7zKc4VnJ8sYf1DhG5pEa3Ui60o"},
	{"short", "0123456789"},
}

func TestDecoysAreFoundInEachForm(t *testing.T) {
	t.Parallel()
	d := NewDecoys(testDecoys)
	for _, decoy := range testDecoys[:3] {
		v := decoy.Value
		back := []byte(v)
		slices.Reverse(back)
		texts := map[string]string{
			"plain": v, "reversed": string(back), "small": strings.ToLower(v), "capitals": strings.ToUpper(v), "query": url.QueryEscape(v), "twice": url.QueryEscape(url.QueryEscape(v)),
			"hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		}
		for _, before := range []string{"", "a", "ab", "abc", "abcd", "user:"} {
			whole := []byte(before + v + "\n")
			texts["base64 after "+before] = base64.StdEncoding.EncodeToString(whole)
			texts["base64url after "+before] = base64.RawURLEncoding.EncodeToString(whole)
			texts["small base64 after "+before] = strings.ToLower(base64.StdEncoding.EncodeToString(whole))
			texts["base32 after "+before] = b32.StdEncoding.EncodeToString(whole)
			texts["small base32 after "+before] = strings.ToLower(b32.StdEncoding.EncodeToString(whole))
		}
		for form, text := range texts {
			if got := d.Detect([]byte("x=" + text + "&y")); !slices.Equal(got, []string{decoy.Kind}) {
				t.Errorf("%s, %s: found %v in %q", decoy.Kind, form, got, text)
			}
		}
	}
}

func TestADecoyInPartsIsFound(t *testing.T) {
	t.Parallel()
	value := "9tRbXw2LmQ7zKc4VnJ8sYf1DhG5pEa3Ui60oQ8ZrfJm2Lx0VbTn5WcYd1GhK7pEuAi3SoRvXkQ"
	for i := range 9 { // as long as a signed token
		value += hex.EncodeToString([]byte(value[i*5 : i*5+16]))
	}
	d := NewDecoys([]Decoy{{"long", value}})
	for from := pieceFirst; from+31 <= len(value); from++ {
		if got := d.Detect([]byte(value[from : from+31])); len(got) != 1 {
			t.Errorf("the part from %d was not found", from)
		}
	}
}

func TestNothingIsTakenForADecoy(t *testing.T) {
	t.Parallel()
	d := NewDecoys(testDecoys)
	for _, text := range []string{"", "AKIA", "ghp_", "0123456789", "ghp_9tRbXw2Lm", strings.Repeat("AKIAghp_", 1000), base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("ghp_"), 100))} {
		if got := d.Detect([]byte(text)); len(got) > 0 {
			t.Errorf("%.40q was taken for %v", text, got)
		}
	}
	if got := NewDecoys(nil).Detect([]byte("x")); len(got) > 0 {
		t.Errorf("none found %v", got)
	}
}

func TestHeldIsToldOfEverySecret(t *testing.T) {
	t.Parallel()
	held := map[string]string{}
	aws := envCredential("aws", "KEYS")
	aws.Sign, aws.Env = signAWS, nil
	command := envCredential("command", "UNUSED")
	command.Source.Kind, command.Source.Value, command.Source.Argv = "command", "", script(t, "echo "+theSecret+"-2")
	b := newBroker(t, Config{
		Credentials: append([]policy.Credential{envCredential("env", "TOKEN"), aws}, command),
		Env:         environment("TOKEN", theSecret, "KEYS", `{"Version":1,"AccessKeyId":"AKIDEXAMPLE0123456","SecretAccessKey":"`+theSecret+`-1"}`),
		Held: func(name, value string) {
			if held[value] == "" {
				held[value] = name
			}
		},
	})
	if held[theSecret] != "env" || held[theSecret+"-1"] != "aws" {
		t.Errorf("when the session began %v were held", held)
	}
	if held[theSecret+"-2"] != "" {
		t.Error("the command was run before anybody asked")
	}
	mustOpen(t, b, "command")
	if held[theSecret+"-2"] != "command" {
		t.Errorf("after the fetch %v were held", held)
	}
	if held["AKIDEXAMPLE0123456"] != "" {
		t.Error("the name of a key was held as a secret")
	}
}

func BenchmarkNewDecoys(b *testing.B) {
	for b.Loop() {
		NewDecoys(testDecoys).Detect(nil)
	}
}

func BenchmarkDecoys(b *testing.B) {
	d := NewDecoys(testDecoys)
	for name, data := range map[string][]byte{
		"text":   bytes.Repeat([]byte("GET /v1/things?page=2&filter=name HTTP/1.1\r\nAccept: */*\r\n"), 600),
		"base64": []byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("\x12\x9f\xe3Wk\x03 qz"), 3000))),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				d.Detect(data)
			}
		})
	}
}
