//go:build !linux

package netlab

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os/exec"
)

var errNotLinux = errors.New("private networks need Linux namespaces")

// Command fails: there is no private network on this system.
func Command(context.Context, map[string]string, ...string) (*exec.Cmd, error) {
	return nil, errNotLinux
}

// Loopback fails: there is no private network on this system.
func Loopback(...netip.Prefix) error { return errNotLinux }

// Part returns nil: there is no private network on this system.
func Part() (*Network, error) { return nil, nil }

// Listen fails: there is no private network on this system.
func (*Network) Listen(string) (net.Listener, error) { return nil, errNotLinux }

// ListenPacket fails: there is no private network on this system.
func (*Network) ListenPacket(string) (net.PacketConn, error) { return nil, errNotLinux }

// Authority returns nil: there is no private network on this system.
func (*Network) Authority() []byte { return nil }

// Certificate fails: there is no private network on this system.
func (*Network) Certificate(...string) (tls.Certificate, error) {
	return tls.Certificate{}, errNotLinux
}
