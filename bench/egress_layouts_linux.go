package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// layout is one way between a program and a server on the host.
type layout struct {
	name   string
	needs  []string // programs
	tun    bool     // it opens the TUN device
	before []string // the client's arguments follow
	client []string // where the client finds the server
}

// link is a started layout: its client waits for orders.
type link struct {
	name       string
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *json.Decoder
	stderrPath string // file of its standard error
	group      *group
	server     *group // of the server
	ctx        context.Context
	stop       context.CancelFunc
}

// arena is what all layouts share.
type arena struct {
	b      *bench
	self   string // this program, where all users can reach it
	dir    string // private to the user
	hosts  string // a file
	ports  ports
	roots  string // a file: the trusted certificates of all TLS clients
	policy string // a file
	parent string // of control groups
	server *exec.Cmd
	served *group // of the server
}

// waitSlirp starts the client first and then joins its network by the PID. The
// shell has executed the client when the executable of the PID is the client's.
const waitSlirp = `exec 3<&0
unshare --user --map-root-user --net -- "$@" <&3 &
while [ "$(readlink /proc/$!/exe)" != "$1" ]; do sleep 0.02; done
slirp4netns --configure --mtu=65520 $! tap0 >&2 &
wait $!
kill $!`

// bridgeScript is how other products connect from a private network: a port inside, a
// socket in a file system that both sides see, and a proxy outside. Arguments: a
// directory for the socket, this program, the client.
const bridgeScript = `dir=$1 self=$2
shift
rm -f "$dir/proxy"
sleep 1d | "$self" peer proxy >"$dir/proxy" &
while ! [ -s "$dir/proxy" ]; do sleep 0.02; done
socat UNIX-LISTEN:"$dir/out.sock",fork,unlink-early TCP:"$(cat "$dir/proxy")" &
bwrap --unshare-user --unshare-net --unshare-pid --die-with-parent --dev-bind / / -- sh -c '
dir=$1
shift
socat TCP-LISTEN:3128,fork,reuseaddr,bind=127.0.0.1 UNIX-CONNECT:"$dir/out.sock" &
"$@"' sh "$dir" "$@"`

func (a *arena) layouts() []layout {
	b := a.b
	return []layout{
		{name: direct, client: []string{"-address", "127.0.0.1"}},
		{name: holdfast, before: []string{b.holdfast, "run", "--policy", a.policy, "--"}, client: []string{"-address", serverName}},
		{name: socat, needs: []string{"socat", "bwrap", "sh"}, before: []string{"sh", "-c", bridgeScript, "sh", a.dir}, client: []string{"-address", serverName, "-proxy", "127.0.0.1:3128"}},
		{name: slirp, needs: []string{"slirp4netns", "unshare", "sh", "readlink"}, tun: true, before: []string{"sh", "-c", waitSlirp, "sh"}, client: []string{"-address", "10.0.2.2"}},
		// Without the port options it would listen inside on each port on which
		// the host listens, and bypass its own network for those connections.
		{name: pasta, needs: []string{"pasta"}, tun: true, before: []string{"pasta", "--config-net", "-t", "none", "-u", "none", "-T", "none", "-U", "none", "--"}, client: []string{"-address", "gateway"}},
	}
}

// newArena starts the server and writes the files that the layouts need.
func (b *bench) newArena(parent string) (_ *arena, err error) {
	a := &arena{b: b, parent: parent, dir: b.workspace("egress")}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if err := os.Mkdir(a.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a workspace: %w", err)
	}
	if err := a.copySelf(); err != nil {
		return nil, err
	}
	if err := errors.Join(b.user.chownTree(a.dir), os.Chmod(a.dir, 0o777)); err != nil {
		return nil, err
	}
	if err := a.serve(); err != nil {
		return nil, err
	}
	return a, a.files()
}

// copySelf copies this program to where the views show it.
func (a *arena) copySelf() error {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading this program: %w", err)
	}
	a.self = filepath.Join(a.dir, "peer")
	if err := programs.Write(a.self, self, 0o755); err != nil {
		return fmt.Errorf("copying this program: %w", err)
	}
	return nil
}

func (a *arena) files() error {
	host, err := os.ReadFile("/etc/hosts")
	if err != nil {
		return fmt.Errorf("reading the host's names: %w", err)
	}
	policy := fmt.Sprintf("version: 1\nnetwork:\n  allow:\n    - {host: %s, ports: [%d], kind: tcp, internal: true}\n    - {host: %s, ports: [%d], kind: tls, inspect: true, internal: true}\n",
		serverName, a.ports.Plain, serverName, a.ports.TLS)
	copies := filepath.Join(a.b.dir, "copies")
	for _, f := range []struct {
		at         *string
		name, text string
	}{
		{&a.hosts, "hosts", string(host) + "\n127.0.0.1 " + serverName + "\n"},
		{&a.roots, "roots.pem", a.ports.Authority},
		{&a.policy, "policy.yaml", policy},
	} {
		*f.at = filepath.Join(copies, f.name)
		if err := os.WriteFile(*f.at, []byte(f.text), 0o644); err != nil {
			return fmt.Errorf("writing what the layouts read: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(copies, "dev"), 0o755); err != nil {
		return fmt.Errorf("making a directory for a device: %w", err)
	}
	return nil
}

// serve starts the server, outside all layouts.
func (a *arena) serve() error {
	cmd := exec.CommandContext(a.b.ctx, a.self, "peer", "serve")
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = a.b.env, a.b.user.attr(), os.Stderr
	var err error
	if a.served, err = newGroup(a.parent); err != nil {
		return err
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(a.served.dir.Fd())
	if _, err := cmd.StdinPipe(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the server: %w", err)
	}
	a.server = cmd
	if err := json.NewDecoder(out).Decode(&a.ports); err != nil {
		return fmt.Errorf("reading the address of the server: %w", err)
	}
	return nil
}

// close ends the server.
func (a *arena) close() {
	if a.server != nil {
		_ = a.server.Process.Kill() // it may already have ended
		_ = a.server.Wait()         // with the signal
	}
	_ = a.served.discard() // an empty group does not disturb later measurements
}

// otherUser is an unnamed user that runs all layouts but Holdfast's. The limit
// for pipe buffers is per user, for all programs together
// (fs.pipe-user-pages-soft), and two of the layouts keep many megabytes of them
// while another one is measured.
const otherUser = 65533

// startLayout starts a layout in its own control group and waits until its client has
// reached the server.
func (a *arena) startLayout(l layout) (_ *link, err error) {
	k := &link{name: l.name, server: a.served, stderrPath: filepath.Join(a.b.dir, "scratch", "said-"+l.name)}
	if k.group, err = newGroup(a.parent); err != nil {
		return nil, err
	}
	k.ctx, k.stop = context.WithCancel(a.b.ctx)
	tun, uid := "", a.b.user.uid
	if l.tun {
		tun = filepath.Join(a.b.dir, "copies", "dev")
	}
	if len(l.before) == 0 || l.before[0] != a.b.holdfast {
		uid = otherUser
	}
	args := []string{"peer", "stage", a.hosts, tun, strconv.Itoa(uid), strconv.Itoa(a.b.user.gid)}
	command := append(append([]string{}, l.before...), a.self, "peer", "client", "-plain", strconv.Itoa(a.ports.Plain), "-tls", strconv.Itoa(a.ports.TLS))
	command = append(command, l.client...)
	if command[0], err = a.b.lookup(command[0]); err != nil {
		return nil, errors.Join(err, k.end())
	}
	k.cmd = exec.CommandContext(k.ctx, a.self, append(args, command...)...)
	k.cmd.Dir, k.cmd.Env = a.dir, append(append([]string{}, a.b.env...), "SSL_CERT_FILE="+a.roots)
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, UseCgroupFD: true, CgroupFD: int(k.group.dir.Fd())}
	stderr, err := os.Create(k.stderrPath)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a file for errors: %w", err), k.end())
	}
	defer stderr.Close()
	k.cmd.Stderr = stderr
	if err := k.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w: %s", l.name, err, k.stderrText()), k.end())
	}
	return k, nil
}

func (k *link) start() error {
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := k.cmd.Start(); err != nil {
		k.cmd = nil
		return err
	}
	k.out = json.NewDecoder(out)
	_, err = k.wait()
	return err
}

// stderrText is the error output of a layout.
func (k *link) stderrText() string {
	text, err := os.ReadFile(k.stderrPath)
	if err != nil {
		return ""
	}
	return lastLines(text)
}

// wait reads an answer; a client that takes too long is killed.
func (k *link) wait() (answer, error) {
	hangs := time.AfterFunc(longest, k.stop)
	defer hangs.Stop()
	var got answer
	if err := k.out.Decode(&got); err != nil {
		return got, fmt.Errorf("waiting for the client: %w", err)
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// sendOrder sends an order and returns the answer, and the processor time of everything
// in the layout but the client.
func (k *link) sendOrder(o order) (answer, time.Duration, error) {
	before, err := k.group.cpuTime()
	if err != nil {
		return answer{}, 0, err
	}
	if err := json.NewEncoder(k.in).Encode(o); err != nil {
		return answer{}, 0, fmt.Errorf("%s: giving an order: %w: %s", k.name, err, k.stderrText())
	}
	got, err := k.wait()
	if err != nil {
		return got, 0, fmt.Errorf("%s: %s: %w: %s", k.name, o.Do, err, k.stderrText())
	}
	after, err := k.group.cpuTime()
	return got, max(0, after-before-got.CPU), err
}

// end ends a layout and everything in it.
func (k *link) end() error {
	var err error
	if k.cmd != nil {
		k.in.Close() // ends the client; the rest is killed below
		if populated, e := k.group.field("cgroup.events", "populated"); e == nil && populated > 0 {
			time.Sleep(200 * time.Millisecond)
		}
		err = k.group.kill()
		_ = k.cmd.Wait() // any status
	}
	k.stop()
	return errors.Join(err, k.group.drain(), k.group.remove())
}
