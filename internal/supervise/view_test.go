//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestPlaces(t *testing.T) {
	p := newPlaces(View{Trees: []policy.Tree{{Path: "/usr", Access: policy.Read}, {Path: "/home/u/ws", Access: policy.Write},
		{Path: "/home/u/ws/.git/config", Access: policy.ProtectedRead}, {Path: "/home/u/ws/vendor/", Access: policy.Read, Rule: "f:1"}}})
	for path, want := range map[string]string{
		"/usr": "/usr", "/usr/bin/sh": "/usr", "/usrx": "", "/": "", "/home": "", "/home/u/ws/a/b": "/home/u/ws",
		"/home/u/ws/.git/config": "/home/u/ws/.git/config", "/home/u/ws/.git/configs": "/home/u/ws", "/home/u/ws/vendor/x": "/home/u/ws/vendor",
	} {
		got := ""
		if tree := p.treeFor(path); tree != nil {
			got = tree.Path
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]bool{"/": true, "/home": true, "/home/u": true, "/home/u/ws": true, "/usr": false, "/etc": false} {
		if p.above[path] != want {
			t.Errorf("above %s: %v", path, !want)
		}
	}
}

// TestDenials has a view that the launcher of tests does not make: what is
// foreseen is compared, not what the kernel says.
func TestDenials(t *testing.T) {
	dir := makeTree(t)
	for _, d := range []string{"ws", "ws/.git", "ws/.git/hooks", "ro", "out"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"ws/.git/config", "ro/file", "ro/kept", "out/file", "ws/file", "ws/.mcp.json", "ws/a", "ws/b", "ws/d", "ws/e"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ws/escape": "../out/file", "ws/toro": dir + "/ro", "ws/null": "/dev/null", "ws/away": dir + "/not-in-view"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	open := func(path string, flags int) aCall {
		return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, flags, 0o644}}
	}
	const create = unix.O_WRONLY | unix.O_CREAT
	tests := []struct {
		call               aCall
		action             string
		layer, rule, errno string
	}{
		{open("ws/file", unix.O_RDWR), event.FileWrite, "", "", ""},
		{open("ws/new", create), event.FileWrite, "", "", ""},
		{open("ro/file", unix.O_RDONLY), event.FileOpen, "", "", ""},
		{open("ro/file", unix.O_RDWR), event.FileWrite, "readonly", "policy:3", "EROFS"},
		{open("ro/none", unix.O_WRONLY), event.FileWrite, "", "", "ENOENT"},
		{open("ro/none", create), event.FileWrite, "readonly", "policy:3", "EROFS"},
		{open("ws/toro/none", create), event.FileWrite, "readonly", "policy:3", "EROFS"},
		{open("ws/.git/config", unix.O_WRONLY), event.FileWrite, "protected", "policy:4", "EROFS"},
		{open("ws/.git/config", unix.O_RDONLY), event.FileOpen, "", "", ""},
		{open("out/file", unix.O_RDONLY), event.FileOpen, "view", "", "ENOENT"},
		{open("ws/escape", unix.O_RDONLY), event.FileOpen, "view", "", "ENOENT"},
		{open("ws/../out/file", create), event.FileWrite, "view", "", "ENOENT"},
		{open("out/absent/../deep", unix.O_RDONLY), event.FileOpen, "view", "", "ENOENT"},
		{open("ws/absent/file", unix.O_RDONLY), event.FileOpen, "", "", "ENOENT"},
		{open(".", unix.O_RDONLY|unix.O_DIRECTORY), event.FileOpen, "", "", ""},
		{open("/dev/null", unix.O_RDWR), event.FileWrite, "", "", ""},
		{open("ws/null", unix.O_WRONLY), event.FileWrite, "", "", ""},
		{aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "top", 0o755}}, event.FileMkdir, "view", "", "EROFS"},
		{aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "ro/file", 0o755}}, event.FileMkdir, "", "", "EEXIST"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "ro/file", 0}}, event.FileUnlink, "readonly", "policy:3", "EROFS"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/file", cwd, "ro/file", 0}}, event.FileRename, "readonly", "policy:3", "EXDEV"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/.git/config", cwd, "ws/file", 0}}, event.FileRename, "protected", "policy:4", "EXDEV"},
		{aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "ro/kept", cwd, "ws/mine", 0}}, event.FileLink, "readonly", "policy:3", "EXDEV"},
		{aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "ws/.mcp.json", cwd, "ws/mine-2", 0}}, event.FileLink, "protected", "policy:6", "EXDEV"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/a", cwd, "ws/.mcp.json", 0}}, event.FileRename, "protected", "policy:6", "EBUSY"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/b", cwd, "ws/.git/hooks", unix.RENAME_EXCHANGE}}, event.FileRename, "protected", "policy:7", "EXDEV"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/d", cwd, "ws/e", 0}}, event.FileRename, "", "", ""},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/e", cwd, "ws/.git/e", 0}}, event.FileRename, "", "", "EXDEV"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "ws/.mcp.json", 0}}, event.FileUnlink, "protected", "policy:6", "EBUSY"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/.git", cwd, "ws/moved", 0}}, event.FileRename, "protected", "", "EBUSY"},
		{open("ws/away/deep/file", unix.O_WRONLY), event.FileWrite, "view", "", "ENOENT"},
		{open("ws/away/../file", create), event.FileWrite, "view", "", "ENOENT"},
		{aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "out/file", cwd, "ws/mine", 0}}, event.FileLink, "view", "", "ENOENT"},
		{aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "ro/file", 0o777}}, event.FileChmod, "readonly", "policy:3", "EROFS"},
		{aCall{NR: unix.SYS_EXECVE, Args: []any{"out/file", 0, 0}}, event.ProcExec, "view", "", "ENOENT"},
		{aCall{NR: unix.SYS_UNSHARE, Args: []any{unix.CLONE_NEWUSER}}, event.SysCall, "filter", "", "EPERM"},
	}
	var calls []aCall
	for _, tt := range tests {
		calls = append(calls, tt.call)
	}
	exe := real(t, "/proc/self/exe")
	r, _ := makeCalls(t, dir, calls, level(Full), trees(
		policy.Tree{Path: "/usr", Access: policy.Read}, policy.Tree{Path: "/dev", Access: policy.Read}, policy.Tree{Path: filepath.Dir(exe), Access: policy.Read},
		policy.Tree{Path: "/proc", Access: policy.Write}, policy.Tree{Path: "/sys", Access: policy.Read}, policy.Tree{Path: "/etc", Access: policy.Read},
		policy.Tree{Path: dir + "/ws", Access: policy.Write}, policy.Tree{Path: dir + "/ro", Access: policy.Read, Rule: "policy:3"},
		policy.Tree{Path: dir + "/ws/.git/config", Access: policy.ProtectedRead, Rule: "policy:4"},
		policy.Tree{Path: dir + "/ws/.mcp.json", Access: policy.ProtectedRead, Rule: "policy:6"}, policy.Tree{Path: dir + "/ws/.git", Access: policy.Write},
		policy.Tree{Path: dir + "/ws/.git/hooks", Access: policy.ProtectedRead, Rule: "policy:7"}))
	events := r.sink.events
	for events[0].Object != "ws/file" {
		events = events[1:]
	}
	for i, tt := range tests {
		e := events[i]
		verdict := event.Allowed
		if tt.layer != "" {
			verdict = event.Denied
		}
		if e.Action != tt.action || e.Verdict != verdict || e.Layer != tt.layer || e.Rule != tt.rule || e.Error != tt.errno {
			t.Errorf("%d %v: %s %q %v layer %q rule %q error %q, want %s layer %q rule %q error %q", i, tt.call.Args, e.Action, e.Object, e.Verdict,
				e.Layer, e.Rule, e.Error, tt.action, tt.layer, tt.rule, tt.errno)
		}
	}
	if n := len(r.eventsOf(event.SysCall)); r.denied() == 0 || n != 1 {
		t.Errorf("%d calls: %s", n, r.dump())
	}
}

func asUser(t *testing.T) option {
	return func(r *run, _ *Config, cmd *exec.Cmd) {
		env := cmd.Env
		testenv.AsUser(t, cmd)
		cmd.Env = env
	}
}

// TestPlacedByTheView: the decision of the view alone, before owner and mode.
func TestPlacedByTheView(t *testing.T) {
	write, read, protected := &policy.Tree{Access: policy.Write, Rule: "w"}, &policy.Tree{Access: policy.Read, Rule: "r"}, &policy.Tree{Access: policy.ProtectedRead, Rule: "p"}
	open, fixed, shut := &directory{tree: write}, &directory{tree: write, fixed: true}, &directory{tree: protected}
	no := func(layer, rule, errno string) string { return layer + " " + rule + " " + errno }
	erofs := no(event.LayerReadonly, "w", "EROFS")
	for _, tt := range []struct {
		name    string
		at      location
		w       want
		creates bool
		want    string // "" where owner and mode bits decide
	}{
		{"a file is read", location{dir: open, tree: write, exists: true}, wantRead, false, ""},
		{"a file is written", location{dir: open, tree: write, exists: true}, wantWrite, false, ""},
		{"a file is made", location{dir: open, tree: write}, wantWrite, true, ""},
		{"a name is made that is there", location{dir: open, tree: write, exists: true}, wantCreate, false, no("", "", "EEXIST")},
		{"a name is made that is there, for reading alone", location{dir: open, tree: read, exists: true}, wantCreate, false, no("", "", "EEXIST")},
		{"a name is made that is there, protected", location{dir: open, tree: protected, exists: true}, wantCreate, false, no("", "", "EEXIST")},
		{"a descriptor", location{magic: true}, wantWrite, false, ""},
		{"behind a directory that is shut", location{errno: unix.EACCES}, wantRead, false, no(event.LayerPermissions, "", "EACCES")},
		{"nothing is there", location{dir: open, tree: write, errno: unix.ENOENT}, wantRead, false, no("", "", "ENOENT")},
		{"for reading alone, read", location{dir: open, tree: read, exists: true}, wantRead, false, ""},
		{"for reading alone, written", location{dir: open, tree: read, exists: true}, wantWrite, false, no(event.LayerReadonly, "r", "EROFS")},
		{"for reading alone, written or made", location{dir: open, tree: read, exists: true}, wantWrite, true, no(event.LayerReadonly, "r", "EROFS")},
		{"protected, removed", location{dir: shut, tree: protected, exists: true}, wantRemove, false, no(event.LayerProtected, "p", "EROFS")},
		{"mounted for reading alone, read", location{dir: fixed, tree: write, exists: true}, wantRead, false, ""},
		{"mounted for reading alone, written", location{dir: fixed, tree: write, exists: true}, wantWrite, false, erofs},
		{"mounted for reading alone, opened to be made", location{dir: fixed, tree: write}, wantWrite, true, erofs},
		{"mounted for reading alone, made", location{dir: fixed, tree: write}, wantCreate, false, erofs},
		{"mounted for reading alone, removed", location{dir: fixed, tree: write, exists: true}, wantRemove, false, erofs},
		{"mounted for reading alone, removed where nothing is", location{dir: fixed, tree: write}, wantRemove, false, no("", "", "EROFS")},
		{"a pipe there, written", location{dir: fixed, tree: write, exists: true, stat: unix.Stat_t{Mode: unix.S_IFIFO}}, wantWrite, false, ""},
		{"another tree there, written", location{dir: fixed, tree: &policy.Tree{Access: policy.Write}, exists: true, stat: unix.Stat_t{Mode: unix.S_IFREG}}, wantWrite, false, ""},
	} {
		tt.at.name, tt.at.asked = []byte("name"), []byte("name")
		if tt.at.exists && tt.at.stat.Mode == 0 {
			tt.at.stat.Mode = unix.S_IFREG
		}
		o, decided := (&Supervisor{}).judgeMount(&call{info: &callInfo{shape: shapePath}, notification: &notification{}}, &tt.at, tt.w, tt.creates)
		got := ""
		if decided {
			got = no(string(o.layer), o.rule, o.errno)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
