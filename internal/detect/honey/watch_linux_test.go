package honey

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

type diary struct {
	mu  sync.Mutex
	all []event.Event
	err error
}

func (d *diary) Emit(e event.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, e)
	return d.err
}

func (d *diary) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *diary) events() []event.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]event.Event{}, d.all...)
}

// world has the files on disk, watched through the root of this process.
type world struct {
	*Watcher
	diary diary
	files map[string]string // path by kind
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{files: map[string]string{}}
	files := mustFiles(t, t.TempDir())
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
		w.files[f.Kind] = f.Path
	}
	var err error
	if w.Watcher, err = Watch("/proc/"+strconv.Itoa(os.Getpid())+"/root", files, &w.diary); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) await(t *testing.T, n int) []event.Event {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if all := w.diary.events(); len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("%d events, want %d", len(w.diary.events()), n)
		}
	}
}

func (w *world) close(t *testing.T) []event.Event {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	return w.diary.events()
}

func TestReadingIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reader := exec.Command("sh", "-c", "exec 3<\"$0\"; read line <&3; echo; exec sleep 60", w.files["aws"])
	out, err := reader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { reader.Process.Kill(); reader.Wait() }()
	out.Read(make([]byte, 1))
	e := w.await(t, 1)[0]
	if e.Action != event.HoneyRead || e.Sensor != event.Honey || e.Verdict != event.Allowed || e.Object != w.files["aws"] || e.Detail["kind"] != "aws" || e.Detail["open"] == "" || e.Detail["readers"] == "" {
		t.Errorf("got %+v", e)
	}
	if e.Process.PID != reader.Process.Pid || !strings.HasPrefix(e.Detail["held_by"], strconv.Itoa(reader.Process.Pid)+" /") {
		t.Errorf("it is open in process %d, said is %d, %q", reader.Process.Pid, e.Process.PID, e.Detail["held_by"])
	}
	// The rest is reported when the second is over, or at the end.
	w.await(t, 2)
	// A shell may read a byte at a time, and the kernel joins equal events.
	if all := w.close(t); all[1].Detail["read"] == "" {
		t.Errorf("the second event is %v", all[1].Detail)
	}
}

func TestTouchesByOtherNames(t *testing.T) {
	t.Parallel()
	touch := func(path string) error { _, err := os.ReadFile(path); return err }
	for _, tt := range []struct {
		name string
		do   func(path string) error
		want string // the operation that is reported; "" for none
	}{
		{"renamed, then read", func(p string) error { return errors.Join(os.Rename(p, p+"2"), touch(p+"2")) }, "rename"},
		{"linked, then read", func(p string) error { return errors.Join(os.Link(p, p+"2"), touch(p+"2")) }, "open"},
		{"read through a link", func(p string) error { return errors.Join(os.Symlink(p, p+"2"), touch(p+"2")) }, "open"},
		{"opened and deleted while open", func(p string) error {
			f, err := os.Open(p)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Read(make([]byte, 1))
			return errors.Join(os.Remove(p), err)
		}, "open"},
		{"overwritten", func(p string) error { return os.WriteFile(p, []byte("x"), 0) }, "open"},
		{"executed", func(p string) error { os.Chmod(p, 0o755); exec.Command(p).Run(); return nil }, "open"},
		{"deleted unread", os.Remove, ""},
		{"replaced, and the new one read", func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("x"), 0o600), os.Rename(p+"2", p), touch(p))
		}, ""},
		{"asked after", func(p string) error { _, err := os.Stat(p); return err }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := w.files["vault"]
			if err := tt.do(path); err != nil {
				t.Fatal(err)
			}
			all := w.close(t)
			if tt.want == "" {
				if len(all) > 0 {
					t.Errorf("said were %+v", all)
				}
				return
			}
			said := fmt.Sprint(all)
			if len(all) == 0 || all[0].Object != path || !strings.Contains(said, tt.want+":") {
				t.Errorf("said were %v, want %s", said, tt.want)
			}
		})
	}
}

func TestAFloodIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const times = 20_000
	for range times {
		f, err := os.Open(w.files["aws"])
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	all := w.close(t)
	if len(all) == 0 || len(all) > 60 {
		t.Errorf("%d events for one flood", len(all))
	}
	opened := 0
	for _, e := range all {
		n, _ := strconv.Atoi(e.Detail["open"])
		opened += n
	}
	if opened == 0 || opened > times {
		t.Errorf("%d were counted, there were %d", opened, times)
	}
}

func TestALostEventIsSaid(t *testing.T) {
	t.Parallel()
	d := &diary{}
	w := &Watcher{root: "/r", sink: d, files: map[int32]*watchedFile{}}
	overflow := make([]byte, eventSize)
	overflow[5] = 0x40 // IN_Q_OVERFLOW, 0x4000, little-endian
	copy(overflow, []byte{0xff, 0xff, 0xff, 0xff})
	w.handleEvents(append(overflow, overflow...), time.Now())
	w.reportCounted(time.Now())
	if all := d.events(); len(all) != 1 || all[0].Detail["lost"] != "2" || all[0].Verdict != event.Unknown {
		t.Errorf("got %+v", all)
	}
}

// TestTheEndOfTheViewIsNoTouch has the events that the kernel sends when the file system goes.
func TestTheEndOfTheViewIsNoTouch(t *testing.T) {
	t.Parallel()
	d := &diary{}
	w := &Watcher{root: "/r", sink: d, files: map[int32]*watchedFile{1: {}}}
	for _, mask := range []uint32{0x2000, 0x8000} { // IN_UNMOUNT, IN_IGNORED
		e := binary.NativeEndian.AppendUint32([]byte{1, 0, 0, 0}, mask)
		w.handleEvents(append(e, make([]byte, 8)...), time.Now())
	}
	w.reportCounted(time.Now())
	if all := d.events(); len(all) > 0 {
		t.Errorf("got %+v", all)
	}
}

func TestWhatCannotBeWatchedIsAnError(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	files := mustFiles(t, home)
	if _, err := Watch("/", files, &diary{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	link := filepath.Join(home, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Watch("/", []File{{Path: link}}, &diary{}); err == nil {
		t.Error("a link was watched")
	}
}

func TestTheErrorOfTheSinkIsReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.diary.fail(errors.New("disk full"))
	os.ReadFile(w.files["aws"])
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

// FuzzTake reads what a kernel would never write.
func FuzzTake(f *testing.F) {
	f.Add(make([]byte, 40))
	f.Add([]byte("\x01\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, p []byte) {
		w := &Watcher{root: "/r", sink: &diary{}, files: map[int32]*watchedFile{1: {}}}
		w.handleEvents(p, time.Now())
		w.reportCounted(time.Now())
	})
}
