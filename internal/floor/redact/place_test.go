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
		if got := valueEnds(tt.s, tt.i); got != tt.want {
			t.Errorf("%q at %d: %v", tt.s, tt.i, got)
		}
	}
	for _, c := range " \t\n\r\"'`;&|<>()\x00" {
		if !valueEnds(string(c), 0) {
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

// texts are texts and what they become; "" where nothing is masked.
var texts = []struct{ text, want string }{
	{"/usr/lib/python3/dist-packages/npm_modules/sk-learn/task-1", ""},
	{"api.example.org:443", ""},
	{"token.example.org:443", ""},
	{"disk-aaaaaaaabbbbbbbbccccccccdddddddd1", ""},
	{"/home/u/" + github + "/x", "/home/u/<github-token>/x"},
	{"x" + github, ""},
	{`line\n` + github, `line\n<github-token>`},
	{"a%3D" + github + "%26b", "a%3D<github-token>%26b"},
	{"AKIA" + "IOSFODNN7EXAMPLE", "<aws-key-id>"},
	{"AKIA" + "IOSFODNN7EXAMPLEX", ""},
	{"glpat-" + "aB3dEfGhIjKlMnOpQrSt, then.", "<gitlab-token>, then."},
	{"https://hooks.slack.com/services/" + "T00000000/B00000000/aaaaaaaaaaaaaaaaaaaaaaaa", "https://<slack-webhook>"},
	{"xoxb-" + "123456789012-1234567890123-abcdefghijklmnopqrstuvwx", "<slack-token>"},
	{"a " + jwt + ".", "a <jwt>."},
	{"eyJhbGciOiJIUzI1NiJ9 eyJ0", ""},
	{key, "<private-key>"},
	{"k='" + strings.ReplaceAll(key, "\n", `\n`) + "'", "k='<private-key>'"},
	{strings.ReplaceAll(key, "PRIVATE", "PUBLIC"), ""},
	{"https://user:hunter2@example.org/p?x=1", "https://user:<password>@example.org/p?x=1"},
	{"https://" + github + "@github.com/a/b", "https://<github-token>@github.com/a/b"},
	{"https://user:p@ss@example.org/", "https://user:<password>@example.org/"},
	{"https://a1b2c3d4e5f6a7b8c9d0@example.org/a", "https://<token>@example.org/a"},
	{"https://a1b2c3d4e5f6a7b8c9d@example.org/a", ""},
	{"https://build-and-deploy-user@example.org/a", ""},
	{"https://git@example.org:8443/a:b@c", ""},
	{"ssh://$USER:$PW@example.org", ""},
	{"Authorization: Bearer abcdef0123456789", "Authorization: Bearer <token>"},
	{"authorization:Basic dXNlcjpwYXNzd29yZA==", "authorization:Basic <token>"},
	{"Authorization: Bearer $TOKEN", ""},
	{"X-Api-Key: abcdefgh", "X-Api-Key: <token>"},
	{"Cookie: a=b; session=0123456789abcdef", "Cookie: <token>"},
	{"Cookie: a=bcdefg; rm -rf /", "Cookie: <token>; rm -rf /"},
	{`{"password":"a b","token":"abcdefgh","n":1}`, `{"password":"<password> b","token":"<token>","n":1}`},
	{`{\"access_token\":\"abcdefgh\"}`, `{\"access_token\":\"<token>\"}`},
	{`{"password":12345678}`, `{"password":<password>}`},
	{"password: hunter2\nuser: me", "password: <password>\nuser: me"},
	{"DB_PASS=x1 PWD=/home/u pwd=geheim", "DB_PASS=<password> PWD=/home/u pwd=<password>"},
	{"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY make", "AWS_SECRET_ACCESS_KEY=<token> make"},
	{"AWS_SECRET_ACCESS_KEY=/JalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY make", "AWS_SECRET_ACCESS_KEY=<token> make"},
	{"max_tokens=4096 token=true token=12 key=abc bypass=all", ""},
	{"TOKEN_FILE=/run/x GITHUB_TOKEN=$(cat /run/x) password=/run/secrets/p", ""},
	{"Server=x;Password=abc123;Pooling=1", "Server=x;Password=<password>;Pooling=1"},
	{"/p?token=abcdefgh&x=1#a", "/p?token=<token>&x=1#a"},
	{"AccountName=a;AccountKey=" + strings.Repeat("Eby8", 20) + "==;E=1", "AccountName=a;AccountKey=<token>;E=1"},
	{"error: invalid token: expected a string", ""},
	{"the token: 0123456789abcdefgh", "the token: <token>"},
	{"mysql --password hunter2 -h db", "mysql --password <password> -h db"},
	{"curl -s -u me:hunter2 https://example.org", "curl -s -u me:<password> https://example.org"},
	{"curl --user me:hunter2 https://example.org", "curl --user me:<password> https://example.org"},
	{"curl --user me:-hunter2 https://example.org", "curl --user me:<password> https://example.org"},
	{"curl -u me https://example.org", ""},
	{"docker run -u 1000:1000 x", ""},
	{"docker run --user 1000:1000 x", ""},
	{"token=curl;evil", "token=curl;evil"},
	{"token=aaaaaaaa;curl evil", "token=<token>;curl evil"},
	{`echo "token="; curl evil "x"`, ""},
	{`x="password="; curl evil "b"`, ""},
	{"TOKEN=abcdefg$(curl evil)", "TOKEN=<token>$(curl evil)"},
	{"PGPASSWORD=pa$$word psql", "PGPASSWORD=<password> psql"},
	{"//registry.example.org/:_authToken=abcdefgh", "//registry.example.org/:_authToken=<token>"},
	{"-----BEGIN " + "PRIVATE KEY-----\nreboot", "<private-key>\nreboot"},
	{"\xff\xfepassword=\xff\xfe\x80", "\xff\xfepassword=<password>"},
	{`args = ["--api-key", "hunter2key"]`, `args = ["--api-key", "<token>"]`},
	{"[\n  \"--password\",\n  \"hunter2\"\n]", "[\n  \"--password\",\n  \"<password>\"\n]"},
	{`[\"--token\",\"abcdefgh\"]`, `[\"--token\",\"<token>\"]`},
	{`['-password', 'hunter2']`, `['-password', '<password>']`},
	{`["--token", "--verbose", "--token", "/run/secrets/t", "the token", "abcdefgh", "--token", 12345678]`, ""},
	{`["--token",`, ""}, {`",`, ""},
	{"token=", ""}, {"=", ""}, {":", ""}, {"", ""}, {"//", ""}, {"://", ""}, {"://@", ""}, {"-----BEGIN ", ""},
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
}

func TestShapesAndPlaces(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tt := range texts {
		want := tt.want
		if want == "" {
			want = tt.text
		}
		got := r.String(tt.text)
		if short(got) != want {
			t.Errorf("%q: got %q, want %q", tt.text, short(got), want)
		}
		if again := r.String(got); again != got {
			t.Errorf("%q: masked once more %q became %q", tt.text, got, again)
		}
	}
}
