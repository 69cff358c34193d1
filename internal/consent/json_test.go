package consent

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// fill sets every field of v, texts to bytes that are not UTF-8.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 12, 0, 0, 500, time.UTC)))
	case v.Type() == reflect.TypeFor[time.Duration]():
		v.SetInt(int64(90 * time.Second))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("a\\x9b\xff\"<é\u2028\n")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.CanUint():
		v.SetUint(7)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	}
}

// plainTexts are the fields that Holdfast itself writes, or others in ASCII only.
func plainTexts(v any) {
	ascii := func(s ...*string) {
		for _, s := range s {
			*s = "word"
		}
	}
	process := func(p *event.Process) { ascii(&p.SHA256) }
	switch v := v.(type) {
	case *Request:
		ascii(&v.ID, &v.Nonce, &v.Session, &v.Digest, &v.Attempt.ScriptSHA256, &v.Attempt.Operation, &v.Attempt.Protocol)
		v.Attempt.Kind = event.KindExec
		process(&v.Attempt.Process)
	case *Grant:
		ascii(&v.ID, &v.Session, &v.Request, &v.Covers.SHA256, &v.Covers.ScriptSHA256, &v.Covers.Operation, &v.Covers.Protocol, &v.Covers.Arguments)
		v.Covers.Kind, v.Scope = event.KindExec, For
	case *Signed:
		ascii(&v.Answer.Session, &v.Answer.Request, &v.Answer.Nonce, &v.Answer.Digest, &v.Answer.Grant)
		v.Answer.Scope = For
	}
}

// TestJSONKeepsSigns: a reader of a request finds the command in it.
func TestJSONKeepsSigns(t *testing.T) {
	var r Request
	r.Attempt.Process.Argv = []string{"sh", "-c", "a && b <in >out"}
	if text, err := r.MarshalJSON(); err != nil || !bytes.Contains(text, []byte(`"a && b <in >out"`)) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestJSONKeepsEverything writes and reads each type with all of its fields set,
// also those that are added later.
func TestJSONKeepsEverything(t *testing.T) {
	for _, v := range []any{&Request{}, &Grant{}, &Signed{}} {
		fill(reflect.ValueOf(v).Elem())
		plainTexts(v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(b, back); err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		if !reflect.DeepEqual(v, back) {
			t.Errorf("%T: read back it is\n%+q\nand was\n%+q", v, back, v)
		}
		more := append(bytes.TrimSuffix(b, []byte("}")), `,"unless":"x"}`...)
		if err := json.Unmarshal(more, back); err == nil || !strings.Contains(err.Error(), "unless") {
			t.Errorf("%T with a member that is not known: %v", v, err)
		}
	}
}

func TestASignatureSurvivesJSON(t *testing.T) {
	o := newTestQueue(t, nil)
	_, end := o.ask(changed(push(), func(a *event.Attempt) { a.Process.Argv[3] = "\xff\\x" }))
	var r Request
	through(t, o.waits(), &r)
	var s Signed
	through(t, o.reply(r, true, func(a *Answer) { a.Scope, a.For, a.Reason = For, time.Hour, "\xff" }), &s)
	if err := o.Answer(s); err != nil {
		t.Fatal(err)
	}
	verdict(t, end, event.Allowed, "")
	var g Grant
	through(t, o.Grants()[0], &g)
	if !g.Verify(o.GrantKey()) {
		t.Error("the approval is not signed any more")
	}
}

func through(t *testing.T, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func document(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/formats/approval.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestTheDocumentsExample checks the numbers of docs/formats/approval.md.
func TestTheDocumentsExample(t *testing.T) {
	text := document(t)
	block := func(language string) string {
		_, rest, _ := strings.Cut(text, "```"+language+"\n")
		found, rest, _ := strings.Cut(rest, "\n```")
		text = rest
		return found
	}
	var a Answer
	if err := json.Unmarshal([]byte(block("json")), &a); err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	s := Sign(a, key)
	if want := strings.ReplaceAll(block("text"), `\x9b`, "\x9b"); string(a.signedText()) != want {
		t.Errorf("signed is\n%q, the document says\n%q", a.signedText(), want)
	}
	if got, want := base64.StdEncoding.EncodeToString(s.Signature), block("text"); got != want {
		t.Errorf("the signature is\n%s, the document says\n%s", got, want)
	}
}

func TestTheDocumentNamesEveryMember(t *testing.T) {
	text := document(t)
	for _, of := range []reflect.Type{reflect.TypeFor[jsonRequest](), reflect.TypeFor[jsonAttempt](), reflect.TypeFor[jsonProcess](), reflect.TypeFor[jsonAsker](),
		reflect.TypeFor[jsonAnswer](), reflect.TypeFor[jsonSigned](), reflect.TypeFor[jsonGrant](), reflect.TypeFor[jsonCovers](), reflect.TypeFor[Line]()} {
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || !slices.ContainsFunc([]string{"`" + name + "`", `"` + name + `"`}, func(s string) bool { return strings.Contains(text, s) }) {
				t.Errorf("%v: %q is not in the document", of, name)
			}
		}
	}
}

func FuzzSigned(f *testing.F) {
	b, err := json.Marshal(Sign(Answer{Session: "s", Reason: "\xff"}, ed25519.NewKeyFromSeed(make([]byte, 32))))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"answer":{"session":"s","by":"a\\x9"}}`))
	o := newTestQueue(f, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Signed
		if json.Unmarshal(b, &s) == nil && (o.Answer(s) == nil || o.Revoke(s) == nil) {
			t.Errorf("%q is taken", b)
		}
	})
}
