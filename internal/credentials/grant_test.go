package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

func newStore(t *testing.T, c *clock) Store {
	t.Helper()
	return Store{Dir: filepath.Join(t.TempDir(), "grants"), Now: c.now}
}

func aGrant() Grant {
	g := Grant{Name: "github", Source: Source{Kind: "env", Value: "TOKEN"}, Hosts: []string{"api.example.org:443"}}
	g.Complete()
	return g
}

func addGrant(t *testing.T, s Store, g Grant) Grant {
	t.Helper()
	g, err := s.Add(g, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func grantBroker(t *testing.T, s Store, name string) *Broker {
	t.Helper()
	cred, err := s.Credential(name)
	if err != nil {
		t.Fatal(err)
	}
	return newBroker(t, Config{Credentials: []policy.Credential{cred}, Grants: s.Dir, Now: s.Now, Env: environment("TOKEN", theSecret)})
}

func TestAGrantIsStoredWithoutItsSecretForTheUserAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t, newClock())
	g := addGrant(t, s, aGrant())
	for _, name := range []string{"github.json", ""} {
		info, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, %v", name, info.Mode(), err)
		}
	}
	if got, err := s.Get("github"); err != nil || fmt.Sprint(got) != fmt.Sprint(g) {
		t.Errorf("got  %v, %v\nwant %v", got, err, g)
	}
	left, err := filepath.Glob(filepath.Join(s.Dir, ".new-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	c, err := s.Credential("github")
	if err != nil || c.Header != "Authorization" || c.Format != "Bearer {}" || c.TTL != 15*time.Minute || c.Hosts[0] != (policy.HostPort{Host: "api.example.org", Port: 443}) || !c.Always {
		t.Errorf("credential %+v, %v", c, err)
	}
}

func TestGrantsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Grant)
	}{
		{"a name that is a path", func(g *Grant) { g.Name = "a/b" }},
		{"a name that is a flag", func(g *Grant) { g.Name = "-x" }},
		{"no host", func(g *Grant) { g.Hosts = nil }},
		{"a wildcard", func(g *Grant) { g.Hosts = []string{"*.example.org:443"} }},
		{"a host without port", func(g *Grant) { g.Hosts = []string{"example.org"} }},
		{"a host in capitals", func(g *Grant) { g.Hosts = []string{"Example.org:443"} }},
		{"a port that is none", func(g *Grant) { g.Hosts = []string{"example.org:0"} }},
		{"the header that says where to", func(g *Grant) { g.Header = "Host" }},
		{"a header for proxies", func(g *Grant) { g.Header = "Proxy-Authorization" }},
		{"a header that is two", func(g *Grant) { g.Header = "A: b\r\nC" }},
		{"a header without the secret", func(g *Grant) { g.Format = "Bearer" }},
		{"a header with two of it", func(g *Grant) { g.Format = "{} {}" }},
		{"a lease without time", func(g *Grant) { g.TTL = "0s" }},
		{"less than no use", func(g *Grant) { g.Uses = -1 }},
		{"an unknown source", func(g *Grant) { g.Source.Kind = "ftp" }},
		{"an unknown signature", func(g *Grant) { g.Sign = "x" }},
		{"a signature and a header", func(g *Grant) { g.Sign = "aws-sigv4" }},
		{"a variable that loads code", func(g *Grant) { g.Env = []string{"LD_PRELOAD"} }},
		{"a placeholder of two words", func(g *Grant) { g.Shape = "a b" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, g := newStore(t, newClock()), aGrant()
			c.change(&g)
			if _, err := s.Add(g, false); err == nil {
				t.Error("stored")
			}
		})
	}
}

// TestAGrantThatNoLongerStandsEndsUnderARun changes the files on disk while a
// broker already has the secret.
func TestAGrantThatNoLongerStandsEndsUnderARun(t *testing.T) {
	t.Parallel()
	path := func(s Store) string { return filepath.Join(s.Dir, "github.json") }
	for _, c := range []struct {
		name, want string
		change     func(*testing.T, Store, *clock)
	}{
		{"revoked", "was revoked", func(t *testing.T, s Store, _ *clock) {
			if found, err := s.Revoke("github"); !found || err != nil {
				t.Fatal(found, err)
			}
		}},
		{"revoked and granted again", "was revoked", func(t *testing.T, s Store, _ *clock) {
			if _, err := s.Revoke("github"); err != nil {
				t.Fatal(err)
			}
			addGrant(t, s, aGrant())
		}},
		{"replaced", "replaced", func(t *testing.T, s Store, _ *clock) {
			if _, err := s.Add(aGrant(), true); err != nil {
				t.Fatal(err)
			}
		}},
		{"expired", "has expired", func(_ *testing.T, _ Store, c *clock) { c.advance(time.Hour) }},
		{"removed", "was revoked", func(t *testing.T, s Store, _ *clock) {
			if err := os.Remove(path(s)); err != nil {
				t.Fatal(err)
			}
		}},
		{"broken", "not a grant", func(t *testing.T, s Store, _ *clock) { writeFile(t, path(s), "{", 0o600) }},
		{"with a key that nobody knows", "not a grant", func(t *testing.T, s Store, _ *clock) {
			data, err := os.ReadFile(path(s))
			if err != nil {
				t.Fatal(err)
			}
			writeFile(t, path(s), strings.Replace(string(data), "{", `{"revokd": true,`, 1), 0o600)
		}},
		{"writable by others", "written by others", func(t *testing.T, s Store, _ *clock) {
			if err := os.Chmod(path(s), 0o622); err != nil {
				t.Fatal(err)
			}
		}},
		{"a link to another", "too many", func(t *testing.T, s Store, _ *clock) {
			other := filepath.Join(t.TempDir(), "x")
			if err := errors.Join(os.Rename(path(s), other), os.Symlink(other, path(s))); err != nil {
				t.Fatal(err)
			}
		}},
		{"a mark that cannot be read", "cannot be determined", func(t *testing.T, s Store, _ *clock) {
			if err := os.Mkdir(filepath.Join(s.Dir, "github.revoked"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := newClock()
			s, g := newStore(t, clock), aGrant()
			g.Expires = clock.now().Add(30 * time.Minute)
			addGrant(t, s, g)
			b := grantBroker(t, s, "github")
			mustOpen(t, b, "github")
			c.change(t, s, clock)
			secret, err := b.Open(t.Context(), "github", toAPI)
			if err == nil || secret.Value != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestACredentialOfAPolicyIsRevokedByNameUntilTheNextRun(t *testing.T) {
	t.Parallel()
	s := newStore(t, newClock())
	start := func() *Broker {
		return newBroker(t, Config{Credentials: []policy.Credential{envCredential("github", "TOKEN"), envCredential("other", "TOKEN")}, Grants: s.Dir, Env: environment("TOKEN", theSecret)})
	}
	b := start()
	mustOpen(t, b, "github")
	if found, err := s.Revoke("github"); found || err != nil {
		t.Fatal(found, err)
	}
	if _, err := b.Open(t.Context(), "github", toAPI); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("error %v", err)
	}
	mustOpen(t, b, "other")
	mustOpen(t, start(), "github")
}

func TestUsesOfAGrantAreCountedAcrossRuns(t *testing.T) {
	t.Parallel()
	const limit, runs, each = 30, 5, 10
	s, g := newStore(t, newClock()), aGrant()
	g.Uses = limit
	addGrant(t, s, g)
	var given atomic.Int64
	var wg sync.WaitGroup
	for range runs {
		b := grantBroker(t, s, "github")
		for range each {
			wg.Go(func() {
				if secret, err := b.Open(context.Background(), "github", toAPI); err == nil && secret.Value == theSecret {
					given.Add(1)
				}
			})
		}
	}
	wg.Wait()
	got, err := s.Get("github")
	if err != nil || given.Load() != limit || got.Used != limit {
		t.Errorf("given %d, counted %d, want %d (%v)", given.Load(), got.Used, limit, err)
	}
	if _, err := s.Credential("github"); !errors.Is(err, ErrUsedUp) {
		t.Errorf("error %v", err)
	}
}

func TestAUseThatCannotBeCountedIsNone(t *testing.T) {
	t.Parallel()
	s, g := newStore(t, newClock()), aGrant()
	g.Uses = 3
	addGrant(t, s, g)
	b := grantBroker(t, s, "github")
	// A directory in place of the lock: nothing can be counted.
	lock := filepath.Join(s.Dir, ".lock")
	if err := errors.Join(os.Remove(lock), os.Mkdir(lock, 0o700)); err != nil {
		t.Fatal(err)
	}
	if secret, err := b.Open(t.Context(), "github", toAPI); err == nil || secret.Value != "" {
		t.Error("opened without being counted")
	}
}

func TestOneBrokenGrantDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	s := newStore(t, newClock())
	if all, err := s.List(); len(all) != 0 || err != nil {
		t.Errorf("of no directory: %v, %v", all, err)
	}
	addGrant(t, s, aGrant())
	other := aGrant()
	other.Name = "other"
	addGrant(t, s, other)
	writeFile(t, filepath.Join(s.Dir, "other.json"), `{"version":1,"id":"x","name":"github"}`, 0o600)
	all, err := s.List()
	if len(all) != 1 || err == nil || !strings.Contains(err.Error(), "other.json") {
		t.Errorf("%d grants, %v", len(all), err)
	}
	if _, err := s.Credential("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestAddKeepsAGrantThatStands(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s, g := newStore(t, clock), aGrant()
	g.Expires = clock.now().Add(time.Hour)
	addGrant(t, s, g)
	if _, err := s.Add(aGrant(), false); err == nil || !strings.Contains(err.Error(), "there is a grant") {
		t.Errorf("error %v", err)
	}
	clock.advance(time.Hour)
	addGrant(t, s, aGrant())
}

func TestPresets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   Grant
		want string
	}{
		{"a service that is known", Grant{Hosts: []string{"api.anthropic.com:443"}}, "X-Api-Key|{}|[ANTHROPIC_API_KEY]|sk-ant-api03-|false"},
		{"one that is not known gets its header always", Grant{Hosts: []string{"api.example.org:443"}}, "Authorization|Bearer {}|[]||true"},
		{"what the user says stays", Grant{Hosts: []string{"api.anthropic.com:443"}, Header: "Authorization", Format: "Bearer {}", Env: []string{"X"}, Shape: "y"}, "Authorization|Bearer {}|[X]|y|false"},
		{"npm needs no file that names the token", Grant{Name: "npm", Hosts: []string{"packages.example.org:443"}}, "Authorization|Bearer {}|[NPM_TOKEN NODE_AUTH_TOKEN]|npm_|true"},
		{"a signature needs no header", Grant{Hosts: []string{"s3.amazonaws.com:443"}, Sign: "aws-sigv4"}, "||[]||false"},
	} {
		c.in.Complete()
		got := fmt.Sprintf("%s|%s|%v|%s|%v", c.in.Header, c.in.Format, c.in.Env, c.in.Shape, c.in.Always)
		if got != c.want || c.in.TTL != "15m0s" {
			t.Errorf("%s: %s, want %s (ttl %s)", c.name, got, c.want, c.in.TTL)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name string
		uses int64
	}{{"a grant", 0}, {"a grant whose uses are counted", 1 << 40}} {
		b.Run(c.name, func(b *testing.B) {
			s := Store{Dir: b.TempDir()}
			g := aGrant()
			g.Uses = c.uses
			if _, err := s.Add(g, false); err != nil {
				b.Fatal(err)
			}
			cred, err := s.Credential("github")
			if err != nil {
				b.Fatal(err)
			}
			broker, err := New(Config{Credentials: []policy.Credential{cred}, Grants: s.Dir, Env: environment("TOKEN", theSecret)})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := broker.Open(b.Context(), "github", toAPI); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
