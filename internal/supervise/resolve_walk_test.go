//go:build linux

package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// TestPathsAroundNames has paths that the kernel resolves through links of
// /proc in ways that are not spelled plainly. All of them come to a file, so a
// record that says otherwise hides a write.
func TestPathsAroundNames(t *testing.T) {
	dir := makeTree(t)
	for link, to := range map[string]string{"P": "/proc/self", "R": "/proc/self/root", "C": "/proc/self/cwd", "D": "/proc/../proc/./self/cwd",
		"U": strings.Repeat("../", 40) + "proc/self/cwd", "F": "/proc/../proc/self/cwd/f", "X": "C/way"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var calls []aCall
	want := map[string]string{
		"/proc/./self/cwd/a": "/a", "/proc/../proc/self/cwd/b": "/b", "//proc/self/cwd/c": "/c", "/proc//self//cwd/./d": "/d",
		"P/cwd/e": "/e", "R" + dir + "/g": "/g", "C/h": "/h", "D/i": "/i", "U/j": "/j", "F": "/f", "C/sub/../k": "/k", "X/l": "/sub/l",
		"C/C/C/n": "/n", "P/root" + dir + "/C/o": "/o", strings.Repeat("./", 60) + "C/p": "/p",
	}
	for path := range want {
		calls = append(calls, aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, unix.O_WRONLY | unix.O_CREAT, 0o600}})
	}
	calls = append(calls, aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "file/../C/q", unix.O_WRONLY | unix.O_CREAT, 0o600}})
	r, got := makeCalls(t, dir, calls, level(Full))
	for i, errno := range got {
		if last := i == len(got)-1; errno != "-" && !last || last && errno != "ENOTDIR" {
			t.Errorf("call %v: %s", calls[i].Args, errno)
		}
	}
	for path, at := range want {
		if e := r.about(event.FileWrite, path); e.Resolved != dir+at || e.Verdict != event.Allowed || e.Error != "" {
			t.Errorf("%.60s: resolved %q %v %s %v, want %s", path, e.Resolved, e.Verdict, e.Error, e.Detail, at)
		}
	}
	if e := r.about(event.FileWrite, "file/../C/q"); e.Error != "ENOTDIR" {
		t.Errorf("through a file: %+v", e)
	}
}

// TestRemovedDirectories has what is still possible from a directory, and with
// a file, that has no name any more.
func TestRemovedDirectories(t *testing.T) {
	dir := makeTree(t)
	pwd := filepath.Join(dir, "gone")
	if err := os.Mkdir(pwd, 0o755); err != nil {
		t.Fatal(err)
	}
	const fd, file = 40, 41
	r, got := makeCalls(t, dir, []aCall{
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "gone", unix.O_RDONLY | unix.O_DIRECTORY, 0}, As: fd},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "other", unix.O_RDWR, 0}, As: file},
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "other", 0}},
		{NR: unix.SYS_FCHMOD, Args: []any{file, 0o640}},
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, pwd, unix.AT_REMOVEDIR}, Dir: pwd},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "./../up", unix.O_WRONLY | unix.O_CREAT, 0o600}},
		{NR: unix.SYS_OPENAT, Args: []any{fd, "../sub/way", unix.O_WRONLY | unix.O_CREAT, 0o600}},
		{NR: unix.SYS_OPENAT, Args: []any{fd, "in", unix.O_WRONLY | unix.O_CREAT, 0o600}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "", unix.O_WRONLY, 0}},
	}, level(Full))
	for i, want := range []string{"-", "-", "-", "-", "-", "-", "-", "ENOENT", "ENOENT"} {
		if got[i] != want {
			t.Errorf("call %d: %s, want %s", i, got[i], want)
		}
	}
	for object, want := range map[string]string{"./../up": dir + "/up", "../sub/way": dir + "/sub/way"} {
		if e := r.about(event.FileWrite, object); e.Resolved != want || e.Verdict != event.Allowed || e.Error != "" {
			t.Errorf("%s: resolved %q %v %s, want %q", object, e.Resolved, e.Verdict, e.Error, want)
		}
	}
	for _, object := range []string{"in", ""} {
		if e := r.about(event.FileWrite, object); e.Error != "ENOENT" || e.Verdict != event.Allowed || e.Layer != "" {
			t.Errorf("%q: nothing refused it: %+v", object, e)
		}
	}
	if e := r.last(event.FileChmod); e.Object != dir+"/other (deleted)" || e.Error != "" {
		t.Errorf("a file without a name: %+v", e)
	}
}

func TestExchange(t *testing.T) {
	dir := makeTree(t)
	r, got := makeCalls(t, dir, []aCall{{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "way", unix.RENAME_EXCHANGE}}}, level(Standard))
	if e := r.last(event.FileRename); got[0] != "-" || e.Detail["how"] != "exchange" || e.Detail["to_resolved"] != dir+"/way" {
		t.Errorf("%s: %+v", got[0], e)
	}
}

// TestPathsOfManyNames has the deepest path that there can be: what it costs
// must not grow with the square of its length.
func TestPathsOfManyNames(t *testing.T) {
	deep := strings.Repeat("/a", 2047)
	p := newPlaces(View{Trees: []policy.Tree{{Path: "/a/a", Access: policy.Read}, {Path: "/home/u/ws", Access: policy.Write}}})
	if tree := p.treeFor(deep); tree == nil || tree.Path != "/a/a" {
		t.Errorf("found %+v", tree)
	}
	quiet := newExpectations([]string{"/sys/fs", "/a/a/b"})
	for path, want := range map[string]bool{"/sys/fs": true, "/sys/fs/x": true, "/sys/fsx": false, "/sys": false, "/a/a/b/c": true, "": false, "/": false, deep: false} {
		if got := quiet.contains(path); got != want {
			t.Errorf("%.20s: quiet %v", path, got)
		}
	}
	if n := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			quiet.contains(deep)
			p.treeFor(deep)
		}
	}); n.NsPerOp() > 1_000_000 {
		t.Errorf("one path of 2047 names takes %d ns", n.NsPerOp())
	}
}

// TestResolvedIsSaidOnlyWhereItIsNews: where a path leads is in an event unless it is
// what was asked for.
func TestResolvedIsSaidOnlyWhereItIsNews(t *testing.T) {
	for _, tt := range []struct{ dir, name, place, asked, want string }{
		{"/a/b", "c", "", "/a/b/c", ""},
		{"/a/b", "c", "", "/x/b/c", "/a/b/c"},
		{"/a/b", "c", "", "/a/bxc", "/a/b/c"},
		{"/a/b", "c", "", "/a/b/d", "/a/b/c"},
		{"/a/b", "c", "", "c", "/a/b/c"},
		{"/a/b", "c", "", "/a/b/../b/c", "/a/b/c"},
		{"/a/b", "", "", "/a/b", ""},
		{"/a/b", "", "", ".", "/a/b"},
		{"/", "c", "", "/c", ""},
		{"/", "c", "", "c", "/c"},
		{"", "", "/gone/x", "/gone/x", ""},
		{"", "", "/gone/x", "x", "/gone/x"},
	} {
		s := location{name: []byte(tt.name), place: tt.place, asked: []byte(tt.asked)}
		if tt.dir != "" {
			s.dir = &directory{real: tt.dir}
		}
		if got := s.resolved(); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
