//go:build !linux

package testenv

import (
	"crypto/tls"
	"net"
	"testing"
)

var inNetwork *Network

// Listen fails: there is no private network on this system.
func (*Network) Listen(string) (net.Listener, error) { return nil, errNotLinux }

// ListenPacket fails: there is no private network on this system.
func (*Network) ListenPacket(string) (net.PacketConn, error) { return nil, errNotLinux }

// Authority fails: there is no private network on this system.
func (*Network) Authority(t testing.TB) []byte { t.Fatal(errNotLinux); return nil }

// Certificate fails: there is no private network on this system.
func (*Network) Certificate(t testing.TB, _ ...string) tls.Certificate {
	t.Fatal(errNotLinux)
	return tls.Certificate{}
}

func again(t *testing.T, _ map[string]string) { t.Fatal(errNotLinux) }

func mainAgain(map[string]string) int { return 1 }
