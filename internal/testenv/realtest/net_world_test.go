package realtest

import (
	"crypto/tls"
	"errors"
	"io"

	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// addresses are those of the sites: public ones, all different.
var addresses = map[string]string{
	filesHost:    "93.184.215.10",
	registryHost: "93.184.215.11",
	indexHost:    "93.184.215.12",
	modulesHost:  "93.184.215.13",
	cratesHost:   "93.184.215.14",
	debianHost:   "93.184.215.15",
	gitHost:      "93.184.215.16",
	streamHost:   "93.184.215.17",
	otherHost:    "93.184.215.18",
	impostorHost: "93.184.215.19",
	privateHost:  "93.184.215.20",
	sixHost:      "2606:2800:21f:cb07::10",
	intranetHost: "10.9.8.7",
	metadataHost: "169.254.169.254",
	companyHost:  "93.184.215.21",
}

// world is what runs on the other side of the private network.
type world struct {
	t      *testing.T
	net    *testenv.Network
	root   string
	client string            // a client written in Go
	files  map[string]string // for every workspace
}

// newWorld starts the servers; they end with the test.
func newWorld(t *testing.T, n *testenv.Network, root string) *world {
	t.Helper()
	w := &world{t: t, net: n, root: root, files: map[string]string{"authority.pem": string(n.Authority(t))}}
	var err error
	if w.client, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	repositories := filepath.Join(root, "repositories")
	w.repositories(repositories)
	all := sites(t, repositories)
	names := slices.Sorted(maps.Keys(all))
	handler, quiet := byName(all), log.New(io.Discard, "", 0) // clients disconnect
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetUnencryptedHTTP2(true)
	plain := &http.Server{Handler: handler, ErrorLog: quiet, Protocols: both}
	certificates := []tls.Certificate{n.Certificate(t, names...)}
	secure := &http.Server{Handler: handler, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: certificates}}
	// libcurl 7.88 sometimes corrupts what git pushes over HTTP/2 to a fast
	// server ("curl 92", or an unreadable pack).
	old := new(http.Protocols)
	old.SetHTTP1(true)
	forGit := &http.Server{Handler: handler, ErrorLog: quiet, Protocols: old, TLSConfig: &tls.Config{Certificates: certificates}}
	for _, name := range names {
		w.serve(name+":80", plain.Serve)
		server := secure
		if name == gitHost || name == privateHost {
			server = forGit
		}
		w.serve(name+":443", func(l net.Listener) error { return server.ServeTLS(l, "", "") })
	}
	w.serve(filesHost+":8080", plain.Serve)
	w.serve(filesHost+":8443", func(l net.Listener) error { return secure.ServeTLS(l, "", "") })
	// Its identity cannot be verified: the certificate is for another name.
	w.serve(impostorHost+":443", func(l net.Listener) error { return secure.ServeTLS(l, "", "") })
	t.Cleanup(func() { plain.Close(); secure.Close(); forGit.Close() })
	if testenv.Have(testenv.OpenSSH) && testenv.Have(testenv.Unprivileged) {
		w.ssh(repositories)
	}
	return w
}

// serve listens at a name, and serves until the test ends.
func (w *world) serve(name string, serve func(net.Listener) error) {
	w.t.Helper()
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		w.t.Fatal(err)
	}
	w.serveAt(net.JoinHostPort(addresses[host], port), serve)
}

// serveAt listens at an address, and serves until the test ends.
func (w *world) serveAt(addr string, serve func(net.Listener) error) {
	w.t.Helper()
	l, err := w.net.Listen(addr)
	if err != nil {
		w.t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := serve(l); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
			w.t.Errorf("serving %s: %v", addr, err)
		}
	})
	w.t.Cleanup(func() { l.Close(); ended.Wait() })
}

// repositories makes a repository for each way, for https and for ssh.
func (w *world) repositories(dir string) {
	w.t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	p := &fixture{t: w.t, home: dir, ws: dir, env: append(testenv.HomeEnv(dir), "PATH="+os.Getenv("PATH"))}
	script := `
		git init -q -b main first
		git -C first -c user.name=s -c user.email=s@example.org commit -q --allow-empty -m first`
	for _, way := range ways {
		script += "\ngit clone -q --bare first " + way.name + ".git; cp -r " + way.name + ".git ssh-" + way.name + ".git; cp -r " + way.name + ".git credential-" + way.name + ".git"
	}
	if testenv.Have(testenv.Git) {
		p.bare(script)
	}
}

// ssh runs OpenSSH, one process per connection, as an ordinary user, because a
// server run by root needs system directories.
func (w *world) ssh(repositories string) {
	w.t.Helper()
	dir := filepath.Join(w.root, "sshd")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(filepath.Dir(w.root), 0o755)); err != nil {
		w.t.Fatal(err)
	}
	p := &fixture{t: w.t, home: dir, ws: dir, env: []string{"PATH=" + os.Getenv("PATH")}}
	p.write(map[string]string{"config": "HostKey " + dir + "/host\nAuthorizedKeysFile " + dir + "/identity.pub\nStrictModes no\nUsePAM no\nPidFile none\n" +
		"PasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel QUIET\n"})
	p.bare(`ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f identity`)
	for _, path := range strings.Fields(p.bare(`find "$0" "$1"`, dir, repositories)) {
		testenv.Own(w.t, path)
	}
	w.files["identity"] = p.read("identity")
	w.files["known_hosts"] = gitHost + " " + p.read("host.pub")
	w.files["repositories"] = repositories
	w.files["login"] = w.login()
	w.serve(gitHost+":22", func(l net.Listener) error {
		var sessions sync.WaitGroup
		defer sessions.Wait()
		for {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			sessions.Go(func() { w.session(c.(*net.TCPConn), dir+"/config") })
		}
	})
}

// session runs sshd on a connection.
func (w *world) session(c *net.TCPConn, config string) {
	defer c.Close()
	f, err := c.File()
	if err != nil {
		w.t.Error(err)
		return
	}
	defer f.Close()
	cmd := exec.CommandContext(w.t.Context(), testenv.SSHServer, "-i", "-f", config)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout = f, f
	testenv.AsUser(w.t, cmd)
	_ = cmd.Run() // 255 if the client has closed: the test of the client checks its result
}

// login is the user that the ssh server runs as.
func (w *world) login() string {
	w.t.Helper()
	cmd := exec.Command("id", "-un")
	testenv.AsUser(w.t, cmd)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// nameServer answers every query without an address, and counts the queries by
// question, in wire format.
func (w *world) nameServer() (asked func() map[string]int) {
	w.t.Helper()
	c, err := w.net.ListenPacket(testenv.NetworkResolver + ":53")
	if err != nil {
		w.t.Fatal(err)
	}
	var lock sync.Mutex
	count := map[string]int{}
	var ended sync.WaitGroup
	ended.Go(func() {
		query := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(query)
			if err != nil {
				return
			}
			if n < 12 {
				continue
			}
			lock.Lock()
			count[string(query[12:n])]++
			lock.Unlock()
			query[2] |= 0x80
			_, _ = c.WriteTo(query[:n], from) // the client may be gone
		}
	})
	w.t.Cleanup(func() { c.Close(); ended.Wait() })
	return func() map[string]int {
		lock.Lock()
		defer lock.Unlock()
		return maps.Clone(count)
	}
}
