package netstack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

// The tests need connections that come from inside. A second process of the
// test binary makes the namespaces and the device, and hands out the device and
// sockets on request: a socket stays in the namespace that it was made in, so
// the test itself connects and reads, and sees the errors of the kernel.

const insideVar = "HOLDFAST_NETSTACK_INSIDE"

func TestMain(m *testing.M) {
	if os.Getenv(insideVar) != "" {
		if err := serveInside(3); err != nil {
			fmt.Fprintln(os.Stderr, "inside:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tunIndex is asked for with TUNSETIFINDEX, so that the messages below are
// constant.
const tunIndex = 77

const tunFlags = unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR

// message encodes an rtnetlink request: its fixed part, then attributes.
func message(kind, flags uint16, fixed []byte, attributes ...[]byte) []byte {
	m := make([]byte, unix.SizeofNlMsghdr)
	m = append(m, fixed...)
	for _, a := range attributes {
		m = append(m, a...)
	}
	binary.NativeEndian.PutUint32(m[0:], uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], kind)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags)
	binary.NativeEndian.PutUint32(m[8:], 1)
	return m
}

func attribute(kind uint16, value []byte) []byte {
	a := make([]byte, 4, 4+len(value)+3)
	binary.NativeEndian.PutUint16(a[0:], uint16(4+len(value)))
	binary.NativeEndian.PutUint16(a[2:], kind)
	a = append(a, value...)
	for len(a)%4 != 0 {
		a = append(a, 0)
	}
	return a
}

func word(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func linkUp(index uint32, attributes ...[]byte) []byte {
	fixed := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(fixed[4:], index)
	binary.NativeEndian.PutUint32(fixed[8:], unix.IFF_UP)
	binary.NativeEndian.PutUint32(fixed[12:], unix.IFF_UP)
	return message(unix.RTM_NEWLINK, 0, fixed, attributes...)
}

func addAddress(index uint32, family byte, address string) []byte {
	ip := net.ParseIP(address)
	if family == unix.AF_INET {
		ip = ip.To4()
	}
	fixed := make([]byte, unix.SizeofIfAddrmsg)
	fixed[0], fixed[1] = family, byte(8*len(ip))
	if family == unix.AF_INET6 {
		fixed[2] = unix.IFA_F_NODAD
	}
	binary.NativeEndian.PutUint32(fixed[4:], index)
	return message(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, fixed,
		attribute(unix.IFA_LOCAL, ip), attribute(unix.IFA_ADDRESS, ip))
}

func defaultRoute(index uint32, family byte) []byte {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[4], fixed[5], fixed[7] = family, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RTN_UNICAST
	if family == unix.AF_INET {
		fixed[6] = unix.RT_SCOPE_LINK
	}
	return message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, fixed, attribute(unix.RTA_OIF, word(index)))
}

// localRoute makes the inside accept packets for its IPv6 address. The kernel also adds
// that route, but on a work queue: what arrives before that has run is dropped
// (net/ipv6/addrconf.c, addrconf_dad_work).
func localRoute(index uint32, address string) []byte {
	fixed := make([]byte, unix.SizeofRtMsg)
	fixed[0], fixed[1], fixed[4], fixed[5], fixed[7] = unix.AF_INET6, 128, unix.RT_TABLE_LOCAL, unix.RTPROT_KERNEL, unix.RTN_LOCAL
	return message(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, fixed,
		attribute(unix.RTA_DST, net.ParseIP(address)), attribute(unix.RTA_OIF, word(index)))
}

// messages bring the inner network up, in order.
func messages() []struct {
	what  string
	bytes []byte
} {
	return []struct {
		what  string
		bytes []byte
	}{
		{"lo up", linkUp(1)},
		{"address 10.77.0.2/32", addAddress(tunIndex, unix.AF_INET, "10.77.0.2")},
		{"address fd77::2/128", addAddress(tunIndex, unix.AF_INET6, "fd77::2")},
		{"device up, MTU 65520", linkUp(tunIndex, attribute(unix.IFLA_MTU, word(MTU)))},
		{"local route of fd77::2", localRoute(tunIndex, "fd77::2")},
		{"default route of IPv4", defaultRoute(tunIndex, unix.AF_INET)},
		{"default route of IPv6", defaultRoute(tunIndex, unix.AF_INET6)},
	}
}

// makeDevice makes the device and brings the network up.
func makeDevice() (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("opening /dev/net/tun: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, tunIndex); err != nil {
		return -1, fmt.Errorf("TUNSETIFINDEX: %w", err)
	}
	req, err := unix.NewIfreq("hf0")
	if err != nil {
		return -1, err
	}
	req.SetUint16(tunFlags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return -1, fmt.Errorf("TUNSETIFF: %w", err)
	}
	for _, m := range messages() {
		if err := tell(m.bytes); err != nil {
			return -1, fmt.Errorf("%s: %w", m.what, err)
		}
	}
	return fd, nil
}

// tell sends one message to rtnetlink.
func tell(m []byte) error {
	nl, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(nl)
	if err := unix.Sendto(nl, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, err := unix.Read(nl, answer)
	if err != nil || n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("an answer of %d bytes: %w", n, err)
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[16:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}

// removeDevice is the request to delete the device.
var removeDevice = [3]byte{}

// serveInside sends the device over the socket at fd, and then a socket for
// each request of three bytes: family, type, protocol. The errno of a failure
// comes as the one byte of the message.
func serveInside(fd int) error {
	tun, err := makeDevice()
	if err != nil {
		return err
	}
	if err := send(fd, tun); err != nil {
		return err
	}
	if err := unix.Close(tun); err != nil { // only the test holds it now, as only the supervisor does
		return err
	}
	for {
		var ask [3]byte
		n, err := unix.Read(fd, ask[:])
		if n == 0 || err != nil {
			return err
		}
		if ask == removeDevice {
			fixed := make([]byte, unix.SizeofIfInfomsg)
			binary.NativeEndian.PutUint32(fixed[4:], tunIndex)
			if err := tell(message(unix.RTM_DELLINK, 0, fixed)); err != nil {
				return fmt.Errorf("deleting the device: %w", err)
			}
			continue
		}
		s, err := unix.Socket(int(ask[0]), int(ask[1])|unix.SOCK_CLOEXEC, int(ask[2]))
		if err != nil {
			var errno unix.Errno
			errors.As(err, &errno)
			if _, err := unix.Write(fd, []byte{byte(errno)}); err != nil {
				return err
			}
			continue
		}
		err = send(fd, s)
		if err := errors.Join(err, unix.Close(s)); err != nil {
			return err
		}
	}
}

func send(fd, what int) error {
	return unix.Sendmsg(fd, []byte{0}, unix.UnixRights(what), nil, 0)
}

// receive takes what send sent.
func receive(fd int) (int, error) {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	n, nn, _, _, err := unix.Recvmsg(fd, b, oob, unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return -1, err
	case n == 0:
		return -1, io.EOF
	case b[0] != 0:
		return -1, unix.Errno(b[0])
	}
	all, err := unix.ParseSocketControlMessage(oob[:nn])
	if err != nil || len(all) != 1 {
		return -1, fmt.Errorf("%d control messages: %w", len(all), err)
	}
	fds, err := unix.ParseUnixRights(&all[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	return fds[0], nil
}

// inside is an inner network.
type inside struct {
	t    testing.TB
	ctl  int
	tun  *os.File
	stop func()
}

func hasTUN() error {
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func makeInside(t testing.TB) *inside {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, "tun", hasTUN)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "inside")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{insideVar + "=1"}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	i := &inside{t: t, ctl: pair[0]}
	ended := false
	i.stop = func() {
		if !ended {
			ended = true
			unix.Close(i.ctl)
			if err := cmd.Wait(); err != nil {
				t.Errorf("the process inside: %v", err)
			}
		}
	}
	t.Cleanup(i.stop)
	fd, err := receive(i.ctl)
	if err != nil {
		t.Fatalf("no device from inside: %v", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	i.tun = os.NewFile(uintptr(fd), "tun")
	return i
}

// socket makes a blocking socket inside.
func (i *inside) socket(family, kind, proto int) int {
	i.t.Helper()
	if _, err := unix.Write(i.ctl, []byte{byte(family), byte(kind), byte(proto)}); err != nil {
		i.t.Fatal(err)
	}
	fd, err := receive(i.ctl)
	if err != nil {
		i.t.Fatalf("socket inside: %v", err)
	}
	return fd
}
