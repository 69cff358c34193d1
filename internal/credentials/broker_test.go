package credentials

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const theSecret = "s3cret-that-nobody-may-see-0123456789"

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// diary keeps events, or fails to.
type diary struct {
	mu  sync.Mutex
	all []event.Event
	err error
}

func (d *diary) Emit(e event.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	d.all = append(d.all, e)
	return nil
}

func (d *diary) count(v event.Verdict) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.all {
		if e.Verdict == v {
			n++
		}
	}
	return n
}

var toAPI = Use{Name: "api.example.org", Port: 443, Method: "GET", Path: "/x?token=1"}

func envCredential(name, variable string) policy.Credential {
	return policy.Credential{
		Name: name, Source: policy.CredentialSource{Kind: "env", Value: variable},
		Hosts:  []policy.HostPort{{Host: "api.example.org", Port: 443}},
		Header: "Authorization", Format: "Bearer {}", Env: []string{variable}, Shape: "ghp_", TTL: 15 * time.Minute,
		Origin: policy.Origin{File: "policy.yaml", Line: 7},
	}
}

func environment(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func newBroker(t *testing.T, c Config) *Broker {
	t.Helper()
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func mustOpen(t *testing.T, b *Broker, name string) Secret {
	t.Helper()
	s, err := b.Open(t.Context(), name, toAPI)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnOpenedSecretIsRecordedAndNeverShown(t *testing.T) {
	t.Parallel()
	d := &diary{}
	var unset []string
	b := newBroker(t, Config{
		Session: "s1", Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Sink: d, Env: environment("TOKEN", theSecret),
		Unset: func(n string) error { unset = append(unset, n); return nil },
	})
	if s := mustOpen(t, b, "github"); s.Value != theSecret {
		t.Errorf("secret has %d bytes, want %d", len(s.Value), len(theSecret))
	}
	if !slices.Equal(unset, []string{"TOKEN"}) {
		t.Errorf("taken out of the environment: %v", unset)
	}
	if len(d.all) != 1 {
		t.Fatalf("%d events, want 1", len(d.all))
	}
	e := d.all[0]
	for key, want := range map[string]string{"credential": "github", "method": "GET", "path": "/x", "left": "any number"} {
		if e.Detail[key] != want {
			t.Errorf("detail %s is %q, want %q", key, e.Detail[key], want)
		}
	}
	if e.Verdict != event.Allowed || e.Object != "api.example.org:443" || e.Rule != "policy.yaml:7" || e.Session != "s1" || e.Action != "credential.use" {
		t.Errorf("event %+v", e)
	}
	if len(e.Detail["hash"]) != len("sha256:")+8 || e.Detail["lease"] == "" {
		t.Errorf("hash %q lease %q", e.Detail["hash"], e.Detail["lease"])
	}
	if got := b.Issued(); len(got) != 1 || string(got[0]) != theSecret {
		t.Errorf("%d issued values, want 1", len(got))
	}
	if text := fmt.Sprintf("%+v", d.all); strings.Contains(text, theSecret) {
		t.Error("the secret is in an event")
	}
}

func TestNoRecordNoSecret(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Sink: &diary{err: errors.New("disk full")}, Env: environment("TOKEN", theSecret)})
	s, err := b.Open(t.Context(), "github", toAPI)
	if err == nil || s.Value != "" || len(b.Issued()) != 0 {
		t.Errorf("error %v, secret given %v, issued %d", err, s.Value != "", len(b.Issued()))
	}
}

func TestRefusalsOfOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, credential string
		use              Use
		env              string
		want             string
	}{
		{"a name that is no credential", "gitlab", toAPI, theSecret, "no such credential"},
		{"another host", "github", Use{Name: "evil.example.org", Port: 443}, theSecret, "it is not for evil.example.org:443"},
		{"another port", "github", Use{Name: "api.example.org", Port: 8443}, theSecret, "it is not for"},
		{"a variable that is not set", "github", toAPI, "", "TOKEN was not set"},
		{"a secret too short to be found again", "github", toAPI, "abc", "gave 3 bytes"},
		{"a secret of two lines", "github", toAPI, "abcdefgh\nX-Evil: 1", "not one line"},
		{"a secret that begins with a blank", "github", toAPI, " abcdefghij", "begins or ends with a space"},
		{"a secret that is too long", "github", toAPI, strings.Repeat("a", longest+1), "more than 16 KiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := &diary{}
			b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Sink: d, Env: environment("TOKEN", c.env)})
			s, err := b.Open(t.Context(), c.credential, c.use)
			if err == nil || !strings.Contains(err.Error(), c.want) || s.Value != "" {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if len(c.env) > 2 && strings.Contains(err.Error(), c.env) {
				t.Error("the error holds the secret")
			}
			if n := d.count(event.Allowed); n != 0 {
				t.Errorf("%d uses recorded as allowed", n)
			}
		})
	}
}

func TestUsesAreCountedExactly(t *testing.T) {
	t.Parallel()
	const limit = 20
	cred := envCredential("github", "TOKEN")
	cred.Uses = limit
	d := &diary{}
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Sink: d, Env: environment("TOKEN", theSecret)})
	var given atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if s, err := b.Open(context.Background(), "github", toAPI); err == nil && s.Value == theSecret {
				given.Add(1)
			}
		})
	}
	wg.Wait()
	if given.Load() != limit || d.count(event.Allowed) != limit || d.count(event.Denied) != 50-limit {
		t.Errorf("given %d, recorded %d allowed and %d denied", given.Load(), d.count(event.Allowed), d.count(event.Denied))
	}
}

// counter is a command that gives another secret each time.
func counter(t *testing.T) (policy.Credential, func() int) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := filepath.Join(dir, "token")
	writeFile(t, script, "#!/bin/sh\necho x >> '"+log+"'\nprintf 'token-number-%s\\n' $(wc -l < '"+log+"')\n", 0o755)
	cred := envCredential("counted", "UNUSED")
	cred.Source = policy.CredentialSource{Kind: "command", Argv: []string{script}}
	return cred, func() int {
		data, _ := os.ReadFile(log)
		return strings.Count(string(data), "\n")
	}
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestALeaseIsFetchedOnceAndAgainWhenItExpires(t *testing.T) {
	t.Parallel()
	cred, fetched := counter(t)
	c := newClock()
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: c.now})
	if fetched() != 0 {
		t.Fatal("fetched before the first use")
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if s, err := b.Open(context.Background(), "counted", toAPI); err != nil || s.Value != "token-number-1" {
				t.Errorf("%d bytes, %v", len(s.Value), err)
			}
		})
	}
	wg.Wait()
	c.advance(cred.TTL - time.Second)
	mustOpen(t, b, "counted")
	if n := fetched(); n != 1 {
		t.Fatalf("fetched %d times within the lease", n)
	}
	c.advance(time.Second)
	if s := mustOpen(t, b, "counted"); s.Value != "token-number-2" || fetched() != 2 {
		t.Errorf("after the lease: fetched %d times", fetched())
	}
	if n := len(b.Issued()); n != 2 {
		t.Errorf("%d issued values, want both", n)
	}
}

func TestASourceThatFailsIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := writeFile(t, filepath.Join(dir, "fail"), "#!/bin/sh\necho x >> '"+log+"'\nexit 3\n", 0o755)
	cred := envCredential("failing", "UNUSED")
	cred.Source = policy.CredentialSource{Kind: "command", Argv: []string{script}}
	c := newClock()
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}, Now: c.now})
	attempts := func() int {
		for range 5 {
			if _, err := b.Open(t.Context(), "failing", toAPI); err == nil {
				t.Fatal("opened")
			}
		}
		data, _ := os.ReadFile(log)
		return strings.Count(string(data), "\n")
	}
	if n := attempts(); n != 1 {
		t.Errorf("asked %d times at once", n)
	}
	c.advance(failureBackoff)
	if n := attempts(); n != 2 {
		t.Errorf("asked %d times after a while", n)
	}
}

func TestWhoGivesUpSaysNothingAboutTheSource(t *testing.T) {
	t.Parallel()
	cred, _ := counter(t)
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Open(gone, "counted", toAPI); err == nil {
		t.Error("a request that is over got a secret")
	}
	mustOpen(t, b, "counted")
}

func TestNothingIsGivenOutAfterClose(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}, Env: environment("TOKEN", theSecret)})
	mustOpen(t, b, "github")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := b.Open(context.Background(), "github", toAPI); err == nil || s.Value != "" {
		t.Error("opened after Close")
	}
	if len(b.Issued()) != 0 {
		t.Error("secrets are kept after Close")
	}
}

func TestCloseEndsAFetch(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	cred := envCredential("slow", "UNUSED")
	cred.Source = policy.CredentialSource{Kind: "command", Argv: script(t, "echo x > '"+started+"'; sleep 1000")}
	b := newBroker(t, Config{Credentials: []policy.Credential{cred}})
	done := make(chan error, 2)
	for range 2 { // one fetches, the other waits
		go func() {
			_, err := b.Open(context.Background(), "slow", toAPI)
			done <- err
		}()
	}
	await(t, func() []byte { data, _ := os.ReadFile(started); return data })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-done; err == nil {
			t.Error("opened")
		}
	}
}

func TestBoundIsForNamedPlacesOnly(t *testing.T) {
	t.Parallel()
	b := newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN")}})
	got := b.Bound("api.example.org", 443)
	if len(got) != 1 || got[0].Header != "Authorization" || got[0].Format != "Bearer {}" || got[0].Credential != "github" {
		t.Fatalf("bound %+v", got)
	}
	env := b.Placeholders()
	if len(env) != 1 || env[0].Name != "TOKEN" || env[0].Value != got[0].Placeholder || env[0].Origin.Line != 7 {
		t.Errorf("placeholders %+v", env)
	}
	for _, other := range []policy.HostPort{{Host: "api.example.org", Port: 80}, {Host: "x.api.example.org", Port: 443}, {Host: "", Port: 443}} {
		if n := len(b.Bound(other.Host, other.Port)); n != 0 {
			t.Errorf("%v has %d bindings", other, n)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*policy.Credential)
	}{
		{"a name that would be a path", func(c *policy.Credential) { c.Name = "../x" }},
		{"no name", func(c *policy.Credential) { c.Name = "" }},
		{"an unknown kind", func(c *policy.Credential) { c.Source.Kind = "magic" }},
		{"no kind", func(c *policy.Credential) { c.Source = policy.CredentialSource{} }},
		{"an unknown signature", func(c *policy.Credential) { c.Sign = "rot13" }},
		{"a relative file", func(c *policy.Credential) { c.Source = policy.CredentialSource{Kind: "file", Value: "token"} }},
		{"no command", func(c *policy.Credential) { c.Source = policy.CredentialSource{Kind: "command"} }},
		{"a relative command", func(c *policy.Credential) {
			c.Source = policy.CredentialSource{Kind: "command", Argv: []string{"./token"}}
		}},
		{"vault without a field", func(c *policy.Credential) { c.Source = policy.CredentialSource{Kind: "vault", Value: "secret/x"} }},
		{"an option that could be a secret", func(c *policy.Credential) { c.Source.Options = map[string]string{"token": "x"} }},
		{"an app without repositories", func(c *policy.Credential) {
			c.Source = policy.CredentialSource{Kind: "github-app", Options: map[string]string{"app-id": "1", "installation-id": "2", "key-file": "/k", "permissions": "contents=read"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cred := envCredential("github", "TOKEN")
			c.change(&cred)
			if _, err := New(Config{Credentials: []policy.Credential{cred}}); err == nil {
				t.Error("taken")
			}
		})
	}
	twice := []policy.Credential{envCredential("a", "A"), envCredential("a", "B")}
	if _, err := New(Config{Credentials: twice}); err == nil {
		t.Error("one name twice: taken")
	}
}
