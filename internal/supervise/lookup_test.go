//go:build linux

package supervise

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// lookedIn makes a workspace and places around it, and returns the directory of
// both and the trees that are in view. What is hidden is missing: here nothing can be
// mounted in its place.
func lookedIn(t *testing.T) (dir string, view []policy.Tree) {
	t.Helper()
	dir = makeTree(t)
	for _, d := range []string{"ws/deep", "ws/shut", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"ws/file": "x", "ws/deep/file": "x", "ws/empty": "", "ws/unreadable": "x", "ws/shut/file": "x", "out/file": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ws/near": "../out/file", "ws/far": dir + "/out/file", "ws/loop": "loop", "ws/dir": "../out", "ws/in": "deep/file"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir+"/ws/unreadable", 0); err != nil {
		t.Fatal(err)
	}
	view = []policy.Tree{{Path: "/usr", Access: policy.Read}, {Path: "/dev", Access: policy.Read}, {Path: filepath.Dir(real(t, "/proc/self/exe")), Access: policy.Read},
		{Path: "/proc", Access: policy.Write}, {Path: "/sys", Access: policy.Read}, {Path: "/etc", Access: policy.Read},
		{Path: dir + "/ws", Access: policy.Write}, {Path: dir + "/ws/.env", Access: policy.Hidden, Rule: "policy:5"}, {Path: dir + "/home", Access: policy.Copy}}
	return dir, view
}

func TestLookupsThatAreRefused(t *testing.T) {
	dir, view := lookedIn(t)
	call := func(nr int, args ...any) aCall { return aCall{NR: uintptr(nr), Args: args} }
	open := func(path string) aCall { return call(unix.SYS_OPENAT, cwd, path, unix.O_RDONLY) }
	tests := []refusedLookup{
		{open("ws/file"), "", "", "", ""},
		{open(dir + "/ws/in"), "", "", "", ""},
		{open("ws/none"), "", "", "", ""},
		{open("ws/empty"), "", "", "", ""},
		{open("out/file"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open("ws/near"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open("ws/../out/none"), event.FileLookup, dir + "/out/none", "view", "ENOENT"},
		{open(dir + "/ws/dir/file"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open("ws/.env"), event.FileOpen, dir + "/ws/.env", "hidden", "ENOENT"},
		{open("home/.netrc"), event.FileLookup, dir + "/home/.netrc", "view", "ENOENT"},
		{open("home/ordinary"), "", "", "", ""},
		{open("/quiet/below"), "", "", "", ""},
		{open("/ordinary"), "", "", "", ""},
		{call(unix.SYS_READLINKAT, cwd, "ws/near", "", 0), "", "", "", ""},
		{call(unix.SYS_READLINKAT, cwd, "out/link", "", 0), event.FileLookup, dir + "/out/link", "view", "ENOENT"},
		{call(unix.SYS_FACCESSAT, cwd, "ws/.env", unix.F_OK), event.FileLookup, dir + "/ws/.env", "hidden", "ENOENT"},
		{call(unix.SYS_FACCESSAT, cwd, "ws/unreadable", unix.R_OK), "", "", "", ""},
		{call(unix.SYS_FACCESSAT2, cwd, "ws/near", 0, 0), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{call(unix.SYS_FACCESSAT2, cwd, "ws/near", 0, unix.AT_SYMLINK_NOFOLLOW), "", "", "", ""},
		{call(unix.SYS_STATFS, dir+"/out/file", ""), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{call(unix.SYS_GETXATTR, "ws/far", "user.x", "", 0), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{call(unix.SYS_LGETXATTR, "ws/far", "user.x", "", 0), "", "", "", ""},
		{call(unix.SYS_INOTIFY_ADD_WATCH, -1, "ws/far", unix.IN_OPEN), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{call(unix.SYS_INOTIFY_ADD_WATCH, -1, "ws/far", unix.IN_OPEN|unix.IN_DONT_FOLLOW), "", "", "", ""},
		{call(unix.SYS_UTIMENSAT, cwd, "out/file", 0, 0), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open("ws/loop/x"), "", "", "", ""},
		{call(unix.SYS_CHDIR, "ws/near"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
	}
	compareLookups(t, dir, dir, view, tests)
}

// TestLookupsOfNames has what is looked up by a name alone, which is where less is
// asked about a place.
func TestLookupsOfNames(t *testing.T) {
	dir, view := lookedIn(t)
	open := func(path string) aCall { return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, unix.O_RDONLY}} }
	tests := []refusedLookup{
		{open("file"), "", "", "", ""},
		{open("none"), "", "", "", ""},
		{open("in"), "", "", "", ""},
		{open("empty"), "", "", "", ""},
		{open("near"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open("far"), event.FileLookup, dir + "/out/file", "view", "ENOENT"},
		{open(".."), "", "", "", ""},
		{open(".env"), event.FileOpen, dir + "/ws/.env", "hidden", "ENOENT"},
	}
	if os.Geteuid() != 0 {
		tests = append(tests, refusedLookup{open("unreadable"), event.FileOpen, dir + "/ws/unreadable", "permissions", "EACCES"})
	}
	tests = append(tests,
		refusedLookup{aCall{NR: unix.SYS_OPENAT, Args: []any{-1, "file", unix.O_RDONLY}}, "", "", "", ""},
		refusedLookup{aCall{NR: unix.SYS_OPENAT, Args: []any{1 << 20, "file", unix.O_RDONLY}}, "", "", "", ""},
		refusedLookup{aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, 8, unix.O_RDONLY}}, event.FileLookup, "", "", "EFAULT"})
	compareLookups(t, dir, dir+"/ws", view, tests)
}

// refusedLookup is a call and its event.
type refusedLookup struct {
	call           aCall
	action, object string // "" for no event
	layer, error   string
}

func compareLookups(t *testing.T, dir, from string, view []policy.Tree, tests []refusedLookup) {
	t.Helper()
	var calls []aCall
	for _, tt := range tests {
		calls = append(calls, tt.call)
	}
	r, _ := makeCalls(t, from, calls, handed(view, dir))
	var events []event.Event
	for _, e := range r.sink.events {
		if strings.HasPrefix(e.Action, "file.") && e.Detail["call"] != "" {
			events = append(events, e)
		}
	}
	for _, tt := range tests {
		if tt.action == "" {
			continue
		}
		if len(events) == 0 {
			t.Fatalf("%v: no event; all: %s", tt.call, r.dump())
		}
		e := events[0]
		events = events[1:]
		found, verdict := cmp.Or(e.Resolved, e.Object), event.Denied
		if tt.layer == "" {
			verdict = event.Unknown
		}
		if e.Action != tt.action || found != tt.object || e.Layer != tt.layer || e.Error != tt.error || e.Verdict != verdict {
			t.Errorf("%v: %s of %q, %v by %q with %s; want %s of %q, denied by %q with %s", tt.call, e.Action, found, e.Verdict, e.Layer, e.Error, tt.action, tt.object, tt.layer, tt.error)
		}
	}
	if len(events) > 0 {
		t.Errorf("an event too many: %v", events[0])
	}
}

// TestRepeatedLookupsAreCounted asks for one place again and again.
func TestRepeatedLookupsAreCounted(t *testing.T) {
	dir, view := lookedIn(t)
	calls := make([]aCall, 50)
	for i := range calls {
		calls[i] = aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "out/file", unix.O_RDONLY}}
	}
	r, _ := makeCalls(t, dir, calls, handed(view, dir))
	found, count := 0, 0
	for _, e := range r.eventsOf(event.FileLookup) {
		found++
		n, _ := strconv.Atoi(cmp.Or(e.Detail["count"], "1"))
		count += n
	}
	if count != len(calls) || found > 10 {
		t.Errorf("%d look-ups stand there as %d events for %d: %s", len(calls), found, count, r.dump())
	}
}

// handed is a view of these trees whose look-ups are all handed over.
func handed(view []policy.Tree, dir string) option {
	return func(r *run, c *Config, cmd *exec.Cmd) {
		trees(view...)(r, c, cmd)
		r.lookups = true
		c.Quiet = []string{"/quiet"}
		c.Ordinary = func(e event.Event, _ string) bool { return e.Object == "/ordinary" }
		c.HiddenByView = func(path string) bool { return path == dir+"/home/.netrc" }
	}
}
