//go:build linux

package control

import (
	"context"
	"encoding/json"
	"errors"
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

// ordererVar makes the test binary another process that gives an order: over the
// socket that the variable names. It prints the answer, and ends.
const ordererVar = "HOLDFAST_TEST_ORDERER"

func init() {
	if path := os.Getenv(ordererVar); path != "" {
		giveOrders(path)
		os.Exit(0)
	}
}

// giveOrders first sends nothing, so that the reply cannot be lost because of an order
// that is not read; then it gives an order.
func giveOrders(path string) {
	for _, o := range []map[string]string{nil, {"Do": "list"}} {
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

// A process that reaches the socket, which no view shows, cannot give orders from
// another user namespace: what a run is allowed is answered from outside of every
// boundary.
func TestOrdersFromElsewhere(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	own := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
	}
	orderAs(t, nil, `"Waiting":"x"`)
	orderAs(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: own(os.Geteuid()), GidMappings: own(os.Getegid())}, "another user namespace")
}

func TestRootOrdersOfAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	orderAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "from another user")
}

// orderAs gives an order as who, and wants what in the answer.
func orderAs(t *testing.T, who *syscall.SysProcAttr, what string) {
	t.Helper()
	state, dir := listening(t)
	path := filepath.Join(dir, Name)
	for p := path; strings.HasPrefix(p, filepath.Dir(state)); p = filepath.Dir(p) { // nothing but the check is in the way
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

// listening has the socket of one session, with a handler that answers and one that
// fails.
func listening(t *testing.T) (state, dir string) {
	t.Helper()
	state = t.TempDir()
	dir = filepath.Join(state, "sessions", "20261122T120000-aaaa")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	stop, err := Listen(dir, map[string]Handler{
		"list": func(context.Context, *net.UnixConn, []byte) (any, error) {
			return struct{ Error, Waiting string }{"", "x"}, nil
		},
		"fail": func(context.Context, *net.UnixConn, []byte) (any, error) { return nil, errors.New("no") },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return state, dir
}

// The control socket takes orders while others watch, hang or talk nonsense.
func TestControlSocketSurvives(t *testing.T) {
	t.Parallel()
	_, dir := listening(t)
	for _, text := range []string{"", "\n", "{}\n", `{"Do":"format"}` + "\n", `{"Do":"fail"}` + "\n", strings.Repeat("x", maxBytes+10), "{"} {
		c, err := Dial(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text) // it may be cut off
		if strings.HasSuffix(text, "\n") {
			var got failure
			if err := json.NewDecoder(c).Decode(&got); err != nil || got.Error == "" {
				t.Errorf("%q: %+v, %v", text, got, err)
			}
		}
	}
	var got struct{ Waiting string }
	if err := Exchange(t.Context(), dir, map[string]string{"Do": "list"}, &got); err != nil || got.Waiting != "x" {
		t.Errorf("got %+v, %v", got, err)
	}
}
