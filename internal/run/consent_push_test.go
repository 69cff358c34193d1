//go:build linux

package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// pushes sends a commit to a server that wants a secret, which the command does
// not have, and to one that no rule names.
const pushes = `set -u
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0="!printf 'username=x\npassword=%s\n' $GH_TOKEN; :" GIT_TERMINAL_PROMPT=0
	git init -q -b main r && cd r || exit
	git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m pushed
	git push -q https://allowed.test/private.git HEAD:main || echo not to the private one
	git push -q http://denied.test/public.git HEAD:main || echo not to the public one`

// TestAPushOverANetworkGoesOnAfterItsAnswers asks about three things of one run,
// over the socket and with the signature that a human's answer has: the program, a
// host that the policy does not name, and the use of a secret. Allowed, both
// servers have the commit; without any one of the answers, those do not that it
// was for.
func TestAPushOverANetworkGoesOnAfterItsAnswers(t *testing.T) {
	testenv.WithNetwork(t, hosts, func(t *testing.T, n *testenv.Network) {
		testenv.Need(t, testenv.Git, nil)
		for _, tt := range []struct {
			deny            event.Kind
			private, public bool
		}{
			{"", true, true},
			{event.KindExec, false, false},
			{event.KindConnect, true, false},
			{event.KindCredential, false, true},
		} {
			t.Run(fmt.Sprintf("%q denied", tt.deny), func(t *testing.T) { pushesTo(t, n, tt.deny, tt.private, tt.public) })
		}
	})
}

func pushesTo(t *testing.T, n *testenv.Network, deny event.Kind, private, public bool) {
	secret := "ghp_" + rand.Text() + "0123456789"
	t.Setenv("LENT_TOKEN", secret)
	dir := gitServers(t, n, secret)
	task, out := newBench(t, "sh", "-c", pushes)
	errs := &lockedBuffer{}
	task.Streams.Err, task.Unset = errs, os.Unsetenv
	task.Plan.Allow = allow(policy.HostRule{Host: "allowed.test", Ports: []int{443}, Kind: policy.TLS, Inspect: true, Credentials: []string{"forge"}})
	task.Plan.Credentials = []policy.Credential{{
		Name: "forge", Source: policy.CredentialSource{Kind: "env", Value: "LENT_TOKEN"}, Hosts: []policy.HostPort{{Host: "allowed.test", Port: 443}},
		Header: "Authorization", Format: "Bearer {}", Env: []string{"GH_TOKEN"}, Shape: "ghp_", TTL: time.Minute,
	}}
	task.Plan.Ask = []rules.Rule{{Set: "git-push"}, {Set: "new-hosts"}, {When: `action == "credential"`}}
	task.Plan.Approvals.Timeout = time.Minute
	task.Plan.Record.Level, task.Log, task.Keys = policy.RecordStandard, filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "keys")
	asked := answerAll(t, task, deny)
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := asked()
	for kind, want := range map[event.Kind]bool{event.KindExec: true, event.KindConnect: deny != event.KindExec, event.KindCredential: deny != event.KindExec} {
		if slices.Contains(got, kind) != want {
			t.Errorf("asked about %q, of which %q: want %v", got, kind, want)
		}
	}
	for name, want := range map[string]bool{"private": private, "public": public} {
		log, _ := exec.Command("git", "--git-dir", filepath.Join(dir, name+".git"), "-c", "safe.directory=*", "log", "--format=%s", "main").Output()
		if (string(log) == "pushed\n") != want || strings.Contains(out.String(), "not to the "+name) == want {
			t.Errorf("the %s server has %q; the command said %q and %q", name, log, out, errs)
		}
	}
	if output := out.String() + errs.String(); strings.Contains(output, secret) {
		t.Errorf("the secret is in %q", output)
	}
}

// answerAll is a human who allows everything but one kind. The returned function ends
// it and returns the kinds that it was asked about.
func answerAll(t *testing.T, task *Task, deny event.Kind) (asked func() []event.Kind) {
	t.Helper()
	key, err := consent.ApproverKey(task.Keys)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []event.Kind
	ctx, end := context.WithCancel(t.Context())
	var human sync.WaitGroup
	human.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			all, _ := consent.Waits(ctx, task.State) // there is no run yet, or no longer
			for _, w := range all {
				for _, r := range w.Requests {
					a := r.Answer()
					a.By, a.Via, a.At = "ann", "command", time.Now()
					if a.Allow = r.Attempt.Kind != deny; a.Allow {
						a.Scope = consent.Once
						if r.Attempt.Kind == event.KindCredential { // one push has several requests
							a.Scope = consent.Session
						}
					}
					if consent.AnswerRequest(ctx, task.State, r.Session, consent.Sign(a, key)) == nil { // it may be answered by what was allowed before it
						kinds = append(kinds, r.Attempt.Kind)
					}
				}
			}
		}
	})
	return func() []event.Kind {
		end()
		human.Wait()
		return kinds
	}
}

// gitServers serve one repository to clients with the secret, and one to all. It
// returns the directory where they are.
func gitServers(t *testing.T, n *testenv.Network, secret string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"private", "public"} {
		if out, err := exec.Command("git", "init", "-q", "-b", "main", "--bare", filepath.Join(dir, name+".git")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	where, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(where)), "git-http-backend"), InheritEnv: []string{"PATH"}, Stderr: io.Discard,
		Env: []string{
			"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
		},
	}
	serve := func(name string, allowed func(*http.Request) bool) *http.Server {
		s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !allowed(r) {
				w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
				http.Error(w, "who is it?", http.StatusUnauthorized)
				return
			}
			if !strings.HasPrefix(r.URL.Path, "/"+name+".git/") {
				http.NotFound(w, r)
				return
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil // a length is what CGI wants
			backend.ServeHTTP(w, r)
		})}
		s.Protocols.SetHTTP1(true) // libcurl 7.88 damages what git pushes over HTTP/2 to a server that answers fast
		t.Cleanup(func() { s.Close() })
		return s
	}
	private := serve("private", func(r *http.Request) bool { _, word, _ := r.BasicAuth(); return word == secret })
	private.TLSConfig = &tls.Config{Certificates: []tls.Certificate{n.Certificate(t, "allowed.test")}}
	public := serve("public", func(*http.Request) bool { return true })
	secure, err := n.Listen("93.184.215.14:443")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := n.Listen("93.184.215.15:80")
	if err != nil {
		t.Fatal(err)
	}
	go private.ServeTLS(secure, "", "")
	go public.Serve(plain)
	return dir
}

// lockedBuffer keeps what several write.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
