package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Put together here, so that nothing that looks for secrets finds one in this file.
var (
	github = "ghp" + "_" + strings.Repeat("a1B2", 9)
	jwt    = "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	key    = "-----BEGIN " + "OPENSSH PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("b3Bl", 17)+"\n", 3) + "AAAE=\n-----END " + "OPENSSH PRIVATE KEY-----"
)

const theSecret = `s3cr&t/"value+1\x`

// marks makes marks short, so that rows can be read.
var marks = regexp.MustCompile(`\[redacted:([^:\]]*):[^:\]]*:[0-9a-f]{8}\]`)

func short(s string) string { return marks.ReplaceAllString(s, "<$1>") }

func TestArguments(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tt := range []struct{ argv, want string }{
		{"ls|-l|/home", ""},
		{"git|push|https://u:hunter2@example.org/r", "git|push|https://u:<password>@example.org/r"},
		{"prog|--password|hunter2|x", "prog|--password|<password>|x"},
		{"prog|--password=a b$(c", "prog|--password=<password>"},
		{"prog|--token-file|/run/x|--password-stdin|abc", ""},
		{"prog|--token|" + github, "prog|--token|<github-token>"},
		{"prog|--passphrase|correct horse battery|x", "prog|--passphrase|<password>|x"},
		{"curl|-u|me:hunter2|https://example.org", "curl|-u|me:<password>|https://example.org"},
		{"/usr/bin/curl|-ume:hunter2|x", "/usr/bin/curl|-ume:<password>|x"},
		{"curl|-H|Authorization: Bearer abcdefgh|x", "curl|-H|Authorization: Bearer <token>|x"},
		{"mysql|-phunter2|-p|db", "mysql|-p<password>|-p|db"},
		{"sh|-c|mysql -phunter2 -h db", "sh|-c|mysql -p<password> -h db"},
		{"bash|-lc|cd /x && sudo sshpass -p 'hunter 2' ssh h; mysql -p db", "bash|-lc|cd /x && sudo sshpass -p '<password>' ssh h; mysql -p db"},
		{"sh|-c|curl -u me:hunter2 https://h; curl -s -u \"me:hunter3\" https://h", "sh|-c|curl -u me:<password> https://h; curl -s -u \"me:<password>\" https://h"},
		{"sh|-c|docker run -p 80:80 x; docker login -u me -p hunter2", "sh|-c|docker run -p 80:80 x; docker login -u me -p <password>"},
		{"sh|-c|mysql -p$PASS; redis-cli -a \"$PASS\" get x", "sh|-c|mysql -p$PASS; redis-cli -a \"$PASS\" get x"},
		{"sh|script.sh|mysql -phunter2", "sh|script.sh|mysql -phunter2"},
		{"sudo|-E|mysql|-phunter2|db", "sudo|-E|mysql|-p<password>|db"},
		{"env|A=1|sshpass|-p|hunter2|ssh|h", "env|A=1|sshpass|-p|<password>|ssh|h"},
		{"sh|-c|'", "sh|-c|'"},
		{"sshpass|-p|hunter2|ssh|h", "sshpass|-p|<password>|ssh|h"},
		{"docker|run|-p|8080:80|img", ""},
		{"docker|login|-p|hunter2|reg", "docker|login|-p|<password>|reg"},
		{"docker|build|--secret|id=npm,src=x|.", ""},
		{"mkdir|-p|a/b", ""},
		{"sh|-c|curl -u a:b1234 x; rm -rf /", "sh|-c|curl -u a:<password> x; rm -rf /"},
		{"env|GITHUB_TOKEN=" + github + "|make", "env|GITHUB_TOKEN=<github-token>|make"},
		{"npm|config|set|//r.example.org/:_authToken|abcdefgh", "npm|config|set|//r.example.org/:_authToken|<token>"},
		{"x|--private-key=~/.ssh/id", ""},
	} {
		argv := strings.Split(tt.argv, "|")
		before := slices.Clone(argv)
		got := strings.Join(r.Argv(argv), "|")
		if want := tt.want; want == "" && got != tt.argv || want != "" && short(got) != want {
			t.Errorf("%q: got %q, want %q", tt.argv, short(got), want)
		}
		if !slices.Equal(argv, before) {
			t.Errorf("%q: the caller's arguments were changed", tt.argv)
		}
	}
}

// encodings are written here independently, not with what the package uses.
func encodings(v string) map[string]string {
	quoted, _ := json.Marshal(v)
	var all strings.Builder
	for _, c := range []byte(v) {
		fmt.Fprintf(&all, "%%%02x", c)
	}
	return map[string]string{
		"plain": v, "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"query": url.QueryEscape(v), "path": url.PathEscape(v), "twice": url.QueryEscape(url.QueryEscape(v)), "all": all.String(),
		"json": strings.Trim(string(quoted), `"`),
	}
}

func TestHeldValuesAreMaskedInEachForm(t *testing.T) {
	t.Parallel()
	r := New()
	r.Hold("deploy key", theSecret)
	r.Hold("short", "1234567")
	want := r.String(theSecret)
	if short(want) != "<deploy-key>" || strings.Contains(want, theSecret[:5]) {
		t.Fatalf("the mark is %q", want)
	}
	for form, text := range encodings(theSecret) {
		if got := r.String("x " + text + " y"); got != "x "+want+" y" {
			t.Errorf("%s: got %q, want the same mark as for the value itself, %q", form, got, want)
		}
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for _, before := range []string{"", "u", "us", "user:"} {
			if got := r.String(encoding.EncodeToString([]byte(before + theSecret + "tail"))); !strings.Contains(got, want) {
				t.Errorf("base64 after %q: got %q", before, got)
			}
		}
	}
	for _, text := range []string{"token=" + theSecret, "https://u:" + url.QueryEscape(theSecret) + "@h/", "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+theSecret))} {
		if got := r.String(text); !strings.Contains(got, want) || strings.Count(got, "[redacted:") != 1 {
			t.Errorf("%q: got %q, want the mark of the value", text, got)
		}
	}
	if got := r.String("a1234567b"); got != "a1234567b" {
		t.Errorf("a value of 7 bytes was held: %q", got)
	}
}

func TestLinesOfAHeldFileAreMasked(t *testing.T) {
	t.Parallel()
	r := New()
	r.Hold("file", "first\nlong-line-of-secret-content-1\n")
	if got := r.String("x long-line-of-secret-content-1"); short(got) != "x <file>" {
		t.Errorf("got %q", got)
	}
}

func TestAMarkHasTheFirstLetters(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"ab01-and-twelve-more": "[redacted:key:ab01…:hash]",
		"only-eight":           "[redacted:key:on…:hash]",
		"a]\x7f -and-12-more":  "[redacted:key:a...…:hash]",
		"abc":                  "[redacted:key:…:hash]",
	} {
		if got := mark("key", value, "hash"); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestSameValueSameMark(t *testing.T) {
	t.Parallel()
	r := New()
	long := "0123456789abcdefghijKLMN"
	same := []string{"token=" + long, "Authorization: Bearer " + long, `{"token":"` + long + `"}`}
	want := marks.FindString(r.String(same[0]))
	for _, text := range same {
		if got := marks.FindString(r.String(text)); got != want || got == "" {
			t.Errorf("%q: mark %q, want %q", text, got, want)
		}
		if got := marks.FindString(New().String(text)); got != want {
			t.Errorf("%q: another run has mark %q, want %q", text, got, want)
		}
	}
	// Of what may be guessed, only within a run.
	if a, b := r.String("password=hunter2"), r.String("https://u:hunter2@h"); marks.FindString(a) != marks.FindString(b) {
		t.Errorf("marks differ: %q, %q", a, b)
	}
	if r.String("password=hunter2") == New().String("password=hunter2") {
		t.Error("words can be tried against the mark of a password")
	}
}

func TestEventLeavesNothingAndChangesNothing(t *testing.T) {
	t.Parallel()
	r := New()
	r.Hold("held", theSecret)
	e := event.Event{
		Action: event.ProcExec, Object: "/x/" + theSecret, Resolved: "/r/" + theSecret, Detail: map[string]string{"to": theSecret, "mode": "0600"},
		Process: event.Process{PID: 7, Executable: "/e" + theSecret, Cwd: "/c" + theSecret, Argv: []string{"a", theSecret, "c"}},
	}
	before := e
	before.Detail, before.Process.Argv = maps.Clone(e.Detail), slices.Clone(e.Process.Argv)
	got := r.Event(e)
	if !reflect.DeepEqual(e, before) {
		t.Error("the caller's event was changed")
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, theSecret) || strings.Count(text, "<") == 0 && strings.Count(text, "[redacted:held:") != 6 {
		t.Errorf("got %s", text)
	}
	if got.Process.PID != 7 || got.Detail["mode"] != "0600" || got.Action != event.ProcExec {
		t.Errorf("something else was changed: %+v", got)
	}
}

func TestAnOrdinaryEventCostsNoAllocation(t *testing.T) {
	r := New()
	plain := event.Event{Object: "/usr/bin/x", Process: event.Process{Argv: []string{"x", "--y"}}, Detail: map[string]string{"a": "b"}}
	if n := testing.AllocsPerRun(10, func() { r.Event(plain) }); n != 0 {
		t.Errorf("an ordinary event costs %v allocations", n)
	}
}

func TestHoldingWhileMasking(t *testing.T) {
	t.Parallel()
	r := New()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range 20 {
				v := fmt.Sprintf("secret-%d-%d-value", i, k)
				r.Hold("n", v)
				if got := r.String("a " + v); strings.Contains(got, v) {
					t.Errorf("%q after Hold: %q", v, got)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"password=hunter2", key, jwt, "https://u:p@h/", "Cookie: a=b; c=d", `{"token":"abc\"def"}`, "[redacted:token:ab…:01234567]", "Authorization: Basic dTpw", "curl -u a:b c", theSecret} {
		f.Add(s, "--token", theSecret)
	}
	f.Fuzz(func(t *testing.T, text, other, secret string) {
		r := New()
		r.Hold("held", secret)
		r.Argv([]string{"curl", other, text, other})
		got := r.String(text)
		if again := r.String(got); again != got {
			t.Errorf("masked twice: %q, %q", got, again)
		}
		if len(secret) < shortest || strings.Contains("redacted:held:redacted-private-keytokenpassword", secret) || strings.ContainsAny(secret, "[]…:") {
			return
		}
		if got := r.String(text + secret + other); strings.Contains(got, secret) {
			t.Errorf("%q shows the secret %q", got, secret)
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	r := New()
	for i := range 8 {
		r.Hold("n", fmt.Sprintf("%s%d", github, i))
	}
	for _, bb := range []struct {
		name string
		e    event.Event
	}{
		{"path", event.Event{Object: "src/internal/egress/http_request.go", Resolved: "/home/user/project/src/internal/egress/http_request.go", Process: event.Process{PID: 1}}},
		{"node_modules", event.Event{Object: "/home/user/project/node_modules/@babel/helper-plugin-utils/lib/index.js.map", Resolved: "/home/user/project/node_modules/@babel/helper-plugin-utils/lib/index.js.map"}},
		{"exec", event.Event{Object: "/usr/bin/git", Process: event.Process{Executable: "/usr/bin/git", Cwd: "/home/user/project", Argv: []string{"git", "status", "--porcelain=v2", "--branch"}}, Detail: map[string]string{"a": "b"}}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				r.Event(bb.e)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	t := New().current()
	s := "/home/user/project/src/internal/egress/http_request.go"
	for b.Loop() {
		t.next(s, 1)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New().String("")
	}
}

func BenchmarkHold(b *testing.B) {
	for b.Loop() {
		r := New()
		for i := range 15 {
			r.Hold("n", fmt.Sprintf("%s%d", github, i))
		}
		r.String("")
	}
}

// TestEachShapeIsFound makes a token of every row of the table.
func TestEachShapeIsFound(t *testing.T) {
	t.Parallel()
	r := New()
	for i := range shapes {
		p := &shapes[i]
		letters := ""
		for _, c := range "aB3dEfGh1JkLmN0pQrStUvWxYzF4aB2cD5eF6" {
			if p.set.contains(byte(c)) {
				letters += string(c)
			}
		}
		token := p.prefix + strings.Repeat(letters, 8)[:max(p.least, 24)]
		if p.most > 0 {
			token = p.prefix + strings.Repeat(letters, 8)[:p.most]
		}
		lead := strings.Repeat("0123456789", 5)[:p.lead]
		switch {
		case p.kind == "jwt":
			token = jwt
		case p.kind == "sendgrid-key":
			token = "SG" + "." + strings.Repeat("aB", 11) + "." + strings.Repeat("cD3", 14) + "x"
		case p.kind == "harness-key":
			token = p.prefix + strings.Repeat("aB3", 8) + "." + strings.Repeat("cD4", 8) + "." + strings.Repeat("eF5", 8)
		case p.kind == "authress-key":
			token = p.prefix + strings.Repeat("aB3", 4) + ".a1b2.acc_" + strings.Repeat("c4", 8) + "." + strings.Repeat("e5", 20)
		case p.kind == "airtable-token":
			token = p.prefix + strings.Repeat("aB", 7) + "." + strings.Repeat("0f", 32)
		}
		token = lead + token
		if got := r.String("a " + token + " b"); short(got) != "a <"+p.kind+"> b" {
			t.Errorf("%s: %q became %q", p.prefix, token, got)
		}
	}
}

// FuzzCommand has texts for a shell that may hold anything.
func FuzzCommand(f *testing.F) {
	for _, text := range []string{"mysql -p'x", "a;b|c&&mysql -px", `curl -u "a:b`, `sshpass -p \`, "sudo mysql -p\"\" ''"} {
		f.Add(text)
	}
	r := New()
	f.Fuzz(func(t *testing.T, text string) {
		got := r.Argv([]string{"sh", "-c", text})
		if again := r.Argv(got); !slices.Equal(again, got) {
			t.Errorf("%q: masked once more %q became %q", text, got, again)
		}
	})
}
