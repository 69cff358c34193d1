//go:build linux

package native

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// TestDescriptorsOnTheirWay: what the file system lost to others does not end a run
// that hands descriptors over, and does end one in which they never arrive: they
// could be files without a name, of any size.
func TestDescriptorsOnTheirWay(t *testing.T) {
	const limit = 1 << 30
	watch := func() *diskWatch {
		p := &process{first: unix.Getpid(), done: make(chan struct{})}
		w, err := newDiskWatch(p, []part{{source: t.TempDir(), access: policy.Write}}, limit)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.close)
		for _, d := range w.disks { // another program wrote as much since
			d.start.bytes -= 2 * limit
			d.last.bytes -= 2 * limit
		}
		return w
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	send := func() {
		if err := unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(pair[0]), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() { unix.Close(receiveOne(t, pair[1])) }

	if what := watch().excess(); what != "" {
		t.Errorf("with nothing on its way: %s", what)
	}
	w := watch()
	for range 3 * passingLooks {
		send()
		if what := w.excess(); what != "" {
			t.Errorf("on its way for a moment: %s", what)
		}
		receive()
		w.disks[0].last = w.disks[0].start
		if what := w.excess(); what != "" {
			t.Errorf("after it arrived: %s", what)
		}
		w.disks[0].last = w.disks[0].start
	}
	w = watch()
	send()
	for i := range passingLooks {
		if what := w.excess(); (what != "") != (i == passingLooks-1) {
			t.Errorf("never received, look %d: %q", i+1, what)
		}
	}
	receive()
}

// TestWhatOthersGiveBack: a run that takes more than its limit while another program
// gives back as much is found by measuring, which does not wait for the file system
// to have lost anything.
func TestWhatOthersGiveBack(t *testing.T) {
	const limit = 8 << 20
	dir := t.TempDir()
	take := func(path string) string {
		t.Helper()
		if err := os.WriteFile(path, make([]byte, 2*limit), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := take(filepath.Join(dir, "other"))
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		t.Fatal(err)
	}
	w, err := newDiskWatch(&process{first: unix.Getpid(), done: make(chan struct{})}, []part{{source: tree, access: policy.Write}}, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	take(filepath.Join(tree, "own"))
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	w.disks[0].next = time.Time{}
	w.disks[0].changed = true // a tick has seen it otherwise
	if what := w.excess(); !strings.Contains(what, "grew by more") {
		t.Errorf("it is not found: %q", what)
	}
	if d := w.disks[0]; d.changed || !d.next.After(time.Now()) {
		t.Errorf("it is measured again at once: %+v", d)
	}
}

// receiveOne takes one descriptor from a socket.
func receiveOne(t *testing.T, from int) int {
	t.Helper()
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(from, buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("%v, %v", fds, err)
	}
	return fds[0]
}
