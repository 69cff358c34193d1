//go:build linux

package native

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
)

// TestReceive sends what no launch sends: what comes from inside is not
// believed.
func TestReceive(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent []byte
		fds  int // descriptors that come along
		want string
	}{
		{"a whole message", make([]byte, 24), 0, ""},
		{"a short one", make([]byte, 23), 0, "are not a message"},
		{"a long one", make([]byte, 25), 0, "are not a message"},
		{"one that is longer than any buffer", make([]byte, 4096), 0, "are not a message"},
		{"one byte", []byte{1}, 0, "are not a message"},
		{"one descriptor", make([]byte, 24), 1, ""},
		{"more descriptors than one", make([]byte, 24), 3, ""},
		{"more descriptors than there is room for", make([]byte, 24), 60, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := countDescriptors(t)
			ours, theirs, err := seqpacket()
			if err != nil {
				t.Fatal(err)
			}
			var rights []byte
			if tt.fds > 0 {
				fds := make([]int, tt.fds)
				for i := range fds {
					fds[i] = 1
				}
				rights = unix.UnixRights(fds...)
			}
			if err := unix.Sendmsg(int(theirs.Fd()), tt.sent, rights, nil, 0); err != nil {
				t.Fatal(err)
			}
			m, err := receive(ours)
			switch {
			case tt.want == "" && err != nil && tt.fds == 0:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err == nil && m.pid != os.Getpid() {
				t.Errorf("the sender is %d, not this process", m.pid)
			}
			if m.file != nil {
				m.file.Close()
			}
			theirs.Close()
			if _, err := receive(ours); err != io.EOF {
				t.Errorf("after the other side is gone: %v", err)
			}
			ours.Close()
			if now := countDescriptors(t); now != before {
				t.Errorf("%d descriptors were open, now %d", before, now)
			}
		})
	}
}

// TestReceiveFromOneThatIsGone: the last message of a closed peer counts, even if the
// peer did not read what was sent to it.
func TestReceiveFromOneThatIsGone(t *testing.T) {
	ours, theirs, err := seqpacket()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	said := make([]byte, 24)
	said[0] = msgFailed
	if _, err := theirs.Write(said); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write([]byte("go")); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if m, err := receive(ours); err != nil || m.kind != msgFailed {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := receive(ours); err != io.EOF {
		t.Errorf("after that: %v", err)
	}
}

// TestConverse sends messages that no launch sends.
func TestConverse(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind uint64
		want string
	}{
		{"an unknown message", 99, "kind 99"},
		{"the end before the beginning", msgStatus, "kind 4"},
		{"a failure of a step that does not exist", msgFailed, "operation not permitted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs, err := seqpacket()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			defer theirs.Close()
			message := make([]byte, 24)
			message[0] = byte(tt.kind)
			for i := 8; i < 24; i++ {
				message[i] = 0xff // an invalid address, and errno 1
			}
			if _, err := theirs.Write(message); err != nil {
				t.Fatal(err)
			}
			l := &launch{backend: &Backend{}, builder: &builder{program: newProgram()}}
			if err := l.handleMessages(&process{control: ours}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	own, err := os.ReadFile("/proc/self/status")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("Uid:\t1 2 3 4\nGroups:\tx\n"))
	f.Add([]byte(strings.Repeat("Cap\n", 20)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p boundary.Posture
		if err := parseStatus(raw, &p); err == nil && len(p.Capabilities) == 0 {
			t.Error("a status without capabilities was believed")
		}
	})
}

func FuzzReadMounts(f *testing.F) {
	own, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(own)
	f.Add([]byte("1 1 0:1 / /a\\040b\\ rw - tmpfs none rw\n"))
	f.Add([]byte("1 1 0:1 / / ro shared:1 -"))
	f.Add([]byte("x\n"))
	path := filepath.Join(f.TempDir(), "mountinfo")
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		mounts, err := readMounts(path)
		if err != nil {
			return
		}
		lines := strings.Count(strings.TrimSuffix(string(raw), "\n"), "\n") + 1
		if len(mounts) > lines {
			t.Errorf("%d mounts of %d lines", len(mounts), lines)
		}
	})
}

// TestReadMountsReadsEverything: a list that is cut short would hide a mount.
func TestReadMountsReadsEverything(t *testing.T) {
	long := "/" + strings.Repeat("x/", 70_000) + "y"
	path := filepath.Join(t.TempDir(), "mountinfo")
	text := "1 1 0:1 / / ro - tmpfs none ro\n2 1 0:1 / " + long + " rw - tmpfs none rw\n3 1 0:1 / /last rw - tmpfs none rw\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mounts, err := readMounts(path)
	if err == nil && len(mounts) != 3 {
		t.Errorf("%d mounts of 3 were read, and no error", len(mounts))
	}
}

func TestUnescapeMount(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`/a\040b`, "/a b"}, {`/a\134b`, `/a\b`}, {`/a\012`, "/a\n"}, {`/a\`, `/a\`}, {`/a\04`, `/a\04`}, {`/a\999`, `/a\999`}, {`\011`, "\t"},
	} {
		if got := unescapeMount(tt.in); got != tt.want {
			t.Errorf("%q is %q, want %q", tt.in, got, tt.want)
		}
	}
}
