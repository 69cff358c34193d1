//go:build linux

package exposure

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789"

// made is a separate machine below a directory, with the home /home/u.
func made(t *testing.T, files map[string]string) World {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return World{Root: root, User: "u", Home: "/home/u", UID: os.Getuid(), GID: os.Getgid(), Effective: true, Now: time.Now(), Limit: 20 * time.Second}
}

func take(t *testing.T, w World) ([]Finding, []string) {
	t.Helper()
	return Take(context.Background(), w, Here)
}

func of(findings []Finding, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Check != check })
}

func TestStores(t *testing.T) {
	for _, row := range []struct {
		name, file, content string
		check               string
		level               Level // "" for none
		detail              string
	}{
		{"a token of npm", ".npmrc", "//registry.example.org/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789\n", "npm", High, "npm-token npm_…"},
		{"an npmrc without one", ".npmrc", "save-exact=true\n; _authToken=x\n", "npm", "", ""},
		{"a login of docker", ".docker/config.json", `{"auths":{"r.example.org":{"auth":"dTpw"}}}`, "docker", High, "1 login"},
		{"docker's helper", ".docker/config.json", `{"auths":{"r.example.org":{}},"credsStore":"pass"}`, "docker", Medium, "credential helper"},
		{"docker without logins", ".docker/config.json", `{"currentContext":"x"}`, "docker", "", ""},
		{"what docker could not read either", ".docker/config.json", `{"auths":`, "docker", High, "could not be read"},
		{"a netrc", ".netrc", "machine a login b password c\n", "netrc", High, ""},
		{"a netrc without password", ".netrc", "machine a login b\n", "netrc", "", ""},
		{"git's store", ".git-credentials", "https://u:" + token + "@git.example.org\n", "git-store", High, "github-token ghp_…"},
		{"gh", ".config/gh/hosts.yml", "github.com:\n  oauth_token: " + token + "\n", "forge", High, "github-token"},
		{"gh with the token in a keyring", ".config/gh/hosts.yml", "github.com:\n  user: u\n", "forge", "", ""},
		{"aws", ".aws/credentials", "[default]\naws_secret_access_key = abc\n", "aws", High, ""},
		{"aws without keys", ".aws/config", "[default]\nregion = x\n", "aws", "", ""},
		{"an empty file", ".vault-token", "", "vault", "", ""},
		{"a history", ".bash_history", "ls\nexport TOKEN=" + token + "\n", "history", Medium, "1 with what looks like a secret"},
		{"a clean history", ".bash_history", "ls\n", "history", Low, "1 line"},
		{"a gpg key", ".gnupg/private-keys-v1.d/AB.key", "(11:private-key(3:rsa", "gpg-key", High, "without a passphrase"},
		{"a protected gpg key", ".gnupg/private-keys-v1.d/AB.key", "(21:protected-private-key(3:rsa", "gpg-key", Low, "with a passphrase"},
		{"a gpg key on a card", ".gnupg/private-keys-v1.d/AB.key", "(20:shadowed-private-key(3:rsa", "gpg-key", "", ""},
		{"a public key", ".ssh/id_ed25519.pub", "ssh-ed25519 AAAA u@h\n", "ssh-key", "", ""},
		{"a PEM key", ".ssh/id_rsa", "-----BEGIN RSA PRIVATE KEY-----\nMII\n", "ssh-key", High, "without a passphrase"},
		{"an encrypted PEM key", ".ssh/id_rsa", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", "ssh-key", Low, "with a passphrase"},
		{"a login in a remote", ".gitconfig", "[url \"https://u:" + token + "@x/\"]\n insteadOf = y\n", "git-url", High, ""},
		{"a helper that stores", ".gitconfig", "[credential]\n\thelper = store --file=/x\n", "git-helper", High, "store"},
	} {
		t.Run(row.name, func(t *testing.T) {
			findings, notes := take(t, made(t, map[string]string{"home/u/" + row.file: row.content}))
			got := of(findings, row.check)
			if row.level == "" {
				if len(got) > 0 {
					t.Fatalf("found %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Level != row.level || got[0].Object != "/home/u/"+row.file || !strings.Contains(strings.Join(got[0].Detail, "; "), row.detail) {
				t.Fatalf("got %+v, want %s with %q (notes %q)", got, row.level, row.detail, notes)
			}
		})
	}
}

// Variables point to files in other places.
func TestMoved(t *testing.T) {
	w := made(t, map[string]string{"srv/kube": "users:\n- user:\n    token: x\n", "srv/conf/gh/hosts.yml": "a:\n oauth_token: x\n"})
	w.Env = []string{"KUBECONFIG=/srv/kube", "XDG_CONFIG_HOME=/srv/conf", "HISTFILE=relative"}
	findings, _ := take(t, w)
	if len(of(findings, "kube")) != 1 || len(of(findings, "forge")) != 1 {
		t.Fatalf("%+v", findings)
	}
}

// A file that hangs or is not regular is not opened, and does not stop the
// others.
func TestHostileFiles(t *testing.T) {
	w := made(t, map[string]string{"home/u/.git-credentials": "https://u:secretword@x\n", "home/u/.npmrc/\x1b[2J\u202eevil": "x", "home/u/.ssh/\x1b]0;x\x07key": "-----BEGIN RSA PRIVATE KEY-----\n"})
	home := filepath.Join(w.Root, "home/u")
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(home, ".netrc"), 0o600),
		os.Symlink(".vault-token", filepath.Join(home, ".vault-token")),
		os.Symlink("/dev/zero", filepath.Join(home, ".pgpass")),
		os.MkdirAll(filepath.Join(home, ".aws"), 0o700),
		os.Symlink(".", filepath.Join(home, ".aws/sso")),
		os.WriteFile(filepath.Join(home, ".pypirc"), nil, 0o600),
		os.Truncate(filepath.Join(home, ".pypirc"), 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	findings, _ := take(t, w)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	for check, n := range map[string]int{"git-store": 1, "netrc": 0, "vault": 0, "database": 0, "python": 1, "ssh-key": 1} {
		if got := of(findings, check); len(got) != n {
			t.Errorf("%s: %+v, want %d", check, got, n)
		}
	}
	var text, page bytes.Buffer
	r := Report{Account: Account{User: "u\x1b[31m", Home: "/home/u"}, Checks: Checks(), Columns: []Column{{ID: Here, Kind: "measured"}}, Findings: findings}
	if err := errors.Join(Text(&text, r, nil, 0), HTML(&page, r)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if strings.ContainsAny(out, "\x1b\x07\u202e") {
			t.Errorf("control characters in %q", out)
		}
	}
}

// A part that never answers is left out, and the notes say so.
func TestHangs(t *testing.T) {
	w := made(t, map[string]string{"home/u/.vault-token": "x"})
	l, err := net.Listen("unix", filepath.Join(w.Root, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	end := make(chan struct{})
	defer close(end)
	w.Env = []string{"SSH_AUTH_SOCK=/s"}
	w.Keys = func(context.Context, string) (int, error) { <-end; return 0, nil }
	w.Limit = 3 * time.Second // also for the parts that must be found
	began := time.Now()
	findings, notes := take(t, w)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	if !slices.Contains(notes, "ssh agents: no answer in time; it was left out") || len(of(findings, "vault")) != 1 {
		t.Errorf("notes %q, findings %+v", notes, findings)
	}
}

// listening listens at sockets below the root of w.
func listening(t *testing.T, w World, names ...string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(w.Root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", full)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
}

func TestSockets(t *testing.T) {
	w := made(t, nil)
	w.Env = []string{"XDG_RUNTIME_DIR=/run/user/7", "DOCKER_HOST=unix:///srv/d.sock", "SSH_AUTH_SOCK=/agent"}
	w.Keys = func(context.Context, string) (int, error) { return 3, nil }
	listening(t, w, "run/user/7/bus", "srv/d.sock", "agent", "tmp/tmux-7/default")
	findings, _ := take(t, w)
	for _, check := range []string{"session-bus", "docker-socket", "multiplexer", "ssh-agent"} {
		if got := of(findings, check); len(got) != 1 || got[0].Level != High {
			t.Errorf("%s: %+v", check, got)
		}
	}
	if got := of(findings, "ssh-agent"); len(got) == 1 && !slices.Contains(got[0].Detail, "3 keys") {
		t.Errorf("%+v", got)
	}
}

// Another account's agent may be open to this one, as every agent is to root: it
// is listed, but not queried.
func TestAgentsOfOthersAreNotAsked(t *testing.T) {
	w := made(t, nil)
	w.Env = []string{"SSH_AUTH_SOCK=/tmp/ssh-a/agent.1"}
	w.Keys = func(_ context.Context, path string) (int, error) { t.Errorf("%s was asked", path); return 3, nil }
	listening(t, w, "tmp/ssh-a/agent.1", "tmp/ssh-b/agent.2")
	w.UID++
	findings, _ := take(t, w)
	got := of(findings, "ssh-agent")
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, f := range got {
		if f.Level != High || !strings.Contains(strings.Join(f.Detail, " "), "belongs to another account") {
			t.Errorf("%+v", f)
		}
	}
}

// Modes decide if the kernel cannot.
func TestComputed(t *testing.T) {
	w := made(t, map[string]string{"etc/npmrc": "//x/:_authToken=abc\n", "etc/pip.conf": "password = abcdef\n", "etc/skel/.bashrc": "x", "etc/environment": "DEPLOY_TOKEN=" + token + "\n"})
	if err := os.Chmod(filepath.Join(w.Root, "etc/pip.conf"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	findings, _ := Take(context.Background(), newAccount(w), Clean)
	if len(of(findings, "npm")) != 0 || len(of(findings, "python")) != 1 || len(of(findings, "startup")) != 1 || len(of(findings, "variable")) != 1 {
		t.Fatalf("%+v", findings)
	}
}

// No output format contains a secret, wherever it was found.
func TestNoSecretIsShown(t *testing.T) {
	secret := "Xq7vbn2Kd9zTrw4LmPsY8cHg"
	w := made(t, map[string]string{
		"home/u/.netrc": "machine a login b password " + secret, "home/u/.pgpass": "h:1:d:u:" + secret, "home/u/.git-credentials": "https://u:" + secret + "@x",
		"home/u/.npmrc": "_authToken=" + secret, "home/u/.gitconfig": "[http]\nextraheader = Authorization: basic " + secret + "\n[credential]\nhelper = !f() { echo password=" + secret + "; }; f\n",
		"home/u/ws/.env": "A_TOKEN=" + secret + "\nB=" + token, "home/u/.bash_history": "mysql -p" + secret, "home/u/.docker/config.json": `{"auths":{"x":{"auth":"` + secret + `"}}}`,
		"home/u/ws/.git/config": "[remote \"o\"]\nurl = https://" + secret + ":" + secret + "@x\n",
	})
	w.Dir = "/home/u/ws"
	w.Env = []string{"MY_TOKEN=" + secret, "PLAIN=" + token, "GITHUB_ACTIONS=true", "GITHUB_TOKEN=" + token, "DATABASE_URL=postgres://u:" + secret + "@h/d", "PATH=/usr/bin"}
	r := Compare(context.Background(), Options{World: w, Why: "a test"})
	var text, page, doc bytes.Buffer
	if err := errors.Join(Text(&text, r, nil, 0), HTML(&page, r), JSON(&doc, r)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String(), doc.String()} {
		if strings.Contains(out, secret[:6]) || strings.Contains(out, token[:8]) {
			t.Errorf("a secret is in\n%s", out)
		}
	}
	if len(r.Of(Here, "variable")) != 3 || len(r.Of(Here, "ci-token")) != 1 || len(r.Of(Here, "dotenv")) != 1 || len(r.Of(Here, "git-url")) != 2 {
		t.Errorf("%+v", r.Of(Here, ""))
	}
	if r.has(GitHub) || !r.has(GitLab) {
		t.Errorf("a job of GitHub Actions was measured: %+v", r.Columns)
	}
}

// Every finding of a table names an existing check.
func TestTables(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range Checks() {
		if ids[c.ID] || c.Why == "" || c.Do == "" || c.Title == "" || c.Via == ByKernel && c.Inside == "" {
			t.Errorf("check %+v: twice, or without a text", c)
		}
		ids[c.ID] = true
	}
	for _, m := range models {
		if !ids[m.check] || m.level.Rank() == 0 || !strings.HasPrefix(m.source, "https://") {
			t.Errorf("%+v", m)
		}
	}
	for _, p := range socketPaths {
		if !ids[p.check] {
			t.Errorf("%+v", p)
		}
	}
	for _, s := range settings {
		if !ids[s.check] {
			t.Errorf("%+v", s)
		}
	}
	for _, j := range jobTokens {
		if !ids[j.check] {
			t.Errorf("%+v", j)
		}
	}
}
