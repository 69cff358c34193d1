//go:build linux

package supervise

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestBaits has what is done to a bait in a view, and whether it is told of, before
// whoever does it goes on.
func TestBaits(t *testing.T) {
	testenv.Need(t, testenv.FUSE, nil)
	testenv.Need(t, testenv.UserNS, nil)
	told := []string{"open /vault/key", "open /vault/./../vault/key", "cat /vault/key", "mmap /vault/key", "beneath ../vault/key", "magic /vault/key", "write /vault/key"}
	silent := []string{"stat /vault/key", "access /vault/key", "xattr /vault/key", "path /vault/key", "list /vault", "open /vault/other"}
	for _, line := range append(told, silent...) {
		t.Run(line, func(t *testing.T) {
			baits := &kept{}
			v := startView(t, itoa(os.Getuid()), func(c *TripwireConfig) {
				c.Made = []Entry{{"/vault", unix.S_IFDIR | 0o755, ""}, {"/vault/key", unix.S_IFREG | 0o600, "secret text"}, {"/vault/other", unix.S_IFREG | 0o600, "x"}}
				c.Baits = Baits{Details: map[string]map[string]string{"/vault/key": {"kind": "test"}}, Sink: baits}
				c.Process = func(int) event.Process { return event.Process{Exec: 7} }
			}, line)
			v.goOn()
			v.finish()
			events := baits.all()
			if strings.Contains(strings.Join(silent, "\n"), line) {
				if len(events) > 0 {
					t.Errorf("told was %+v", events)
				}
				return
			}
			if len(events) == 0 {
				t.Fatal("nothing was told")
			}
			e := events[0]
			if e.Action != event.HoneyRead || e.Object != "/vault/key" || e.Detail["kind"] != "test" || e.Detail["open"] != "1" || e.Process.PID != v.cmd.Process.Pid || e.Process.Exec != 7 {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// TestNoBait: what is to be told of must be there, or it would be told of in vain.
func TestNoBait(t *testing.T) {
	for _, path := range []string{"/absent", "/dir", "/dir/file/below"} {
		tree := newTree()
		for _, e := range []Entry{{"/dir", unix.S_IFDIR | 0o755, ""}, {"/dir/file", unix.S_IFREG | 0o600, ""}} {
			if errno := tree.make(e); errno != 0 {
				t.Fatal(errno)
			}
		}
		if err := tree.bait(map[string]map[string]string{path: {}}); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

// TestABaitIsNotHiddenByAFlood: so many names are asked for that further ones are only
// counted, and then a bait is opened.
func TestABaitIsNotHiddenByAFlood(t *testing.T) {
	sink, baits := &kept{}, &kept{}
	w := &Tripwire{config: TripwireConfig{Sink: sink, Baits: Baits{Sink: baits}}}
	w.flood = newFlood(w.observe, w.marked)
	for i := range floodKeys + 10 {
		w.flood.add(event.Event{Sensor: event.Tripwire, Object: itoa(i), Detail: map[string]string{}})
	}
	w.flood.addBy(event.Event{Sensor: event.Honey, Object: "/vault/key"}, "open")
	w.flood.close()
	if events := baits.all(); len(events) != 1 || events[0].Object != "/vault/key" {
		t.Errorf("got %+v", events)
	}
}
