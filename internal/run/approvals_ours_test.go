//go:build linux

package run

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// ordererVar makes the test binary a stranger: it gives an order over the socket
// that the variable names, prints what it is told, and ends.
const ordererVar = "HOLDFAST_TEST_ORDERER"

func init() {
	if path := os.Getenv(ordererVar); path != "" {
		giveOrders(path)
		os.Exit(0)
	}
}

// giveOrders first says nothing, for then what it is told is surely not lost by
// an order that nobody reads any more; and gives an order then.
func giveOrders(path string) {
	for _, o := range []*order{nil, {Do: listApprovals}} {
		c, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println(err)
			return
		}
		if o != nil {
			json.NewEncoder(c).Encode(o) // it may be cut off
		}
		c.(*net.UnixConn).CloseWrite()
		io.Copy(os.Stdout, c)
		c.Close()
	}
}

// Whoever reaches the socket, which no view shows, gives no order from another
// user namespace: what a run is allowed is answered from outside of every
// boundary.
func TestOrdersOfStrangers(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	own := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	orderAs(t, nil, `"Session":"20261122T120000-aaaa"`)
	orderAs(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own(os.Geteuid()), GidMappings: own(os.Getegid())}, "another user namespace")
}

func TestRootOrdersOfAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	orderAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "another user gives orders")
}

// orderAs gives an order as who, and wants what in the answer.
func orderAs(t *testing.T, who *syscall.SysProcAttr, what string) {
	t.Helper()
	a := newAsking(t, "20261122T120000-aaaa")
	a.hold("x")
	path := filepath.Join(a.state, "sessions", "20261122T120000-aaaa", controlSocket)
	for p := path; strings.HasPrefix(p, filepath.Dir(a.state)); p = filepath.Dir(p) { // nothing but the check is in the way
		if err := os.Chmod(p, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), ordererVar+"="+path)
	cmd.SysProcAttr = who
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := string(out); !strings.Contains(got, what) || who != nil && strings.Contains(got, "Waiting") {
		t.Errorf("told %s", got)
	}
}
