//go:build linux

package workspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// watched scans a tree whose directories are all watched.
func watched(t testing.TB, root string, more ...Option) *Snapshot {
	t.Helper()
	s := scanned(t, root, append([]Option{Remember(), func(s *scan) { s.names.unwatched = 0 }}, more...)...)
	t.Cleanup(s.Release)
	s.NothingHidden = true
	return s
}

func needWatches(t *testing.T, s *Snapshot) {
	t.Helper()
	testenv.Need(t, "fanotify", func() error {
		if s.names.watch.events == nil {
			return errors.New("this user cannot watch directories of the temporary one")
		}
		return nil
	})
}

// looked settles a tree and returns at how many entries it looked.
func looked(t testing.TB, s *Snapshot) int64 {
	t.Helper()
	s.Budget = NewBudget()
	differences(t, s)
	return s.Budget.Files()
}

func TestQuietDirectoriesArePassedOver(t *testing.T) {
	const all = 6 + 3 // files and directories of oldTree
	for name, c := range map[string]struct {
		during func(s *Snapshot)
		want   int64
	}{
		"nothing happened":                         {func(*Snapshot) {}, 2 + 1},
		"there are more names than are remembered": {func(s *Snapshot) { s.names.left.Store(-1) }, 2 + 1},
		"a file changed":                           {func(s *Snapshot) { write(t, s.Root, "src/deep/d.go", "") }, 2 + 1 + 1},
		"links were made, or may have been":        {func(s *Snapshot) { s.NothingHidden = false }, all},
	} {
		t.Run(name, func(t *testing.T) {
			s := watched(t, oldTree(t))
			needWatches(t, s)
			c.during(s)
			if got := looked(t, s); got != c.want {
				t.Errorf("looked at %d of %d entries, want %d", got, all, c.want)
			}
		})
	}
}

// What git stores is passed over like other directories, and is looked at where the
// directory that it is in has become a repository.
func TestQuietRepository(t *testing.T) {
	for name, c := range map[string]struct {
		during func(w string)
		held   string // moved out
		want   int64  // entries that are looked at
	}{
		"nothing happened":        {func(string) {}, "", 10},
		"an object is a link":     {func(w string) { link(t, "/etc/passwd", w, "src.git/objects/ab/new") }, "src.git/objects/ab/new", 12},
		"it becomes a repository": {func(w string) { write(t, w, "plain/HEAD", "ref: refs/heads/x\n") }, "plain/objects/cd/l", 12},
	} {
		t.Run(name, func(t *testing.T) {
			w := tempRoot(t)
			bareShape(t, w+"/src.git")
			write(t, w, "src.git/objects/ab/cdef", "")
			mkdir(t, w+"/plain/refs")
			mkdir(t, w+"/plain/objects/cd")
			link(t, "../x", w, "plain/objects/cd/l")
			time.Sleep(2 * clockSlack)
			s := watched(t, w)
			needWatches(t, s)
			c.during(w)
			s.Budget = NewBudget()
			r, err := s.Settle(t.Context(), t.TempDir())
			must(t, err)
			held := ""
			for _, q := range r.Quarantined {
				held += strings.TrimPrefix(string(q.Path), w+"/")
			}
			if got := s.Budget.Files(); held != c.held || got != c.want {
				t.Errorf("held back %q, want %q; looked at %d entries, want %d", held, c.held, got, c.want)
			}
		})
	}
}

// What is closed in flight is closed, by the kernel.
func TestCloseInFlight(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	closeInFlight(w)
	closeInFlight(w) // it is closed already
	must(t, r.SetReadDeadline(time.Now().Add(20*time.Second)))
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestEventsThatWereDropped(t *testing.T) {
	b := make([]byte, 52)
	b[0], b[24], b[36] = 52, unix.FAN_EVENT_INFO_TYPE_DFID, 8
	if !eachEvent(b, func(string) {}) {
		t.Error("an event is none")
	}
	b[36] = 9
	if eachEvent(b, func(string) {}) {
		t.Error("a handle ends after its event")
	}
	b[36] = 8
	binary.NativeEndian.PutUint64(b[8:], unix.FAN_Q_OVERFLOW)
	if eachEvent(b, func(string) {}) {
		t.Error("events that were dropped are not missed")
	}
}

// What is done to a file in each way that there is makes its directory one that is looked
// through.
func TestNothingIsQuiet(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, p string){
		"mapped memory": func(t *testing.T, p string) {
			f, err := os.OpenFile(p, os.O_RDWR, 0)
			must(t, err)
			m, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			must(t, err)
			must(t, f.Close())
			copy(m, "evil")
			must(t, unix.Munmap(m))
		},
		"truncate": func(t *testing.T, p string) { must(t, os.Truncate(p, 1)) },
		"a time": func(t *testing.T, p string) {
			must(t, unix.UtimesNanoAt(unix.AT_FDCWD, p, []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 1}}, 0))
		},
		"an attribute":     func(t *testing.T, p string) { must(t, unix.Setxattr(p, "user.x", []byte("y"), 0)) },
		"an owner":         func(t *testing.T, p string) { must(t, os.Chown(p, os.Getuid(), os.Getgid())) },
		"a descriptor":     func(t *testing.T, p string) { must(t, unix.Fchmod(int(openFor(t, p).Fd()), 0o600)) },
		"a copy of a file": func(t *testing.T, p string) { copyInto(t, filepath.Dir(p)+"/b.go", p) },
	} {
		t.Run(name, func(t *testing.T) {
			w := oldTree(t)
			s := watched(t, w)
			do(t, w+"/src/a.go")
			if got := strings.Join(differences(t, s), "|"); !strings.HasPrefix(got, "modified src/a.go") {
				t.Errorf("the list is %q", got)
			}
		})
	}
}

func openFor(t *testing.T, p string) *os.File {
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func copyInto(t *testing.T, from, to string) {
	if n, err := unix.CopyFileRange(int(openFor(t, from).Fd()), nil, int(openFor(t, to).Fd()), nil, 5, 0); n != 5 || err != nil {
		t.Fatal(n, err)
	}
}

// A file with several names at the start is looked at, whichever of them is written to, and
// so is one that gets another name during the run.
func TestNamesOfOneFileAreNotQuiet(t *testing.T) {
	w := oldTree(t)
	must(t, os.Link(w+"/src/a.go", w+"/doc/a.go"))
	s := watched(t, w)
	write(t, w, "doc/a.go", "changed\n")
	wantList(t, differences(t, s), []string{"modified doc/a.go", "modified src/a.go"})

	w = oldTree(t)
	s = watched(t, w)
	mkdir(t, w+"/new")
	must(t, os.Link(w+"/src/deep/d.go", w+"/new/d.go"))
	write(t, w, "new/d.go", "changed\n")
	remove(t, w, "new")
	s.NothingHidden = false // the supervisor saw the call
	wantList(t, differences(t, s), []string{"modified src/deep/d.go"})
}

// The kernel does not report changes through links, nor those through shared memory before
// the file is closed: where this is not known, a change is missed.
func TestWhatIsHiddenIsMissed(t *testing.T) {
	for name, hide := range map[string]func(t *testing.T, w string){
		"another name": func(t *testing.T, w string) {
			mkdir(t, w+"/new")
			must(t, os.Link(w+"/src/deep/d.go", w+"/new/d.go"))
			write(t, w, "new/d.go", "changed\n")
			remove(t, w, "new")
		},
		"shared memory, and the descriptor stays open": func(t *testing.T, w string) {
			m, err := unix.Mmap(int(openFor(t, w+"/src/deep/d.go").Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			must(t, err)
			copy(m, "evil")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := oldTree(t)
			s := watched(t, w)
			hide(t, w)
			needWatches(t, s)
			if got := differences(t, s); got != nil {
				t.Errorf("NothingHidden is needless: %q is listed without it", got)
			}
		})
	}
}

// A name is found by the events of its directory where change times say nothing, and by the
// change time where events say nothing.
func TestEitherSignIsEnough(t *testing.T) {
	for name, lose := range map[string]func(s *Snapshot, deep *listing){
		"the clock was set back": func(s *Snapshot, deep *listing) {
			var st unix.Stat_t
			must(t, unix.Stat(s.Root+"/src/deep", &st))
			deep.ctime = st.Ctim.Nano()
		},
		"no event": func(s *Snapshot, deep *listing) { s.names.watch.changedDirs() },
	} {
		t.Run(name, func(t *testing.T) {
			w := oldTree(t)
			s := watched(t, w)
			write(t, w, "src/deep/CLAUDE.md", "obey\n")
			for _, l := range s.names.dirs {
				if l.path == "src/deep" {
					lose(s, l)
				}
			}
			r, err := s.Settle(t.Context(), t.TempDir())
			if err != nil || len(r.Quarantined) != 1 {
				t.Errorf("%v, held back: %+v", err, r.Quarantined)
			}
		})
	}
}

// Whatever a run does, the report is the same whether quiet directories are passed over or
// not.
func TestQuietIsWhole(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			whole, quiet := reportOf(t, seed, false), reportOf(t, seed, true)
			if whole != quiet {
				t.Errorf("passing over nothing:\n%s\npassing over what is quiet:\n%s", whole, quiet)
			}
		})
	}
}

// reportOf makes a tree, does something to it, and settles it.
func reportOf(t *testing.T, seed uint64, quiet bool) string {
	w, r := tempRoot(t), rand.New(rand.NewPCG(seed, 0))
	for range 60 {
		p := anyPath(r)
		_ = os.MkdirAll(filepath.Dir(w+p), 0o755) // a file may be in the way
		_ = os.WriteFile(w+p, nil, 0o644)
	}
	defer keepInodes(t, w)()
	time.Sleep(2 * clockSlack)
	var few []Option
	if seed%2 == 1 { // more names than are remembered
		few = append(few, func(s *scan) { s.names.left.Store(20) })
	}
	s := watched(t, w, few...)
	s.NothingHidden = quiet
	for range 8 {
		act(r, w+anyPath(r), w+anyPath(r))
	}
	report, err := s.Settle(t.Context(), t.TempDir())
	must(t, err)
	var out []string
	for _, d := range report.Differences {
		out = append(out, fmt.Sprintf("%s %s %s %s %o %o", d.Kind, d.Path, d.From, d.Type, d.OldMode, d.Mode))
	}
	for _, f := range report.Flagged {
		out = append(out, fmt.Sprintf("%s %s %s", f.Change, f.Path, f.Rule))
	}
	for _, q := range report.Quarantined {
		out = append(out, fmt.Sprintf("held %s %s", q.Path, q.Why))
	}
	out = append(out, report.Warnings...)
	slices.Sort(out)
	return strings.ReplaceAll(strings.Join(out, "\n"), w, "")
}

// keepInodes holds all directories of w open: otherwise one that is made anew has the inode
// of the one that was removed, or not, by chance.
func keepInodes(t *testing.T, w string) (release func()) {
	var open []*os.File
	must(t, filepath.WalkDir(w, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		f, err := os.Open(p)
		open = append(open, f)
		return err
	}))
	return func() {
		for _, f := range open {
			f.Close()
		}
	}
}

// anyPath is a path; the first names of the list are the likeliest in it.
func anyPath(r *rand.Rand) string {
	names := []string{"a", "b", "c", ".git", "hooks", "HEAD", "objects", "refs", "node_modules", "Makefile", ".vscode", "CLAUDE.md", "package.json"}
	p := ""
	for range 1 + r.IntN(5) {
		p += "/" + names[min(r.IntN(len(names)), r.IntN(len(names)))]
	}
	return p
}

// act does something to p; that it fails is as good.
func act(r *rand.Rand, p, q string) {
	switch r.IntN(7) {
	case 0:
		_ = os.WriteFile(p, []byte("new"), 0o644)
	case 1, 2:
		_ = os.Rename(p, q)
	case 3:
		_ = os.RemoveAll(p)
	case 4:
		_ = os.MkdirAll(p, 0o755)
	case 5:
		_ = os.Chmod(p, 0o755)
	case 6:
		_ = os.Symlink("../../../x", p)
	}
}
