//go:build !linux

package testenv

import (
	"net"
	"testing"
)

var inNetwork *Network

// Listen fails: there is no private network on this system.
func (*Network) Listen(string) (net.Listener, error) { return nil, errNotLinux }

// ListenPacket fails: there is no private network on this system.
func (*Network) ListenPacket(string) (net.PacketConn, error) { return nil, errNotLinux }

func again(t *testing.T, _ map[string]string) { t.Fatal(errNotLinux) }

func mainAgain(map[string]string) int { return 1 }
