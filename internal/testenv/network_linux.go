package testenv

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The variables by which a test binary knows that it is one of the processes
// that make a private network, and which.
const (
	networkStage = "TESTENV_NETWORK_STAGE"
	networkHosts = "TESTENV_NETWORK_HOSTS"

	stageMake   = "make"   // in the new namespaces: make the network, then become stageTest
	stageRemote = "remote" // the other side: listens for the test
	stageTest   = "test"   // in the network that is made
)

// networkSocket is the descriptor of the socket between the two sides.
const networkSocket = 3

// inNetwork is the network that this process was started in; nil for none. It
// is set before any TestMain begins, for a process that is only a part of the
// making of one never gets there.
var inNetwork = takePart(os.Getenv(networkStage))

func takePart(stage string) *Network {
	os.Unsetenv(networkStage)
	var err error
	switch stage {
	case "":
		return nil
	case stageTest:
		unix.CloseOnExec(networkSocket)
		return &Network{remote: os.NewFile(networkSocket, "private network"), authority: takeAuthority()}
	case stageMake:
		err = makeNetwork() // does not return when it succeeds
	case stageRemote:
		if err = serveRemote(networkSocket); err == nil {
			os.Exit(0)
		}
	}
	fmt.Fprintln(os.Stderr, "private network:", stage, err)
	os.Exit(1)
	return nil
}

// startNetwork executes this binary in namespaces of its own.
func startNetwork(hosts map[string]string, args []string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	names, err := json.Marshal(hosts)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), networkStage+"="+stageMake, networkHosts+"="+string(names))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// They last until the network is made: the test has none.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	return cmd, nil
}

func again(t *testing.T, hosts map[string]string) {
	t.Helper()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	if asked := strings.Split(flag.Lookup("test.run").Value.String(), "/"); len(asked) > strings.Count(t.Name(), "/")+1 {
		pattern += "/" + strings.Join(asked[strings.Count(t.Name(), "/")+1:], "/")
	}
	args := []string{"-test.run=" + pattern, "-test.count=1", "-test.v"}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+(time.Until(end)-time.Second).String())
	}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd, err := startNetwork(hosts, append(args, flag.Args()...))
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	t.Logf("in a private network:\n%s", out)
	switch {
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Fatal("the test did not run")
	}
}

func mainAgain(hosts map[string]string) int {
	cmd, err := startNetwork(hosts, os.Args[1:])
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "private network:", err)
		return 1
	}
	return 0
}

// makeNetwork makes what Network says, and executes the test in it.
func makeNetwork() error {
	var hosts map[string]string
	if err := json.Unmarshal([]byte(os.Getenv(networkHosts)), &hosts); err != nil {
		return err
	}
	if err := overlayNames(hosts); err != nil {
		return err
	}
	authority, err := makeAuthority()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "remote")
	remote := exec.Command(exe)
	remote.Env = append(os.Environ(), networkStage+"="+stageRemote)
	remote.ExtraFiles = []*os.File{theirs}
	remote.Stderr = os.Stderr
	remote.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	if os.Geteuid() != 0 {
		remote.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	if err := remote.Start(); err != nil {
		return fmt.Errorf("starting the other side: %w", err)
	}
	theirs.Close()
	if err := nearSide(remote.Process.Pid); err != nil {
		return err
	}
	n := &Network{remote: os.NewFile(uintptr(pair[0]), "private network"), authority: authority}
	if _, err := n.ask("up"); err != nil {
		return err
	}
	return becomeTest(exe, n)
}

// becomeTest executes the test in place of this process, without capabilities
// where the user has none.
func becomeTest(exe string, n *Network) error {
	if err := unix.Dup3(int(n.remote.Fd()), networkSocket, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if _, err := unix.FcntlInt(networkSocket, unix.F_SETFD, 0); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return err
		}
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, networkHosts+"=") })
	return unix.Exec(exe, os.Args, append(env, networkStage+"="+stageTest, networkAuthority+"="+n.authority))
}

// overlayNames mounts the test's own files over those that resolve names.
func overlayNames(hosts map[string]string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	lines := "127.0.0.1 localhost\n::1 localhost\n"
	for name, addr := range hosts {
		lines += addr + " " + name + "\n"
	}
	return overlay(map[string][]byte{
		"/etc/hosts":       []byte(lines),
		"/etc/resolv.conf": []byte("nameserver " + NetworkResolver + "\noptions timeout:2 attempts:1\n"),
	})
}

// The link between the two sides.
const nearLink, remoteLink = "near0", "remote0"

var (
	near4, near6     = netip.MustParsePrefix("11.0.0.1/30"), netip.MustParsePrefix("2600:11::1/126")
	remote4, remote6 = netip.MustParsePrefix("11.0.0.2/30"), netip.MustParsePrefix("2600:11::2/126")
	all4, all6       = netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")
	nearMAC          = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	remoteMAC        = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// nearSide makes the link and routes everything over it.
func nearSide(remote int) error {
	return rtnetlink(
		linkUp("lo"),
		addVeth(end{nearLink, nearMAC}, end{remoteLink, remoteMAC}, remote),
		addAddress(nearLink, near4), addAddress(nearLink, near6),
		linkUp(nearLink),
		addNeighbour(nearLink, remote4.Addr(), remoteMAC), addNeighbour(nearLink, remote6.Addr(), remoteMAC),
		addRoute(route{to: all4, via: remote4.Addr(), link: nearLink}),
		addRoute(route{to: all6, via: remote6.Addr(), link: nearLink}),
	)
}

// remoteSide makes every address one of this side, but those of the near one.
func remoteSide() error {
	back4, back6 := netip.PrefixFrom(near4.Addr(), 32), netip.PrefixFrom(near6.Addr(), 128)
	return rtnetlink(
		linkUp("lo"),
		addAddress(remoteLink, remote4), addAddress(remoteLink, remote6),
		linkUp(remoteLink),
		addNeighbour(remoteLink, near4.Addr(), nearMAC), addNeighbour(remoteLink, near6.Addr(), nearMAC),
		addRoute(route{to: back4, link: remoteLink, first: true}),
		addRoute(route{to: back6, link: remoteLink, first: true}),
		addRoute(route{to: all4, link: "lo", own: true}),
		addRoute(route{to: all6, link: "lo", own: true}),
	)
}

var asking sync.Mutex

// ask sends the other side a request and returns the descriptor that it
// answers with, or -1.
func (n *Network) ask(request string) (int, error) {
	asking.Lock()
	defer asking.Unlock()
	fd := int(n.remote.Fd())
	if err := unix.Sendmsg(fd, []byte(request), nil, nil, 0); err != nil {
		return -1, fmt.Errorf("asking the other side: %w", err)
	}
	text, oob := make([]byte, 1024), make([]byte, unix.CmsgSpace(4))
	l, o, _, _, err := unix.Recvmsg(fd, text, oob, unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return -1, fmt.Errorf("asking the other side: %w", err)
	case l == 0:
		return -1, errors.New("the other side has ended")
	case string(text[:l]) != "ok":
		return -1, errors.New(string(text[:l]))
	case o == 0:
		return -1, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:o])
	if err != nil {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// Listen listens on the other side, at any address of either family.
func (n *Network) Listen(addr string) (net.Listener, error) {
	fd, err := n.ask("tcp " + addr)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), addr)
	defer f.Close()
	return net.FileListener(f)
}

// ListenPacket receives datagrams on the other side, at any address of either
// family.
func (n *Network) ListenPacket(addr string) (net.PacketConn, error) {
	fd, err := n.ask("udp " + addr)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), addr)
	defer f.Close()
	return net.FilePacketConn(f)
}
