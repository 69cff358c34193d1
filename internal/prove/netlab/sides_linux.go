package netlab

import (
	"encoding/base64"
	wire "encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// overlayAll mounts the network's own files over those for name resolution and
// over those that list trusted authorities.
func overlayAll(hosts map[string]string, cert []byte) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	files, err := trustedBundle(cert)
	if err != nil {
		return err
	}
	if files == nil {
		files = map[string][]byte{}
	}
	lines := "127.0.0.1 localhost\n::1 localhost\n"
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		lines += hosts[name] + " " + name + "\n"
	}
	files["/etc/hosts"] = []byte(lines)
	files["/etc/resolv.conf"] = []byte("nameserver " + Resolver + "\noptions timeout:2 attempts:1\n")
	return overlay(files)
}

// overlay mounts files over others, by path. They are on a file system of their
// own, which nothing else can name.
func overlay(files map[string][]byte) error {
	dir, err := os.MkdirTemp("", "netlab-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting tmpfs: %w", err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }() // the files stay where they are bound
	for path, content := range files {
		own := dir + "/" + base64.URLEncoding.EncodeToString([]byte(path))
		if err := os.WriteFile(own, content, 0o644); err != nil {
			return err
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting over %s: %w", path, err)
		}
	}
	return nil
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

// awaitUp waits until a link whose ends are both up passes packets: they are dropped
// until a worker of the kernel has noticed it (linkwatch_do_dev in
// net/core/link_watch.c, which sets the state that RFC 2863 calls ifOperStatus).
func awaitUp(name string) error {
	i, err := index(name)
	if err != nil {
		return err
	}
	for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(time.Millisecond) {
		if up, err := isUp(i); up || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not come up", name)
}

// isUp reports whether the state of a link is IF_OPER_UP (linux/if.h).
func isUp(index uint32) (bool, error) {
	const operUp = 6
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return false, fmt.Errorf("listing links: %w", err)
	}
	links, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return false, fmt.Errorf("listing links: %w", err)
	}
	for _, m := range links {
		if m.Header.Type != syscall.RTM_NEWLINK || wire.NativeEndian.Uint32(m.Data[4:]) != index {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return false, fmt.Errorf("reading a link: %w", err)
		}
		for _, a := range attributes {
			if a.Attr.Type == unix.IFLA_OPERSTATE && len(a.Value) == 1 {
				return a.Value[0] == operUp, nil
			}
		}
	}
	return false, nil
}

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

// remoteSide makes every address local to this side, except those of the near
// one.
func remoteSide() error {
	back4, back6 := netip.PrefixFrom(near4.Addr(), 32), netip.PrefixFrom(near6.Addr(), 128)
	err := rtnetlink(
		linkUp("lo"),
		addAddress(remoteLink, remote4), addAddress(remoteLink, remote6),
		linkUp(remoteLink),
		addNeighbour(remoteLink, near4.Addr(), nearMAC), addNeighbour(remoteLink, near6.Addr(), nearMAC),
		addRoute(route{to: back4, link: remoteLink, first: true}),
		addRoute(route{to: back6, link: remoteLink, first: true}),
		addRoute(route{to: all4, link: "lo", own: true}),
		addRoute(route{to: all6, link: "lo", own: true}),
	)
	if err != nil {
		return err
	}
	return awaitUp(remoteLink)
}
