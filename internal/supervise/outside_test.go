//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// below says that an attempt is about a file below dir, and stays there.
func below(dir string) func(event.Attempt) bool {
	return func(a event.Attempt) bool {
		return a.Kind == event.KindFile && strings.HasPrefix(a.Path, dir+"/") && (a.To == "" || strings.HasPrefix(a.To, dir+"/"))
	}
}

func carry(never ...string) option {
	return func(_ *run, c *Config, _ *exec.Cmd) { c.Carry = Outside(never) }
}

// outsideOf is a view in which only ws can be written, and hidden is not there.
func outsideOf(ws, hidden string) option {
	return trees(policy.Tree{Path: "/", Access: policy.Read, Rule: "view"}, policy.Tree{Path: ws, Access: policy.Write}, policy.Tree{Path: "/dev", Access: policy.Copy},
		policy.Tree{Path: ws + "/protected", Access: policy.ProtectedRead}, policy.Tree{Path: hidden, Access: policy.Hidden})
}

// grounds makes a workspace and something outside of it.
func grounds(t *testing.T) (ws, out string) {
	t.Helper()
	dir := makeTree(t)
	ws, out = dir+"/ws", dir+"/out"
	for _, d := range []string{ws, ws + "/protected", out, out + "/sub", out + "/full", out + "/secret"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{ws + "/mine", out + "/file", out + "/twice", out + "/other", out + "/full/one", ws + "/protected/hook", out + "/secret/key"} {
		if err := os.WriteFile(f, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{out + "/link": "file", out + "/dangling": "absent", ws + "/way": out, out + "/back": ws + "/protected"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(out+"/twice", out+"/twin"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(out+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	return ws, out
}

func TestChangesOutsideAreCarriedOut(t *testing.T) {
	ws, out := grounds(t)
	const create = unix.O_CREAT | unix.O_WRONLY | unix.O_EXCL
	open := func(path string, flags, mode int) aCall {
		return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, flags, mode}}
	}
	rows := []struct {
		call aCall
		want string
		op   string // asked for; "" for not asked
		path string
	}{
		{open(out+"/new", create, 0o666), "-", "create", out + "/new"},
		{open(out+"/new", create, 0o666), "EEXIST", "", ""}, // it already exists: no question is needed
		{open("way/newer", unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o640), "-", "create", out + "/newer"},
		{open(out+"/file", unix.O_WRONLY|unix.O_TRUNC, 0), "-", "write", out + "/file"},
		{open(out+"/link", unix.O_WRONLY, 0), "-", "write", out + "/file"},
		{open(out+"/link", unix.O_WRONLY|unix.O_NOFOLLOW, 0), "ELOOP", "", ""},
		{open(out+"/dangling", unix.O_WRONLY|unix.O_CREAT, 0o644), "-", "create", out + "/absent"},
		{open(out+"/twice", unix.O_WRONLY, 0), "EACCES", "write", out + "/twice"},
		{open(out+"/pipe", unix.O_WRONLY|unix.O_NONBLOCK, 0), "ENXIO", "", ""}, // the kernel's: nothing outside is changed by it
		{open(out+"/back/hook", unix.O_WRONLY, 0), "-", "", ""},
		{open(out+"/nowhere/x", create, 0o644), "ENOENT", "", ""},
		{open(out+"/secret/new", create, 0o644), "EACCES", "create", out + "/secret/new"},
		{aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, out + "/made", 0o777}}, "-", "mkdir", out + "/made"},
		{aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, out + "/made/deeper/", 0o700}}, "-", "mkdir", out + "/made/deeper"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, out + "/made/deeper", unix.AT_REMOVEDIR}}, "-", "unlink", out + "/made/deeper"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, out + "/full", unix.AT_REMOVEDIR}}, "ENOTEMPTY", "unlink", out + "/full"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, out + "/full/one", 0}}, "-", "unlink", out + "/full/one"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, out + "/pipe", 0}}, "EACCES", "unlink", out + "/pipe"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, out + "/new", cwd, out + "/sub/moved", 0}}, "-", "rename", out + "/new"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, out + "/sub/moved", cwd, out + "/other", unix.RENAME_NOREPLACE}}, "EEXIST", "rename", out + "/sub/moved"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, out + "/sub", cwd, out + "/sub2", 0}}, "EACCES", "rename", out + "/sub"},
		{aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, out + "/other", 0o600}}, "-", "chmod", out + "/other"},
		{aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, out + "/other", 0o4755}}, "EACCES", "chmod", out + "/other"},
		{aCall{NR: unix.SYS_TRUNCATE, Args: []any{out + "/other", 2}}, "-", "truncate", out + "/other"},
		{open(ws+"/mine", unix.O_WRONLY, 0), "-", "", ""},
	}
	var calls []aCall
	for _, r := range rows {
		calls = append(calls, r.call)
	}
	h := &human{ask: below(out), answer: yes}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	r, got := makeCalls(t, ws, calls, gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry(out+"/secret"), umask(0o027))
	asked := h.requests()
	for i, row := range rows {
		if got[i] != row.want {
			t.Errorf("%d %s %q: %s, want %s", row.call.NR, row.op, row.path, got[i], row.want)
		}
		if row.op == "" {
			continue
		}
		if len(asked) == 0 {
			t.Fatalf("nothing more was asked, but %s %s", row.op, row.path)
		}
		if a := asked[0]; a.Operation != row.op || a.Path != row.path || a.Process.Executable == "" || a.Process.Cwd != ws {
			t.Errorf("asked for %s %q by %+v, want %s %q", a.Operation, a.Path, a.Process, row.op, row.path)
		}
		asked = asked[1:]
	}
	if len(asked) > 0 {
		t.Errorf("asked besides: %+v", asked)
	}
	for path, want := range map[string]string{out + "/sub/moved": "-rw-r----- 0", out + "/newer": "-rw-r----- 0", out + "/file": "-rw-r--r-- 0", out + "/made": "drwxr-x---", out + "/other": "-rw------- 2"} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		is := info.Mode().String()
		if !info.IsDir() {
			is += fmt.Sprintf(" %d", info.Size())
		}
		if is != want || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			t.Errorf("%s: %s, want %s", path, is, want)
		}
	}
	if e := r.about(event.FileMkdir, out+"/made"); e.Verdict != event.Allowed || e.Detail["by"] != "holdfast" || e.Error != "" {
		t.Errorf("%+v", e)
	}
	if e := r.about(event.FileWrite, out+"/twice"); e.Verdict != event.Denied || e.Layer != event.LayerConsent || !strings.Contains(e.Detail["reason"], "2 names") {
		t.Errorf("%+v", e)
	}
}

func umask(mask int) option {
	return func(r *run, _ *Config, _ *exec.Cmd) {
		r.cmd.Env = append(r.cmd.Env, fmt.Sprintf("%s=%o", umaskVar, mask))
	}
}

// TestChangesOfWhatIsNotInView has nothing of what is changed in view.
func TestChangesOfWhatIsNotInView(t *testing.T) {
	ws, out := grounds(t)
	h := &human{ask: below(out), answer: yes}
	r, got := makeCalls(t, ws, []aCall{
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "../out/link", unix.O_WRONLY | unix.O_TRUNC, 0}, As: 30},
		{NR: unix.SYS_WRITE, Args: []any{30, []byte("new"), 3}},
		{NR: unix.SYS_FCHMOD, Args: []any{30, 0o600}}, // of the pipe
		{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/nowhere/x", unix.O_WRONLY | unix.O_CREAT, 0o644}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/pipe", unix.O_WRONLY | unix.O_NONBLOCK, 0}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/sub", unix.O_WRONLY, 0}},
		{NR: unix.SYS_MKDIRAT, Args: []any{cwd, out + "/full", 0o755}},
	}, gate(h, event.KindFile), trees(policy.Tree{Path: ws, Access: policy.Write}, policy.Tree{Path: ws + "/protected", Access: policy.ProtectedRead}), carry())
	if want := []string{"-", "-", "-", "ENOENT", "EACCES", "EACCES", "EEXIST"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v: %s", got, want, r.dump())
	}
	if text, err := os.ReadFile(out + "/file"); err != nil || string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(out + "/file"); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("by the descriptor that was handed in: %v, %v", info, err)
	}
}

func TestNeverCarriedOut(t *testing.T) {
	ws, out := grounds(t)
	s := &Supervisor{config: Config{Carry: Outside([]string{out + "/secret", "/home/of/state"})}, resolver: newResolver(newPlaces(View{Trees: []policy.Tree{
		{Path: ws, Access: policy.Write}, {Path: ws + "/protected", Access: policy.ProtectedRead}, {Path: "/usr", Access: policy.Read}, {Path: "/tmp/private", Access: policy.Copy},
	}}))}
	for _, tt := range []struct {
		path string
		may  bool
	}{
		{out + "/new", true}, {"/usr/x", true}, {out + "/secrets", true}, {"/etc/x", true},
		{out + "/back/hook", false}, // a link that leads back to what is protected
		{ws + "/file", false}, {"/tmp/private/x", false}, {out + "/secret", false}, {out + "/secret/deep/er", false},
		{"/proc/self/mem", false}, {"/sys/x", false}, {"/dev/sda", false}, {"/home/of", false}, {"/", false},
	} {
		p := lookHost(tt.path, true)
		if err := s.mayCarry("write", &p); (err == nil) != tt.may {
			t.Errorf("%s, which is %s: %v", tt.path, p.path, err)
		}
	}
	s.config.Carry = nil
	if err := s.mayCarry("write", &hostPlace{path: out + "/new"}); err == nil {
		t.Error("something is carried out though nothing says so")
	}
}

// TestTheDirectoryIsTheSame exchanges what was shown to the human before it is used.
func TestTheDirectoryIsTheSame(t *testing.T) {
	for name, change := range map[string]func(out string) error{
		"the directory is another": func(out string) error {
			return errors.Join(os.Rename(out+"/sub", out+"/was"), os.Mkdir(out+"/sub", 0o755))
		},
		"a link is on the way": func(out string) error {
			return errors.Join(os.Rename(out+"/sub", out+"/was"), os.Symlink("was", out+"/sub"))
		},
		"the file is another": func(out string) error {
			return errors.Join(os.Rename(out+"/sub/file", out+"/was"), os.WriteFile(out+"/sub/file", nil, 0o644))
		},
		"the file is a link": func(out string) error {
			return errors.Join(os.Rename(out+"/sub/file", out+"/was"), os.Symlink(out+"/was", out+"/sub/file"))
		},
		"the file is gone":              func(out string) error { return os.Remove(out + "/sub/file") },
		"the file has got another name": func(out string) error { return os.Link(out+"/sub/file", out+"/sub/twin") },
	} {
		t.Run(name, func(t *testing.T) {
			ws, out := grounds(t)
			if err := os.WriteFile(out+"/sub/file", []byte("text"), 0o644); err != nil {
				t.Fatal(err)
			}
			h := &human{ask: below(out), answer: func(a event.Attempt) event.Ruling {
				if err := change(out); err != nil {
					t.Error(err)
				}
				return yes(a)
			}}
			r, got := makeCalls(t, ws, []aCall{
				{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/sub/file", unix.O_WRONLY | unix.O_TRUNC, 0}},
			}, gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			if e := r.about(event.FileWrite, out+"/sub/file"); got[0] != "EACCES" || e.Layer != event.LayerConsent || e.Detail["reason"] == "" {
				t.Errorf("%s, %+v", got[0], e)
			}
			if text, err := os.ReadFile(out + "/was"); err == nil && string(text) != "text" {
				t.Error("it was emptied")
			}
		})
	}
}

func TestChangesOutsideAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		human *human
		want  string
	}{
		{"by the human", &human{ask: func(event.Attempt) bool { return true }, answer: no}, "EACCES"},
		{"by a rule", &human{deny: func(event.Attempt) bool { return true }}, "EACCES"},
		{"by the boundary", &human{}, "-"}, // which does not exist in a test
	} {
		t.Run(tt.name, func(t *testing.T) {
			ws, out := grounds(t)
			r, got := makeCalls(t, ws, []aCall{
				{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/new", unix.O_CREAT | unix.O_WRONLY, 0o644}},
			}, gate(tt.human, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
			if got[0] != tt.want {
				t.Errorf("it came to %s", got[0])
			}
			_, err := os.Lstat(out + "/new")
			if tt.want == "EACCES" && err == nil {
				t.Error("it was made")
			}
			e := r.about(event.FileWrite, out+"/new")
			if tt.want == "EACCES" && (e.Layer != event.LayerConsent || e.Error != "EACCES") || e.Verdict != event.Denied {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestCommitOutside has git commit in a directory that is in view for reading
// alone, by leave of a human for all below it.
func TestCommitOutside(t *testing.T) {
	testenv.Need(t, testenv.Git, nil)
	ws, out := grounds(t)
	repo := out + "/repo"
	git := func(args ...string) *exec.Cmd {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		return cmd
	}
	if out, err := exec.Command("git", "init", "-q", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(repo+"/file", []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := &human{granted: below(repo)}
	cmd := git("add", "file")
	env := func(r *run, _ *Config, _ *exec.Cmd) { r.cmd.Env = cmd.Env }
	script := "git -C " + repo + " add file && git -C " + repo + " -c user.name=x -c user.email=x@example.org commit -q -m one"
	r := start(t, []string{"/bin/sh", "-c", script}, in(ws), env, gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s%s", status, r.out.String(), r.dump())
	}
	if out, err := git("fsck", "--strict").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := git("log", "--format=%s").Output(); err != nil || string(out) != "one\n" {
		t.Errorf("%v: %q", err, out)
	}
	carried := 0
	for _, e := range r.sink.events {
		if e.Detail["by"] == "holdfast" {
			carried++
		} else if e.Verdict == event.Denied && e.Action != event.FileLink && e.Error != "EBUSY" {
			t.Errorf("%+v", e)
		}
	}
	ops := []string{}
	for _, a := range h.seen {
		if !slices.Contains(ops, a.Operation) {
			ops = append(ops, a.Operation)
		}
	}
	t.Logf("%d changes carried out: %v", carried, ops)
	if carried < 10 {
		t.Errorf("%d changes were carried out", carried)
	}
}

// TestRootLeavesNothingOfRootsOwn has root carry out changes for the user of a task, in
// another user's directory and in one of root's own.
func TestRootLeavesNothingOfRootsOwn(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	ws, out := grounds(t)
	const other = 4321
	if err := errors.Join(os.Chown(out+"/sub", other, other), os.Chown(out+"/full", other, other), os.WriteFile(out+"/sub/roots", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h := &human{ask: below(out), answer: yes}
	_, got := makeCalls(t, ws, []aCall{
		{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/sub/new", unix.O_WRONLY | unix.O_CREAT, 0o644}},
		{NR: unix.SYS_MKDIRAT, Args: []any{cwd, out + "/sub/made", 0o755}},
		{NR: unix.SYS_OPENAT, Args: []any{cwd, out + "/sub/roots", unix.O_WRONLY, 0}},
		{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, out + "/sub/new", cwd, out + "/moved", 0}},
		{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, out + "/full/one", cwd, out + "/sub/one", 0}},
		{NR: unix.SYS_FCHMODAT, Args: []any{cwd, out + "/sub/roots", 0o644}},
	}, gate(h, event.KindFile), outsideOf(ws, out+"/hidden"), carry())
	if want := []string{"-", "-", "EACCES", "EACCES", "-", "EPERM"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, name := range []string{"/sub/new", "/sub/made"} {
		var st unix.Stat_t
		if err := unix.Lstat(out+name, &st); err != nil || st.Uid != other || st.Gid != other {
			t.Errorf("%s: owner %d:%d, %v", name, st.Uid, st.Gid, err)
		}
	}
}
