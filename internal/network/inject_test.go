package network

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const (
	testPlaceholder  = "ghp_placeholderplaceholderplaceholder01"
	otherPlaceholder = "npm_otherotherotherotherotherotherother"
	testSecret       = "ghp_s3cr3t/s3cr3t+s3cr3ts3cr3ts3cr3ts3"
)

// vault is Credentials with two placeholders: "forge", for apiName, and "other",
// for elsewhere.
type vault struct {
	binding Binding
	err     error

	mu     sync.Mutex
	opened []Use

	rejected []string
}

func newVault(change func(*Binding)) *vault {
	v := &vault{binding: Binding{Credential: "forge", Placeholder: testPlaceholder, Header: "Authorization", Format: "Bearer {}"}}
	if change != nil {
		change(&v.binding)
	}
	return v
}

func (v *vault) Bound(name string, _ int) []Binding {
	if name != apiName {
		return nil
	}
	return []Binding{v.binding}
}

func (v *vault) Detect(b []byte) []string {
	var found []string
	plain, err := url.PathUnescape(string(b))
	if err != nil {
		plain = ""
	}
	for placeholder, name := range map[string]string{testPlaceholder: "forge", otherPlaceholder: "other"} {
		if bytes.Contains(b, []byte(placeholder)) || strings.Contains(plain, placeholder) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func (v *vault) Open(_ context.Context, credential string, use Use) (Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err != nil {
		return Secret{}, v.err
	}
	v.opened = append(v.opened, use)
	return Secret{Value: testSecret}, nil
}

// Renew answers the renewal of "forge".
func (v *vault) Renew(_ context.Context, credential string, request []byte) (int, []byte) {
	if credential != "forge" || string(request) != "renew="+testPlaceholder {
		return 0, nil
	}
	return http.StatusOK, []byte(`{"access_token":"` + testPlaceholder + `"}`)
}

func (v *vault) Rejected(credential string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rejected = append(v.rejected, credential)
}

func (v *vault) Consent(ctx context.Context, _ string, _ Use) (context.Context, event.Ruling, error) {
	return ctx, event.Ruling{}, nil
}

func (v *vault) Issued() [][]byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.opened) == 0 {
		return nil
	}
	return [][]byte{[]byte(testSecret)}
}

func (v *vault) uses() []Use {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.opened)
}

func bindForge(r *policy.HostRule) { r.Credentials = []string{"forge"} }

// TestPlaceholders tries a placeholder in every place of a request.
func TestPlaceholders(t *testing.T) {
	basicOf := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	rows := []struct {
		name   string
		path   string
		header []string
		body   string
		change func(*Binding)
		want   string // Authorization upstream; "" for refused
		reason string
	}{
		{"in its header", "/a", []string{"Authorization", "Bearer " + testPlaceholder}, "", nil, "Bearer " + testSecret, ""},
		{"in its header, whose scheme is in small letters", "/a", []string{"Authorization", "bearer " + testPlaceholder}, "", nil, "Bearer " + testSecret, ""},
		{"as password", "/a", []string{"Authorization", basicOf("git:" + testPlaceholder)}, "", nil, basicOf("git:" + testSecret), ""},
		{"as user", "/a", []string{"Authorization", basicOf(testPlaceholder + ":")}, "", nil, basicOf(testSecret + ":"), ""},
		{"on a path that it is for", "/repos/a", []string{"Authorization", "Bearer " + testPlaceholder}, "", func(b *Binding) { b.Paths = []string{"/repos/**"} }, "Bearer " + testSecret, ""},
		{"nowhere, where it is set always", "/a", nil, "", func(b *Binding) { b.Always = true }, "Bearer " + testSecret, ""},
		{"nowhere, where something else stands and it is set always", "/a", []string{"Authorization", "Bearer mine"}, "", func(b *Binding) { b.Always = true }, "Bearer " + testSecret, ""},
		{"nowhere", "/a", []string{"Authorization", "Bearer mine"}, "body", nil, "Bearer mine", ""},
		{"by another name of Bearer", "/a", []string{"Authorization", "token " + testPlaceholder}, "", nil, "Bearer " + testSecret, ""},
		{"in another form", "/a", []string{"Authorization", "Digest username=" + testPlaceholder}, "", nil, "", "in another form than Bearer {}"},
		{"with more behind it", "/a", []string{"Authorization", "Bearer " + testPlaceholder + " x"}, "", nil, "", "in another form"},
		{"in a part of the password", "/a", []string{"Authorization", basicOf("git:x" + testPlaceholder)}, "", nil, "", "in another form"},
		{"as user and password", "/a", []string{"Authorization", basicOf(testPlaceholder + ":" + testPlaceholder)}, "", nil, "", "in another form"},
		{"in one of two headers", "/a", []string{"Authorization", "Bearer " + testPlaceholder, "Authorization", "Bearer mine"}, "", nil, "", "in one of two Authorization headers"},
		{"in another header", "/a", []string{"X-Token", testPlaceholder}, "", nil, "", "in another header than Authorization"},
		{"in the name of a header", "/a", []string{"X-" + testPlaceholder, "y"}, "", nil, "", "in the name of a header"},
		{"in a cookie", "/a", []string{"Cookie", "a=b; t=" + testPlaceholder}, "", nil, "", "in another header than Authorization"},
		{"percent-encoded in a header", "/a", []string{"Referer", "https://a/?" + strings.ReplaceAll(testPlaceholder, "_", "%5F")}, "", nil, "", "in another header"},
		{"in the path", "/a/" + testPlaceholder, nil, "", nil, "", "in its URL"},
		{"in the query", "/a?t=" + testPlaceholder, nil, "", nil, "", "in its URL"},
		{"percent-encoded in the query", "/a?t=" + strings.ReplaceAll(testPlaceholder, "p", "%70"), nil, "", nil, "", "in its URL"},
		{"on another path", "/gists", []string{"Authorization", "Bearer " + testPlaceholder}, "", func(b *Binding) { b.Paths = []string{"/repos/**"} }, "", "on a path that it is not for"},
		{"of another host", "/a", []string{"Authorization", "Bearer " + otherPlaceholder}, "", nil, "", "which is not a host of it"},
		{"in the body", "/a", nil, "a=" + testPlaceholder, nil, "", "in its body"},
		{"far in the body", "/a", nil, strings.Repeat("x", 1<<20-17) + testPlaceholder + strings.Repeat("y", 1<<20), nil, "", "in its body"},
		{"of another host in the body", "/a", nil, otherPlaceholder, nil, "", "in its body"},
		{"in a good header and in the body", "/a", []string{"Authorization", "Bearer " + testPlaceholder}, testPlaceholder, nil, "", "in its body"},
	}
	for _, w := range ways[1:] {
		for _, r := range rows {
			t.Run(w.name+" "+r.name, func(t *testing.T) {
				var mu sync.Mutex
				var reached bytes.Buffer
				v := newVault(r.change)
				c := w.shopConfig
				c.rule, c.credentials = bindForge, v
				s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					mu.Lock()
					fmt.Fprintf(&reached, "%s %s ", r.RequestURI, r.Header)
					reached.Write(b)
					mu.Unlock()
					w.Header().Set("X-Length", fmt.Sprint(len(r.Header.Get("Authorization")), strings.Count(r.Header.Get("Authorization"), "Bearer")))
					io.WriteString(w, base64.StdEncoding.EncodeToString([]byte("x" + r.Header.Get("Authorization")))[:0])
					mu.Lock()
					reached.WriteString("\nauthorization=" + r.Header.Get("Authorization"))
					mu.Unlock()
				}), c)
				resp, got := s.ask("POST", r.path, struct{ io.Reader }{strings.NewReader(r.body)}, r.header...)
				mu.Lock()
				all := reached.String()
				mu.Unlock()
				if strings.Contains(all, testPlaceholder) || strings.Contains(all, otherPlaceholder) {
					t.Error("upstream saw a placeholder")
				}
				if r.want != "" {
					if resp.StatusCode != 200 || !strings.HasSuffix(all, "\nauthorization="+r.want) {
						t.Errorf("answered %d %q; upstream saw %q", resp.StatusCode, got, all)
					}
					return
				}
				if resp.StatusCode != 403 || !strings.Contains(got, "credential ") || !strings.Contains(got, r.reason) || strings.Count(got, "\n") != 1 {
					t.Errorf("answered %d %q", resp.StatusCode, got)
				}
				if ref := s.refused(apiName); !ref.High || !strings.HasPrefix(ref.Reason, "credential ") {
					t.Errorf("recorded as %+v", ref)
				}
				if !s.event("credential.alert", "severity", "high") {
					t.Error("there is no alert")
				}
				if strings.Contains(fmt.Sprint(s.sink.all()), testSecret) {
					t.Error("the secret is in an event")
				}
			})
		}
	}
}

func TestPlaceholdersElsewhere(t *testing.T) {
	rows := []struct {
		name   string
		config shopConfig
		reason string
	}{
		{"in the clear", shopConfig{}, "which is not a host of it"},
		{"to a host whose rule does not name the credential", shopConfig{secure: true}, "which is not a host of it"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			v := newVault(nil)
			r.config.credentials = v
			s := newShop(t, http.NotFoundHandler(), r.config)
			resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
			if resp.StatusCode != 403 || !strings.Contains(got, r.reason) || len(v.uses()) > 0 {
				t.Errorf("answered %d %q, opened %v", resp.StatusCode, got, v.uses())
			}
		})
	}
}

func TestLeaseIsOver(t *testing.T) {
	v := newVault(nil)
	v.err = errors.New("the lease has expired")
	s := newShop(t, http.NotFoundHandler(), shopConfig{secure: true, rule: bindForge, credentials: v})
	resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
	if resp.StatusCode != 403 || !strings.Contains(got, "credential forge: the lease has expired") {
		t.Errorf("answered %d %q", resp.StatusCode, got)
	}
}

// TestEcho has a server return the secret in every way; what the client gets has
// the same length and not the secret.
func TestEcho(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("git:" + testSecret))
	everyEcho := map[string]func(w http.ResponseWriter){
		"in a header":  func(w http.ResponseWriter) { w.Header().Set("X-Echo", "a "+testSecret+" b") },
		"in a trailer": func(w http.ResponseWriter) { w.Header().Set(http.TrailerPrefix+"X-Echo", testSecret) },
		"in the body":  func(w http.ResponseWriter) { fmt.Fprintf(w, "a %s b", testSecret) },
		"twice, a byte at a time": func(w http.ResponseWriter) {
			for _, c := range []byte(testSecret + testSecret[:10] + testSecret) {
				w.Write([]byte{c})
				http.NewResponseController(w).Flush()
			}
		},
		"encoded":                     func(w http.ResponseWriter) { io.WriteString(w, encoded) },
		"percent-encoded":             func(w http.ResponseWriter) { io.WriteString(w, url.QueryEscape(testSecret)) },
		"at a seam of what is copied": func(w http.ResponseWriter) { io.WriteString(w, strings.Repeat("x", copyBytes-7)+testSecret) },
		"only its beginning":          func(w http.ResponseWriter) { io.WriteString(w, testSecret[:12]) },
	}
	for _, way := range ways[1:] {
		for name, echo := range everyEcho {
			t.Run(way.name+" "+name, func(t *testing.T) {
				c := way.shopConfig
				c.rule, c.credentials = bindForge, newVault(nil)
				var accept string
				s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					accept = r.Header.Get("Accept-Encoding")
					echo(w)
				}), c)
				resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder, "Accept-Encoding", "gzip")
				all := fmt.Sprint(resp.Header, resp.Trailer, got)
				for _, text := range []string{testSecret, url.QueryEscape(testSecret), encoded[8:40]} {
					if strings.Contains(all, text) {
						t.Errorf("%s came back in %.300q", text, all)
					}
				}
				if name == "only its beginning" {
					if got != testSecret[:12] {
						t.Errorf("the beginning of a secret is %q", got)
					}
				} else if !strings.Contains(all, "*********") {
					t.Errorf("no stars in %.300q", all)
				}
				if accept != "identity" {
					t.Errorf("upstream was asked for %q", accept)
				}
			})
		}
	}
}

// TestMasked compares masking in pieces with masking at once.
func TestMasked(t *testing.T) {
	m := newMasks([][]byte{[]byte("abab-secret"), []byte("secret-cdcdcd")})
	texts := []string{"", "abab-secret", "ababab-secret-cdcdcd", "x abab-secre", "abab-abab-secretabab-secret-cdcdcd.", strings.Repeat("ab", 100) + "-secret"}
	for _, text := range texts {
		want := m.text(text)
		for piece := 1; piece < 20; piece++ {
			r := &masked{src: &recorded{input: []byte(text), piece: piece}, masks: m}
			got, err := io.ReadAll(r)
			if err != nil || string(got) != want {
				t.Errorf("%q in pieces of %d is %q (%v), want %q", text, piece, got, err, want)
			}
		}
		if strings.Contains(want, "abab-secret") || strings.Contains(want, "secret-cdcdcd") || len(want) != len(text) {
			t.Errorf("%q is masked as %q", text, want)
		}
	}
	// What cannot become a secret is not held back.
	r := &masked{src: io.MultiReader(strings.NewReader("event: x\n\n"), failing{}), masks: m}
	p := make([]byte, 100)
	if n, err := r.Read(p); n != 10 || err != nil {
		t.Errorf("of 10 bytes %d came (%v)", n, err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestEncodedAnswers(t *testing.T) {
	for encoding, status := range map[string]int{"gzip": 200, "br": 502} {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Write(gzipped("echo " + testSecret))
		}), shopConfig{secure: true, rule: bindForge, credentials: newVault(nil)})
		resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
		if resp.StatusCode != status || status == 200 && got != "echo "+strings.Repeat("*", len(testSecret)) {
			t.Errorf("%s is answered %d %q", encoding, resp.StatusCode, got)
		}
	}
}

func TestSignedAfresh(t *testing.T) {
	const key = "AKIAPLACEHOLDER234567"
	for _, w := range ways[1:] {
		var seen http.Header
		var body []byte
		c := w.shopConfig
		c.rule = bindForge
		v := newVault(func(b *Binding) { b.Sign, b.Placeholder, b.Format = "aws-sigv4", key, "" })
		c.credentials = signing{v, key}
		s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			seen = r.Header.Clone()
			body, _ = io.ReadAll(r.Body)
		}), c)
		now := time.Now().UTC()
		claim := "AWS4-HMAC-SHA256 Credential=" + key + now.Format("/20060102/") + "eu-west-1/s3/aws4_request, SignedHeaders=accept-encoding;host;x-amz-content-sha256;x-amz-date, Signature=" + strings.Repeat("0", 64)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte("hello")))
		header := []string{"Authorization", claim, "X-Amz-Date", now.Format("20060102T150405Z"), "X-Amz-Content-Sha256", sum, "Accept-Encoding", "gzip"}
		resp, got := s.ask("PUT", "/bucket/a%2Fb?x=1", strings.NewReader("hello"), header...)
		if resp.StatusCode != 200 || !strings.Contains(seen.Get("Authorization"), "Credential=AKIAREAL234567ABCDEF/") || strings.Contains(seen.Get("Authorization"), strings.Repeat("0", 64)) {
			t.Errorf("answered %d %q; upstream saw %v", resp.StatusCode, got, seen)
		}
		if string(body) != "hello" {
			t.Errorf("the body is %q", body)
		}
		// In a URL that is signed, and with a body that is not the one of the hash.
		if resp, got := s.ask("GET", "/a?X-Amz-Credential="+key, nil); resp.StatusCode != 403 {
			t.Errorf("a signed URL is answered %d %q", resp.StatusCode, got)
		}
	}
}

// signing is a vault of a key of AWS.
type signing struct {
	*vault
	key string
}

func (s signing) Detect(b []byte) []string {
	if bytes.Contains(b, []byte(s.key)) {
		return []string{"forge"}
	}
	return nil
}

func (s signing) Open(ctx context.Context, credential string, use Use) (Secret, error) {
	_, err := s.vault.Open(ctx, credential, use)
	return Secret{Fields: map[string]string{"access-key-id": "AKIAREAL234567ABCDEF", "secret-access-key": testSecret}}, err
}
