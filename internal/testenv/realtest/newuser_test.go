package realtest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// newUser is an ordinary user with a repository, an identity for git and the
// login of an agent.
type newUser struct {
	t          *testing.T
	root, home string
	repo       string
	env        []string
}

// TestRootNewUser plays the first hour of somebody who has an agent program and
// its login, and now types `holdfast run AGENT` in a terminal, in the root of a
// repository, as an ordinary user. The scripted model asks for the fourteen
// actions, and the user leaves.
func TestRootNewUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, testenv.Agents, nil)
	testenv.Need(t, testenv.Tmux, nil)
	needForActions(t)
	names := map[string]string{publicRegistry: "93.184.215.31", docsHost: "93.184.215.32"}
	for _, a := range newcomers {
		names[a.host] = modelAddress
	}
	testenv.WithNetwork(t, names, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := homesDir(t)
		testenv.NoLeaks(t, root)
		w := &world{t: t, net: n, root: root}
		w.nameServer()
		w.publicSites()
		p := newProvider()
		p.serve(w)
		all := make([]hour, len(newcomers))
		t.Cleanup(func() { writeFigures(t, "agents", all) })
		for i, a := range newcomers {
			dirs := a.asInstalled(t)
			if dirs == nil {
				continue
			}
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				all[i] = a.firstHour(t, root, p, dirs)
				t.Log(all[i].summary())
				all[i].compare(t)
			})
		}
	})
}

// needForActions ends the test where the fourteen actions cannot be tried by an
// ordinary user.
func needForActions(t *testing.T) {
	t.Helper()
	for _, f := range []testenv.Feature{testenv.Unprivileged, testenv.Git, testenv.Node, testenv.NPM, testenv.Go, testenv.RG, testenv.Curl, testenv.Bash} {
		testenv.Need(t, f, nil)
	}
}

// homesDir is a directory in which homes are, as on a user's machine: sandboxes
// treat the directory for temporary files in another way.
func homesDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/home", "new-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// publicSites serve a package and a page of documentation.
func (w *world) publicSites() {
	w.t.Helper()
	registry, page := onePackage(w.t), http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "how it is done\n") })
	server := &http.Server{
		Handler:   byName(map[string]http.Handler{publicRegistry: registry, docsHost: page}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{w.net.Certificate(w.t, publicRegistry, docsHost)}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	for _, address := range []string{"93.184.215.31:443", "93.184.215.32:443"} {
		w.serveAt(address, func(l net.Listener) error { return server.ServeTLS(l, "", "") })
	}
	w.t.Cleanup(func() { server.Close() })
}

// makeUser makes the user's home and repository.
func makeUser(t *testing.T, root, name string, path, env []string, home map[string]string) *newUser {
	t.Helper()
	u := &newUser{t: t, root: filepath.Join(root, name)}
	u.home = filepath.Join(u.root, "ada")
	u.repo = filepath.Join(u.home, "src", "greeter")
	goDir := ""
	if tool, err := exec.LookPath("go"); err == nil {
		goDir = filepath.Dir(tool)
	}
	path = append(path, filepath.Dir(testenv.Binary(t)), goDir, "/usr/local/bin", "/usr/bin", "/bin")
	u.env = append([]string{"HOME=" + u.home, "USER=ada", "LOGNAME=ada", "SHELL=/bin/bash", "LANG=C.UTF-8", "PATH=" + strings.Join(path, ":")}, env...)
	for _, dir := range []string{".cache", ".npm"} { // as in a home that is in use
		if err := os.MkdirAll(filepath.Join(u.home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	u.write(filepath.Join(u.home, ".gitconfig"), "[user]\n\tname = Ada User\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
	for name, text := range home {
		u.write(filepath.Join(u.home, name), text)
	}
	for name, text := range greeter {
		u.write(filepath.Join(u.repo, name), text)
	}
	if out, err := exec.Command("chown", "-R", testenv.UserName+":", u.root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := u.shell("git init -q && git add -A && git commit -q -m first"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return u
}

func (u *newUser) write(path, text string) {
	u.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		u.t.Fatal(err)
	}
}

// shell runs a command of the user's in the repository, without a boundary.
func (u *newUser) shell(command string) (string, error) { return u.run("bash", "-c", command) }

// run runs a program of the user's in the repository.
func (u *newUser) run(argv ...string) (string, error) {
	cmd := exec.Command("env", argv...) // it looks for the program in the user's PATH
	cmd.Dir, cmd.Env = u.repo, u.env
	testenv.AsUser(u.t, cmd)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
