//go:build linux

package supervise

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestBaits lists operations on a honeytoken in a view, and whether each is reported
// before the program continues.
func TestBaits(t *testing.T) {
	testenv.Need(t, testenv.FUSE, nil)
	testenv.Need(t, testenv.UserNS, nil)
	told := []string{"open /vault/key", "open /vault/./../vault/key", "cat /vault/key", "mmap /vault/key", "beneath ../vault/key", "magic /vault/key", "write /vault/key"}
	silent := []string{"stat /vault/key", "access /vault/key", "xattr /vault/key", "path /vault/key", "list /vault", "open /vault/other"}
	for _, line := range append(told, silent...) {
		t.Run(line, func(t *testing.T) {
			honeytokens := &memorySink{}
			v := startView(t, itoa(os.Getuid()), func(c *TripwireConfig) {
				c.Made = []Entry{{"/vault", unix.S_IFDIR | 0o755, ""}, {"/vault/key", unix.S_IFREG | 0o600, "secret text"}, {"/vault/other", unix.S_IFREG | 0o600, "x"}}
				c.Honeytokens = Honeytokens{Details: map[string]map[string]string{"/vault/key": {"kind": "test"}}, Sink: honeytokens}
				c.Process = func(int) event.Process { return event.Process{Exec: 7} }
			}, line)
			v.goOn()
			v.finish()
			events := honeytokens.all()
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

// TestNoBait: a honeytoken must exist, or it would never be reported.
func TestNoBait(t *testing.T) {
	for _, path := range []string{"/absent", "/dir", "/dir/file/below"} {
		tree := newTree()
		for _, e := range []Entry{{"/dir", unix.S_IFDIR | 0o755, ""}, {"/dir/file", unix.S_IFREG | 0o600, ""}} {
			if errno := tree.make(e); errno != 0 {
				t.Fatal(errno)
			}
		}
		if err := tree.honeytoken(map[string]map[string]string{path: {}}); err == nil {
			t.Errorf("%s was taken", path)
		}
	}
}

// TestABaitIsRenamed gives a honeytoken another name, by each request that can, also as
// the second of two that are exchanged; a file that only takes its place is no
// honeytoken.
func TestABaitIsRenamed(t *testing.T) {
	tree := newTree("/vault")
	for _, e := range []Entry{{"/vault", unix.S_IFDIR | 0o755, ""}, {"/vault/key", unix.S_IFREG | 0o600, ""}, {"/vault/other", unix.S_IFREG | 0o600, ""}} {
		if errno := tree.make(e); errno != 0 {
			t.Fatal(errno)
		}
	}
	if err := tree.honeytoken(map[string]map[string]string{"/vault/key": {}}); err != nil {
		t.Fatal(err)
	}
	w := &Tripwire{config: TripwireConfig{Honeytokens: Honeytokens{Sink: &memorySink{}}}, fs: fileSystem{tree: tree, sealed: true}}
	dir := tree.find("/vault").id
	body := func(names string, numbers ...uint64) []byte { return append(appendWords(nil, numbers...), names...) }
	for _, c := range []struct {
		name string
		op   uint32
		body []byte
		told bool
	}{
		{"renamed", fuseRename, body("key\x00new\x00", dir), true},
		{"renamed with flags", fuseRename2, body("key\x00new\x00", dir, unix.RENAME_NOREPLACE), true},
		{"exchanged", fuseRename2, body("key\x00other\x00", dir, unix.RENAME_EXCHANGE), true},
		{"exchanged with", fuseRename2, body("other\x00key\x00", dir, unix.RENAME_EXCHANGE), true},
		{"another", fuseRename, body("other\x00new\x00", dir), false},
		{"replaced", fuseRename2, body("other\x00key\x00", dir, 0), false},
		{"absent", fuseRename, body("absent\x00new\x00", dir), false},
		{"elsewhere", fuseRename2, body("absent\x00key\x00", 77, unix.RENAME_EXCHANGE), false},
		{"short", fuseRename2, nil, false},
		{"no names", fuseRename, body("", dir), false},
	} {
		got, told := w.touchFor(fuseRequest{op: c.op, node: dir, tid: 7, body: c.body})
		if told != c.told || told && (got.honeytoken != "/vault/key" || got.operation != "rename") {
			t.Errorf("%s: %+v, %v", c.name, got, told)
		}
	}
}

// TestABaitIsNotHiddenByAFlood: so many names are asked for that further ones are only
// counted, and then a honeytoken is opened.
func TestABaitIsNotHiddenByAFlood(t *testing.T) {
	sink, honeytokens := &memorySink{}, &memorySink{}
	w := &Tripwire{config: TripwireConfig{Sink: sink, Honeytokens: Honeytokens{Sink: honeytokens}}}
	w.flood = newFlood(w.observe, w.marked)
	for i := range floodKeys + 10 {
		w.flood.add(event.Event{Sensor: event.Tripwire, Object: itoa(i), Detail: map[string]string{}})
	}
	w.flood.addBy(event.Event{Sensor: event.Honey, Object: "/vault/key"}, "open")
	w.flood.close()
	if events := honeytokens.all(); len(events) != 1 || events[0].Object != "/vault/key" {
		t.Errorf("got %+v", events)
	}
}
