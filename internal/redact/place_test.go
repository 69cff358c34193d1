package redact

import (
	"strings"
	"testing"
)

func TestWhereAValueEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s    string
		i    int
		want bool
	}{
		{"a", 0, false}, {"=", 0, false}, {"{", 0, false}, {"[", 0, false}, {"\\", 0, false}, {"\xff", 0, false},
		{"$", 0, false}, {"$a", 0, true}, {"$A", 0, true}, {"$1", 0, false}, {"$9", 0, false}, {"$-", 0, false},
		{"$(", 0, true}, {"${", 0, true}, {"$_", 0, true}, {"$@", 0, true}, {"$*", 0, true},
		{"$$a", 1, false}, {"$$a", 0, false}, {"$$$a", 2, true}, {"a$b", 1, true}, {"a$$b", 2, false},
		{"}", 0, true}, {"]", 0, true}, {"},", 0, true}, {"}}", 0, true}, {"}]", 0, true}, {"} ", 0, true}, {"]\n", 0, true}, {"}\"", 0, true}, {"}'", 0, true},
		{"}a", 0, false}, {"]a", 0, false}, {"}[", 0, false},
		{",", 0, false}, {",a", 0, false}, {",\"", 0, true},
	} {
		if got := ends(tt.s, tt.i); got != tt.want {
			t.Errorf("%q at %d: %v", tt.s, tt.i, got)
		}
	}
	for _, c := range " \t\n\r\"'`;&|<>()\x00" {
		if !ends(string(c), 0) {
			t.Errorf("%q ends nothing", c)
		}
	}
}

func TestValueAt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		s      string
		want   string
		quoted bool
	}{
		{"abc def", "abc", false},
		{"", "", false},
		{`"abc" d`, "abc", true},
		{`'abc' d`, "abc", true},
		{`'abc`, "abc", true},
		{`\"abc\" d`, "abc", true},
		{`\\\"abc\\\" d`, "abc", true},
		{`\\\\"abc" d`, `\\\\`, false}, // four and more are no quotation in a quotation
		{`\abc d`, `\abc`, false},
		{`abc\" d`, `abc\`, false},
		{`"\"`, "", true},
		{"{{ .Token }}x", "{{ .Token }}", false},
		{`"{{ .Token }}"`, "{{ .Token }}", true},
		{"{{ .Token", "{{", false},
		{"{ .Token }}", "{", false},
		{"{{" + strings.Repeat("a", templateMost-4) + "}} x", "{{" + strings.Repeat("a", templateMost-4) + "}}", false},
		{"{{" + strings.Repeat("a", templateMost-3) + "}} x", "{{" + strings.Repeat("a", templateMost-3), false},
	} {
		v := valueAt("="+tt.s, 1)
		if got := ("=" + tt.s)[v.from:v.to]; got != tt.want || v.quoted != tt.quoted {
			t.Errorf("%q: %q, quoted %v", tt.s, got, v.quoted)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"true", "False", "YES", "no", "on", "off", "null", "None", "nil", "undefined", "prompt", "%s", "%v", "%q", "", "*", "****", "xxx", "{{ a }}", "{{"} {
		if !harmless(text) {
			t.Errorf("%q may be a secret", text)
		}
	}
	for _, text := range []string{"truey", "abc", "*a", "xa", "%d", "{{ a }", "{ a }}", "{"} {
		if harmless(text) {
			t.Errorf("%q is no secret", text)
		}
	}
	base64 := strings.Repeat("abcdefgh", 5)
	for _, text := range []string{"/run/x", "./x", "../x", "~/x", "@/x", "@./x", "file:x", "id=x", "env:X", "stdin", "/", "/a/b/c/" + base64, "/" + base64[:38], "/a " + base64} {
		if !isFile("="+text, 1) {
			t.Errorf("%q is no file", text)
		}
	}
	for _, text := range []string{"", "x", "a/b", ".x", "~x", "@x", "/" + base64, "/" + base64[:39], "/a/b/" + base64} {
		if isFile("="+text, 1) {
			t.Errorf("%q is a file", text)
		}
	}
	if isFile("=", 5) {
		t.Error("nothing is a file")
	}
}

func TestMoreShapesAndPlaces(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tt := range []struct{ text, want string }{
		{`token = "abcdefgh"`, `token = "<token>"`},
		{`token  = "abcdefgh"`, `token  = "<token>"`},
		{`'token'='abcdefgh'`, `'token'='<token>'`},
		{`\"token\"=\"abcdefgh\"`, `\"token\"=\"<token>\"`},
		{"token=  abcdefgh", ""},
		{"token:  abcdefgh01234567", "token:  <token>"},
		{"the token: abcdefghijklmnopq", ""},
		{"the token: abcdefghijklmn1", ""},
		{`the token: "abcdefgh"`, `the token: "<token>"`},
		{"the token:abcdefgh", "the token:<token>"},
		{"x-auth-token: abcdefgh", "x-auth-token: <token>"},
		{"-token: abcdefgh", ""},
		{"password:12345678", ""},
		{"password: 12345678", ""},
		{"password=12345678", "password=<password>"},
		{`password:"12345678"`, `password:"<password>"`},
		{`"password":12345678`, `"password":<password>`},
		{"token=abcde", ""},
		{"token=abcdef", "token=<token>"},
		{"token=123456", ""},
		{"password=a", "password=<password>"},
		{"Authorization: Negotiate abcdefgh", "Authorization: Negotiate <token>"},
		{"Authorization: abcdefgh", "Authorization: <token>"},
		{"Authorization: AbcdefghijklmnopqrstU vw", "Authorization: <token> vw"},
		{"Authorization: a=bcdefg hijklmn", "Authorization: <token> hijklmn"},
		{"Cookie: sid=abcdefgh; x.y=1; z", "Cookie: <token>; z"},
		{"Cookie: sid=abcdefgh;x=1", "Cookie: <token>;x=1"},
		{"Cookie: sid", ""},
		{"Cookie: =abcdefgh", ""},
		{"bearer abcdefghijklmnop", "bearer <token>"},
		{"Bearer abcdefghijklmno", ""},
		{"basic dXNlcjpwYXNzd29yZA==", "basic <token>"},
		{"basic dXNlcg==", ""},
		{"basic training", ""},
		{"x --token -v", ""},
		{"x --token abcdefgh", "x --token <token>"},
		{"x --token /run/x", ""},
		{"x --name abcdefgh", ""},
		{`["--name", "abcdefgh"]`, ""},
		{`["token", "abcdefgh"]`, ""},
		{`["--token", 'abcdefgh']`, `["--token", '<token>']`},
		{`["--token",` + strings.Repeat(" ", gapMost-2) + `"abcdefgh"]`, `["--token",` + strings.Repeat(" ", gapMost-2) + `"<token>"]`},
		{`["--token",` + strings.Repeat(" ", gapMost) + `"abcdefgh"]`, ""},
		{"wget -u me:hunter2 x", ""},
		{"//user:hunter2@example.org", ""},
		{"s://user:hunter2@example.org", "s://user:<password>@example.org"},
		{"s:/user:hunter2@example.org", ""},
		{"https://user:hunter2@", "https://user:<password>@"},
		{"https://user:hunter2/@example.org", ""},
		{"https://user:hunter2 @example.org", ""},
		{"https://user:a$b@example.org", ""},
		{"https://user:a$$b@example.org", "https://user:<password>@example.org"},
		{"https://user:@example.org", ""},
		{"https://" + strings.Repeat("u", userinfoMost) + ":hunter2@example.org", ""},
	} {
		want := tt.want
		if want == "" {
			want = tt.text
		}
		if got := short(r.String(tt.text)); got != want {
			t.Errorf("%q: got %q, want %q", tt.text, got, want)
		}
	}
}
