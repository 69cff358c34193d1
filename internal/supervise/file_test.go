//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const cwd = unix.AT_FDCWD

// makeTree makes a directory with something in it, without links in its path.
func makeTree(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"sub", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"file", "other", "sub/deep"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "file", "way": "sub", "lost": "nowhere", "round": "round"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// callTests have one call each, in a directory made by place, and its expected record.
// In resolved and detail, DIR is replaced by that directory.
var callTests = []struct {
	name     string
	call     aCall
	action   string
	object   string
	resolved string
	errno    string
	detail   string
}{
	{"open for reading", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "file", unix.O_RDONLY, 0}}, event.FileOpen, "file", "DIR/file", "", ""},
	{"open by a link", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "way/../link", unix.O_RDWR, 0}}, event.FileWrite, "way/../link", "DIR/file", "", ""},
	{"open a link that leads nowhere", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "lost", unix.O_RDONLY, 0}}, event.FileOpen, "lost", "DIR/nowhere", "ENOENT", ""},
	{"create by a link that leads nowhere", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "lost", unix.O_WRONLY | unix.O_CREAT, 0o600}}, event.FileWrite, "lost", "DIR/nowhere", "", "how=create mode=0600"},
	{"open a link to itself", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "round", unix.O_RDONLY, 0}}, event.FileOpen, "round", "", "ELOOP", ""},
	{"do not follow", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "link", unix.O_RDONLY | unix.O_NOFOLLOW, 0}}, event.FileOpen, "link", "DIR/link", "ELOOP", ""},
	{"create and truncate", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "sub/./new", unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, 0o640}}, event.FileWrite, "sub/./new", "DIR/sub/new", "", "how=create,truncate mode=0640"},
	{"open below a file", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "file/x", unix.O_RDONLY, 0}}, event.FileOpen, "file/x", "DIR/file/x", "ENOTDIR", ""},
	{"open a directory for writing", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "sub", unix.O_WRONLY, 0}}, event.FileWrite, "sub", "DIR/sub", "EISDIR", ""},
	{"open a missing directory's file", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "no/such/../file", unix.O_RDONLY, 0}}, event.FileOpen, "no/such/../file", "DIR/no/file", "ENOENT", ""},
	{"an unnamed file", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, ".", unix.O_TMPFILE | unix.O_RDWR, 0o600}}, event.FileWrite, ".", "DIR", "", "how=unnamed"},
	{"an empty path", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "", unix.O_RDONLY, 0}}, event.FileOpen, "", "", "ENOENT", ""},
	{"a null pointer", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, 0, unix.O_RDONLY, 0}}, event.FileOpen, "", "", "EFAULT", "unknown=path: no readable memory"},
	{"a bad descriptor", aCall{NR: unix.SYS_OPENAT, Args: []any{77, "file", unix.O_RDONLY, 0}}, event.FileOpen, "file", "", "EBADF", ""},
	{"mkdir", aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "made/", 0o750}}, event.FileMkdir, "made/", "DIR/made", "", "mode=0750"},
	{"rename", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "link", cwd, "sub/moved", 0}}, event.FileRename, "link", "DIR/link", "", "to=sub/moved to_resolved=DIR/sub/moved"},
	{"rename onto", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "other", unix.RENAME_NOREPLACE}}, event.FileRename, "file", "DIR/file", "EEXIST", "to=other to_resolved=DIR/other"},
	{"rename nothing", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "absent", cwd, "other", 0}}, event.FileRename, "absent", "DIR/absent", "ENOENT", "to=other to_resolved=DIR/other"},
	{"rename into nothing", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "no/x", 0}}, event.FileRename, "file", "DIR/file", "ENOENT", "to=no/x to_resolved=DIR/no/x"},
	{"rename over", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "other", 0}}, event.FileRename, "file", "DIR/file", "", "to=other to_resolved=DIR/other"},
	{"rename a file over a directory", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "sub", 0}}, event.FileRename, "file", "DIR/file", "EISDIR", "to=sub to_resolved=DIR/sub"},
	{"rename a directory over a file", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "sub", cwd, "file", 0}}, event.FileRename, "sub", "DIR/sub", "ENOTDIR", "to=file to_resolved=DIR/file"},
	{"rename a directory over one that is not empty", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "empty", cwd, "sub", 0}}, event.FileRename, "empty", "DIR/empty", "ENOTEMPTY", "to=sub to_resolved=DIR/sub"},
	{"rename below a file", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "other", cwd, "file/x", 0}}, event.FileRename, "other", "DIR/other", "ENOTDIR", "to=file/x to_resolved=DIR/file/x"},
	{"exchange with nothing", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "file", cwd, "absent", unix.RENAME_EXCHANGE}}, event.FileRename, "file", "DIR/file", "ENOENT", "how=exchange to=absent to_resolved=DIR/absent"},
	{"link over", aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "file", cwd, "other", 0}}, event.FileLink, "other", "DIR/other", "EEXIST", "to=file to_resolved=DIR/file"},
	{"link nothing", aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "absent", cwd, "hard", 0}}, event.FileLink, "hard", "DIR/hard", "ENOENT", "to=absent to_resolved=DIR/absent"},
	{"link a directory", aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "sub", cwd, "hard", 0}}, event.FileLink, "hard", "DIR/hard", "EPERM", "to=sub to_resolved=DIR/sub"},
	{"link", aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "file", cwd, "way/hard", 0}}, event.FileLink, "way/hard", "DIR/sub/hard", "", "to=file to_resolved=DIR/file"},
	{"symlink", aCall{NR: unix.SYS_SYMLINKAT, Args: []any{"/etc/shadow", cwd, "sneaky"}}, event.FileSymlink, "sneaky", "DIR/sneaky", "", "to=/etc/shadow"},
	{"symlink over", aCall{NR: unix.SYS_SYMLINKAT, Args: []any{"/etc/shadow", cwd, "file"}}, event.FileSymlink, "file", "DIR/file", "EEXIST", "to=/etc/shadow"},
	{"symlink with an empty text", aCall{NR: unix.SYS_SYMLINKAT, Args: []any{"", cwd, "sneaky"}}, event.FileSymlink, "sneaky", "DIR/sneaky", "ENOENT", "to="},
	{"unlink the root", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "/", 0}}, event.FileUnlink, "/", "", "EISDIR", ""},
	{"rmdir the root", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "//", unix.AT_REMOVEDIR}}, event.FileUnlink, "//", "/", "EBUSY", ""},
	{"mkdir over the root", aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "/", 0o750}}, event.FileMkdir, "/", "", "EEXIST", "mode=0750"},
	{"rename into itself", aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "sub", cwd, "sub/below", 0}}, event.FileRename, "sub", "DIR/sub", "EINVAL", "to=sub/below to_resolved=DIR/sub/below"},
	{"open what is no directory as one", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "file", unix.O_RDONLY | unix.O_DIRECTORY, 0}}, event.FileOpen, "file", "DIR/file", "ENOTDIR", ""},
	{"make a file by a name with a slash", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "made/", unix.O_WRONLY | unix.O_CREAT, 0o600}}, event.FileWrite, "made/", "DIR/made", "EISDIR", "how=create mode=0600"},
	{"remove an attribute that is not there", aCall{NR: unix.SYS_REMOVEXATTR, Args: []any{"file", "user.none"}}, event.FileXattr, "file", "DIR/file", "ENODATA", "name=user.none"},
	{"mkdir over", aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "sub", 0o750}}, event.FileMkdir, "sub", "DIR/sub", "EEXIST", "mode=0750"},
	{"mkdir below nothing", aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "no/x", 0o750}}, event.FileMkdir, "no/x", "DIR/no/x", "ENOENT", "mode=0750"},
	{"unlink a directory", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "sub", 0}}, event.FileUnlink, "sub", "DIR/sub", "EISDIR", ""},
	{"rmdir a file", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "file", unix.AT_REMOVEDIR}}, event.FileUnlink, "file", "DIR/file", "ENOTDIR", ""},
	{"rmdir what is not empty", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "sub", unix.AT_REMOVEDIR}}, event.FileUnlink, "sub", "DIR/sub", "ENOTEMPTY", ""},
	{"truncate a directory", aCall{NR: unix.SYS_TRUNCATE, Args: []any{"sub", 1}}, event.FileTruncate, "sub", "DIR/sub", "EISDIR", ""},
	{"truncate nothing", aCall{NR: unix.SYS_TRUNCATE, Args: []any{"absent", 1}}, event.FileTruncate, "absent", "DIR/absent", "ENOENT", ""},
	{"chmod nothing", aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "lost", 0o600}}, event.FileChmod, "lost", "DIR/nowhere", "ENOENT", "mode=0600"},
	{"unlink", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "sub/deep", 0}}, event.FileUnlink, "sub/deep", "DIR/sub/deep", "", ""},
	{"rmdir", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "empty", unix.AT_REMOVEDIR}}, event.FileUnlink, "empty", "DIR/empty", "", ""},
	{"unlink nothing", aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "absent", 0}}, event.FileUnlink, "absent", "DIR/absent", "ENOENT", ""},
	{"chmod", aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "link", 0o4755}}, event.FileChmod, "link", "DIR/file", "", "mode=04755"},
	{"chmod of a descriptor", aCall{NR: unix.SYS_FCHMOD, Args: []any{77, 0o600}}, event.FileChmod, "", "", "EBADF", "fd=77 mode=0600"},
	{"chown", aCall{NR: unix.SYS_FCHOWNAT, Args: []any{cwd, "link", -1, -1, unix.AT_SYMLINK_NOFOLLOW}}, event.FileChown, "link", "DIR/link", "", "owner=-1:-1"},
	{"truncate", aCall{NR: unix.SYS_TRUNCATE, Args: []any{"way/deep", 1}}, event.FileTruncate, "way/deep", "DIR/sub/deep", "", ""},
	{"mknod", aCall{NR: unix.SYS_MKNODAT, Args: []any{cwd, "pipe", unix.S_IFIFO | 0o600, 0}}, event.FileMknod, "pipe", "DIR/pipe", "", "mode=0600 type=fifo"},
	{"setxattr", aCall{NR: unix.SYS_SETXATTR, Args: []any{"file", "user.note", []byte("x"), 1, 0}}, event.FileXattr, "file", "DIR/file", "", "name=user.note"},
	{"not utf-8", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, "a\xff\n\x1b[31m", unix.O_WRONLY | unix.O_CREAT, 0o600}}, event.FileWrite, "a\xff\n\x1b[31m", "DIR/a\xff\n\x1b[31m", "", "how=create mode=0600"},
	{"4095 bytes", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, strings.Repeat("./", 2045) + "file.", unix.O_RDONLY, 0}}, event.FileOpen, strings.Repeat("./", 2045) + "file.", "DIR/file.", "ENOENT", ""},
	{"4096 bytes", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, strings.Repeat("./", 2046) + "file", unix.O_RDONLY, 0}}, event.FileOpen, strings.Repeat("./", 2046) + "file", "", "ENAMETOOLONG", ""},
	{"a long name", aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, strings.Repeat("n", 256), unix.O_RDONLY, 0}}, event.FileOpen, strings.Repeat("n", 256), "DIR/" + strings.Repeat("n", 256), "ENAMETOOLONG", ""},
}

func TestCalls(t *testing.T) {
	for _, tt := range callTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := makeTree(t)
			r, got := makeCalls(t, dir, []aCall{tt.call}, level(Full))
			if want := tt.errno; got[0] != "-" && got[0] != want || got[0] == "-" && want != "" {
				t.Errorf("the call came to %s, and %q is expected", got[0], want)
			}
			e := r.last(tt.action)
			if e.Object != tt.object {
				t.Errorf("object %.100q, want %.100q", e.Object, tt.object)
			}
			if want := strings.ReplaceAll(tt.resolved, "DIR", dir); e.Resolved != want {
				t.Errorf("resolved %.200q, want %.200q", e.Resolved, want)
			}
			if e.Error != tt.errno {
				t.Errorf("error %q, want %q", e.Error, tt.errno)
			}
			if got := r.sup.Hidden(); got != (tt.action == event.FileLink) {
				t.Errorf("that a change may be hidden is %v", got)
			}
			if got := words(e.Detail); got != strings.ReplaceAll(tt.detail, "DIR", dir) {
				t.Errorf("detail %q, want %q", got, tt.detail)
			}
			if e.Process.PID != r.cmd.Process.Pid || e.Process.Exec == 0 || e.Sensor != event.Syscall {
				t.Errorf("process %+v, sensor %q", e.Process, e.Sensor)
			}
		})
	}
}

// TestDescriptorsAndWorkingDirectory has calls that depend on each other.
func TestDescriptorsAndWorkingDirectory(t *testing.T) {
	dir := makeTree(t)
	pwd := filepath.Join(dir, "gone")
	if err := os.Mkdir(pwd, 0o755); err != nil {
		t.Fatal(err)
	}
	const fd = 40 // what follows is opened as this one
	r, got := makeCalls(t, dir, []aCall{
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "sub", unix.O_RDONLY | unix.O_DIRECTORY, 0}, As: fd},
		{NR: unix.SYS_OPENAT, Args: []any{fd, "deep", unix.O_WRONLY, 0}},
		{NR: unix.SYS_FCHMOD, Args: []any{fd, 0o700}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "/proc/self/fd/40/deep", unix.O_WRONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "/dev/fd/40/../file", unix.O_WRONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "/proc/self/cwd/link", unix.O_WRONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "/proc/self/root/" + dir + "/other", unix.O_WRONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "/proc/thread-self/fd/0", unix.O_RDONLY, 0}},
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "", unix.AT_REMOVEDIR}, Dir: pwd},
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, pwd, unix.AT_REMOVEDIR}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "orphan", unix.O_WRONLY | unix.O_CREAT, 0o600}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, dir, unix.O_PATH, 0}, As: fd + 1},
		{NR: unix.SYS_FCHOWN, Args: []any{fd + 1, -1, -1}},
	}, level(Full))
	for i, want := range []string{"-", "-", "-", "-", "-", "-", "-", "-", "ENOENT", "-", "ENOENT", "-", "EBADF"} {
		if got[i] != want && i != 7 {
			t.Errorf("call %d: %s, want %s", i, got[i], want)
		}
	}
	for object, want := range map[string]string{
		"deep":                              dir + "/sub/deep",
		"/proc/self/fd/40/deep":             dir + "/sub/deep",
		"/dev/fd/40/../file":                dir + "/file",
		"/proc/self/cwd/link":               dir + "/file",
		"/proc/self/root/" + dir + "/other": dir + "/other",
	} {
		if e := r.about(event.FileWrite, object); e.Resolved != want || e.Verdict != event.Allowed || e.Error != "" {
			t.Errorf("%s: resolved %q %v %s, want %q", object, e.Resolved, e.Verdict, e.Error, want)
		}
	}
	if e := r.about(event.FileWrite, "orphan"); e.Error != "ENOENT" || e.Resolved != "" {
		t.Errorf("in a directory that was removed: %+v", e)
	}
	if e := r.about(event.FileChown, dir); e.Error != "EBADF" {
		t.Errorf("a descriptor that is only a handle: %+v", e)
	}
	if e := r.about(event.FileOpen, "/proc/thread-self/fd/0"); !strings.HasPrefix(e.Resolved, "pipe:") {
		t.Errorf("a pipe: %+v", e)
	}
	if e := r.last(event.FileChmod); e.Object != dir+"/sub" || e.Detail["fd"] != strconv.Itoa(fd) {
		t.Errorf("chmod of a descriptor: %+v", e)
	}
}

func words(m map[string]string) string {
	var w []string
	for k, v := range m {
		w = append(w, k+"="+v)
	}
	slices.Sort(w)
	return strings.Join(w, " ")
}

// last returns the last event of an action.
func (r *run) last(action string) event.Event {
	r.t.Helper()
	all := r.eventsOf(action)
	if len(all) == 0 {
		r.t.Fatalf("no event %s; all: %s", action, r.dump())
	}
	return all[len(all)-1]
}

// A path that the view of a private tree hides is denied, however it is named; one that
// is only missing, or is created, is not.
func TestKeptFromPrivateTree(t *testing.T) {
	dir := makeTree(t)
	r, _ := makeCalls(t, dir, []aCall{
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "sub/../key", unix.O_RDONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, dir + "/key", unix.O_RDWR, 0}},
		{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "key", cwd, "sub/moved", 0}},
		{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "key", 0o600}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "none", unix.O_RDONLY, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "./key", unix.O_WRONLY | unix.O_CREAT, 0o600}},
		{NR: unix.SYS_SYMLINKAT, Args: []any{"away/key", cwd, "door"}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "door", unix.O_WRONLY, 0}},
	}, level(Full), trees(policy.Tree{Path: "/", Access: policy.Read}, policy.Tree{Path: dir, Access: policy.Copy}),
		func(_ *run, c *Config, _ *exec.Cmd) {
			c.HiddenByView = func(path string) bool { return path == dir+"/key" || path == dir+"/away/key" }
		})
	for _, e := range []event.Event{
		r.about(event.FileOpen, "sub/../key"), r.about(event.FileWrite, dir+"/key"), r.about(event.FileRename, "key"), r.about(event.FileChmod, "key"),
		r.about(event.FileWrite, "door"),
	} {
		if e.Verdict != event.Denied || e.Layer != event.LayerView || e.Error != "ENOENT" {
			t.Errorf("%s of what was kept: %v by %q, %s", e.Action, e.Verdict, e.Layer, e.Error)
		}
	}
	if e := r.about(event.FileOpen, "none"); e.Verdict != event.Allowed || e.Error != "ENOENT" {
		t.Errorf("what is nowhere: %v, %s", e.Verdict, e.Error)
	}
	if e := r.about(event.FileWrite, "./key"); e.Verdict != event.Allowed || e.Error != "" {
		t.Errorf("what is made: %v, %s", e.Verdict, e.Error)
	}
}

// A message may carry descriptors, whatever it is when the supervisor looks at it.
func TestMessagesMayHideChanges(t *testing.T) {
	for name, nr := range map[string]uintptr{"sendmsg": unix.SYS_SENDMSG, "sendmmsg": unix.SYS_SENDMMSG} {
		t.Run(name, func(t *testing.T) {
			r, _ := makeCalls(t, makeTree(t), []aCall{{NR: nr, Args: []any{77, 0, 0, 0}}})
			if !r.sup.Hidden() {
				t.Error("it hides nothing")
			}
		})
	}
}
