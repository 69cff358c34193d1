package netlab

import (
	"os"
	"strings"
	"testing"
)

// TestHostsNetworkIsRefused plays the parts in a process that was not started in
// new namespaces: nothing is changed there, and no process is killed.
func TestHostsNetworkIsRefused(t *testing.T) {
	if err := (orders{Part: making, Parent: os.Getppid()}).build(); err == nil || !strings.Contains(err.Error(), "the network namespace") {
		t.Errorf("a network is made of the host's own: %v", err)
	}
	near, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if name, err := nearNamespace(int(near.Fd())); err == nil {
		t.Errorf("the other side would end what is in %s", name)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if name, err := nearNamespace(int(file.Fd())); err == nil {
		t.Errorf("%s is taken for a namespace", name)
	}
}

func TestCommandNeedsAProgram(t *testing.T) {
	if cmd, err := Command(t.Context(), nil); err == nil {
		t.Errorf("got %v", cmd)
	}
}

func TestNoPart(t *testing.T) {
	if n, err := Part(); n != nil || err != nil {
		t.Errorf("a process that is no part of a network got %v, %v", n, err)
	}
}

func TestCertificateNeedsAName(t *testing.T) {
	if _, err := (&Network{}).Certificate(); err == nil {
		t.Error("a certificate for nobody was given")
	}
}
