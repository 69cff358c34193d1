//go:build linux

package workspace

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A state directory elsewhere: /dev/shm is another file system than the
// temporary directory nearly everywhere, and the outcome is the same where not.
func TestSettleAcrossFileSystems(t *testing.T) {
	w := tempRoot(t)
	s := scanned(t, w)
	write(t, w, "a/.vscode/tasks.json", "text")
	write(t, w, ".envrc", "text")
	link(t, "/etc", w, "CLAUDE.md")
	chmod(t, w+"/a/.vscode/tasks.json", 0)
	chmod(t, w+"/a/.vscode", 0o500)
	chmod(t, w+"/a", 0o500)
	state, err := os.MkdirTemp("/dev/shm", "settle-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(state)
	r, err := s.Settle(context.Background(), state)
	if err != nil || len(r.Quarantined) != 3 {
		t.Fatalf("%v, %+v", err, r.Quarantined)
	}
	for _, q := range r.Quarantined {
		if strings.Contains(q.Why, "exchanged") {
			t.Errorf("%s was left alone by all: %s", q.Path, q.Why)
		}
	}
	held := string(r.Quarantined[2].Held)
	os.Chmod(held, 0o700)
	os.Chmod(held+"/tasks.json", 0o600)
	if b, err := os.ReadFile(held + "/tasks.json"); err != nil || string(b) != "text" {
		t.Errorf("held %q, %v", b, err)
	}
	if _, err := os.Lstat(w + "/a/.vscode"); err == nil {
		t.Error("it is still there")
	}
	if st, err := os.Stat(w + "/a"); err != nil || st.Mode().Perm() != 0o500 {
		t.Errorf("the directory it was in: %v, %v", st.Mode(), err)
	}
}

// Where the state directory is on another file system, things are copied and removed.
func TestCopyAndRemove(t *testing.T) {
	w, to := tempRoot(t), tempRoot(t)
	write(t, w, "d/a/file", "text")
	link(t, "/etc/passwd", w, "d/a/link")
	write(t, w, "big", "x")
	if err := os.Truncate(w+"/big", 1<<40); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(w+"/d/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, w, "d/shut/x", "")
	chmod(t, w+"/d/shut", 0)
	deep(t, w+"/d", 400, "end")
	from, _ := unix.Open(w, unix.O_DIRECTORY, 0)
	into, _ := unix.Open(to, unix.O_DIRECTORY, 0)
	defer unix.Close(from)
	defer unix.Close(into)
	// The big one last: which name of a directory comes first is up to the file system.
	c := copier{left: 1 << 20}
	for _, name := range []string{"d", "big"} {
		c.cut = false
		if err := c.entry(from, name, into, 0); err != nil {
			t.Fatal(err)
		}
	}
	if !c.cut {
		t.Error("a file of 1 TiB was not cut")
	}
	if b, err := os.ReadFile(to + "/d/a/file"); err != nil || string(b) != "text" {
		t.Errorf("copy of a file: %q, %v", b, err)
	}
	if l, err := os.Readlink(to + "/d/a/link"); err != nil || l != "/etc/passwd" {
		t.Errorf("copy of a link: %q, %v", l, err)
	}
	if err := removeEntry(from, "d"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(w + "/d"); err == nil {
		t.Error("the original is still there")
	}
}

// exchanging makes two names of dir change places until the test ends.
func exchanging(t *testing.T, dir, a, b string) {
	t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, dir+"/"+a, unix.AT_FDCWD, dir+"/"+b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// What is done to a thing that is moved out is done to that thing, whatever its
// name leads to meanwhile. Another run exchanges a file and a link to the user's
// own file; both ways of moving are tried.
func TestQuarantineOfWhatIsBeingExchanged(t *testing.T) {
	elsewhere, err := os.MkdirTemp("/dev/shm", "settle-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(elsewhere)
	for _, tt := range []struct{ name, state string }{
		{"moved by its name", tempRoot(t)},
		{"copied to another file system", elsewhere},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := tempRoot(t)
			write(t, w, "victim/file", "the user's own")
			chmod(t, w+"/victim/file", 0o600)
			dir, err := unix.Open(w, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(dir)
			exchanging(t, w, "name", "other")
			q := &quarantine{state: tt.state}
			defer q.close()
			for range 400 {
				write(t, w, "other", "")
				os.Chmod(w+"/other", 0o666)
				link(t, w+"/victim/file", w, "name")
				for _, name := range []string{"name", "other"} {
					item := Quarantined{}
					if _, err := q.moveToSlot(dir, name, &item); ignoreGone(err) != nil {
						t.Fatal(err)
					}
					var st unix.Stat_t
					if err := unix.Lstat(string(item.Held), &st); item.Held != "" && (err != nil || (st.Mode&typeMask == typeLink) != (item.Type == "link")) {
						t.Fatalf("the report says %s of what is held: %o, %v", item.Type, st.Mode, err)
					}
					removeEntry(dir, "name")
				}
				removeEntry(dir, "other")
				if st, err := os.Stat(w + "/victim/file"); err != nil || st.Mode().Perm() != 0o600 {
					t.Fatalf("the file that the link leads to: %v, %v", st, err)
				}
			}
		})
	}
}

// TestDisarm: a held file cannot be run by accident. A file with a second name is left
// as it is, because that name may be anywhere.
func TestDisarm(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"program", "linked", "dir/x"} {
		write(t, w, name, "")
	}
	for _, name := range []string{"program", "linked", "dir"} {
		chmod(t, w+"/"+name, 0o775)
	}
	if err := os.Link(w+"/linked", w+"/other"); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(w, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for name, want := range map[string]os.FileMode{"program": 0o664, "linked": 0o775, "dir": 0o775} {
		disarm(fd, name, 0o775)
		if st, err := os.Stat(w + "/" + name); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	disarm(fd, "none", 0o775)
}

// What is held is described by what was moved; its sum is left out where reading it
// is too much.
func TestDescribe(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "file", "text")
	write(t, w, "huge", "")
	must(t, os.Truncate(w+"/huge", maxHeldSum+1))
	mkdir(t, w+"/dir")
	link(t, "/etc", w, "link")
	must(t, unix.Mkfifo(w+"/pipe", 0o640))
	chmod(t, w+"/file", 0o640)
	const sum = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	held := openDir(t, w)
	none := NewBudget()
	none.bytes.Store(3)
	for _, tt := range []struct {
		name   string
		budget *Budget
		want   Quarantined
	}{
		{"file", nil, Quarantined{Type: "file", Mode: 0o640, Sum: sum}},
		{"file", NewBudget(), Quarantined{Type: "file", Mode: 0o640, Sum: sum}},
		{"file", none, Quarantined{Type: "file", Mode: 0o640}},
		{"huge", nil, Quarantined{Type: "file", Mode: 0o644}},
		{"dir", nil, Quarantined{Type: "dir", Mode: 0o755}},
		{"link", nil, Quarantined{Type: "link", Mode: 0o777, Link: "/etc"}},
		{"pipe", nil, Quarantined{Type: "special", Mode: 0o640}},
	} {
		h, err := openHandle(held, tt.name)
		must(t, err)
		var got Quarantined
		(&quarantine{budget: tt.budget}).describe(h, held, tt.name, &got)
		h.close()
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// Slots are numbered; what is there already is left alone, and no manifest is
// written over another.
func TestQuarantineSlots(t *testing.T) {
	state, w := tempRoot(t), tempRoot(t)
	write(t, state, "quarantine/1/old", "")
	write(t, w, "a", "x")
	write(t, w, "b", "x")
	q := &quarantine{state: state}
	if err := q.close(); err != nil {
		t.Errorf("nothing was opened: %v", err)
	}
	dir := openDir(t, w)
	for i, name := range []string{"a", "b"} {
		var item Quarantined
		if exchanged, err := q.moveToSlot(dir, name, &item); err != nil || exchanged || string(item.Held) != []string{state + "/quarantine/2/held/a", state + "/quarantine/3/held/b"}[i] {
			t.Errorf("%s: %+v, %v", name, item, err)
		}
	}
	if _, err := q.moveToSlot(dir, "none", &Quarantined{}); ignoreGone(err) != nil || err == nil {
		t.Errorf("what is not there: %v", err)
	}
	if err := manifest(openDir(t, state+"/quarantine/2"), &Quarantined{}); err == nil {
		t.Error("a manifest was written over another")
	}
	must(t, q.close())
	must(t, q.close())
	must(t, os.Mkdir(state+"/other", 0o700))
	link(t, "other", state, "second/quarantine")
	if err := (&quarantine{state: state + "/second"}).start(); err == nil {
		t.Error("a link was followed to where things are held")
	}
}

// A directory is opened to its owner for a moment, and then what it was.
func TestLoosen(t *testing.T) {
	w := tempRoot(t)
	dir := openDir(t, w)
	for _, tt := range []struct{ mode, meanwhile os.FileMode }{{0o500, 0o700}, {0o055, 0o755}, {0o700, 0o700}, {0o755, 0o755}} {
		chmod(t, w, tt.mode)
		back := loosen(dir)
		st, err := os.Stat(w)
		must(t, err)
		if tt.mode&0o700 == 0o700 {
			chmod(t, w, 0o711) // what needed nothing is not given back either
		}
		back()
		after, err := os.Stat(w)
		must(t, err)
		if want := map[bool]os.FileMode{true: 0o711, false: tt.mode}[tt.mode&0o700 == 0o700]; st.Mode().Perm() != tt.meanwhile || after.Mode().Perm() != want {
			t.Errorf("%o: meanwhile %o, then %o", tt.mode, st.Mode().Perm(), after.Mode().Perm())
		}
	}
	loosen(-1)()
}
