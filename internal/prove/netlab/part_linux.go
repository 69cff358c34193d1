package netlab

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// partVariable holds, as JSON, which part of a network a process is.
const partVariable = "HOLDFAST_NETLAB"

// orders is the content of partVariable.
type orders struct {
	Part      part              `json:"part"`
	Hosts     map[string]string `json:"hosts,omitempty"`
	Parent    int               `json:"parent,omitempty"`    // the process that called Command
	Socket    int               `json:"socket,omitempty"`    // the descriptor of the socket between the two sides
	Authority []byte            `json:"authority,omitempty"` // key and certificate
}

type part string

const (
	making part = "make"   // in new namespaces: makes the network, then executes itself as inside
	remote part = "remote" // the other side: listens for the near one
	inside part = "inside" // in the network that is made
)

// Command returns a command, not yet started, that executes argv in a private
// network, with the user and the rights of this process. The program of argv must
// call [Part] before it does anything else. hosts maps names of /etc/hosts to
// their addresses. The command has one process, in which argv is executed. It
// gets SIGTERM when the thread that started it ends.
func Command(ctx context.Context, hosts map[string]string, argv ...string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("starting a private network: nothing to execute in it")
	}
	setting, err := orders{Part: making, Hosts: hosts, Parent: os.Getpid()}.setting()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), setting)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// They last until the network is made: the executed program has none.
		cmd.SysProcAttr.AmbientCaps = append(slices.Clip(remoteCaps), unix.CAP_SYS_ADMIN)
	}
	return cmd, nil
}

// remoteCaps are the capabilities of the other side, in the user namespace of a
// network that is not root's: to make sockets and routes, and to kill leftover
// processes, which may have made themselves unreadable.
var remoteCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_PTRACE, unix.CAP_KILL}

// Part plays the part of this process in making a private network. In the process
// that [Command] starts the network for, it returns the network, at every call;
// in a process outside any network it returns nil. The other parts return only
// when they are done, with [ErrEnded], or when they failed.
func Part() (*Network, error) { return play() }

var play = sync.OnceValues(func() (*Network, error) {
	text, given := os.LookupEnv(partVariable)
	if !given {
		return nil, nil
	}
	if err := os.Unsetenv(partVariable); err != nil {
		return nil, err
	}
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, fmt.Errorf("reading %s: %w", partVariable, err)
	}
	switch o.Part {
	case inside:
		return o.enter()
	case making:
		return nil, fmt.Errorf("making a private network: %w", o.build()) // returns only on failure
	case remote:
		if err := serve(remoteSocket, remoteNear); err != nil {
			return nil, fmt.Errorf("the other side of a private network: %w", err)
		}
		return nil, ErrEnded
	}
	return nil, fmt.Errorf("%s names no part: %q", partVariable, o.Part)
})

func (o orders) setting() (string, error) {
	b, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", partVariable, err)
	}
	return partVariable + "=" + string(b), nil
}

// enter runs in the process that the network is for.
func (o orders) enter() (*Network, error) {
	unix.CloseOnExec(o.Socket)
	n := &Network{remote: os.NewFile(uintptr(o.Socket), "private network")}
	if n.remote == nil {
		return nil, errors.New("entering a private network: no socket to the other side")
	}
	var err error
	if n.issuer, err = tls.X509KeyPair(o.Authority, o.Authority); err != nil {
		return nil, fmt.Errorf("authority of a private network: %w", err)
	}
	return n, nil
}

// build makes the network and executes this program in it.
func (o orders) build() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	if err := ownNamespace(); err != nil {
		return err
	}
	socket, pid, err := startRemote(exe)
	if err != nil {
		return err
	}
	// Done while the other side starts.
	both, cert, err := makeAuthority()
	if err != nil {
		return err
	}
	if err := overlayAll(o.Hosts, cert); err != nil {
		return err
	}
	if err := nearSide(pid); err != nil {
		return err
	}
	if _, err := requestDescriptor(socket, "up"); err != nil {
		return err
	}
	if err := awaitUp(nearLink); err != nil {
		return err
	}
	return orders{Part: inside, Parent: o.Parent, Socket: int(socket.Fd()), Authority: both}.execSelf(exe)
}

// ownNamespace makes sure that the network namespace is new, with no other
// process in it: it will be changed, and processes left in it are killed.
func ownNamespace() error {
	const self = "/proc/self/ns/net"
	near, err := os.Readlink(self)
	if err != nil {
		return err
	}
	links, err := net.Interfaces()
	switch {
	case err != nil:
		return fmt.Errorf("listing the interfaces: %w", err)
	case len(links) != 1 || links[0].Flags&net.FlagUp != 0:
		return errors.New("the network namespace is in use: it is not the one of a new network")
	case len(members(near, os.Getpid())) > 0:
		return errors.New("other processes are in the network namespace: it is not the one of a new network")
	}
	return nil
}

// The descriptors passed to the other side.
const remoteSocket, remoteNear = 3, 4

// startRemote starts the process of the other side.
func startRemote(exe string) (socket *os.File, pid int, err error) {
	// It holds the namespace, so that its number cannot go to another one.
	near, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return nil, 0, err
	}
	defer near.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "remote")
	defer theirs.Close()
	setting, err := orders{Part: remote}.setting()
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = os.Args[0] // a program may depend on its name
	cmd.Env = append(os.Environ(), setting)
	cmd.ExtraFiles = []*os.File{theirs, near}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.AmbientCaps = remoteCaps
	}
	if err := cmd.Start(); err != nil {
		return nil, 0, fmt.Errorf("starting the other side: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "private network"), cmd.Process.Pid, nil
}

// execSelf executes this program in place of this process, without capabilities if
// the user has none.
func (o orders) execSelf(exe string) error {
	if _, err := unix.FcntlInt(uintptr(o.Socket), unix.F_SETFD, 0); err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	// The signal belongs to the thread that executes; the earlier setting was for
	// another thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if os.Getppid() != o.Parent {
		return errors.New("the process that wanted the network has ended")
	}
	if os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	setting, err := o.setting()
	if err != nil {
		return err
	}
	// A NUL byte cannot be part of an argument; exec itself reports that.
	return fmt.Errorf("executing %s: %w", strings.Join(os.Args, " "), unix.Exec(exe, os.Args, append(os.Environ(), setting)))
}
