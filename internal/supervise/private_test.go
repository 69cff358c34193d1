//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

func open(path string, flags int) aCall {
	return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, flags, 0o644}}
}

// TestPrivateChangesSaySo has changes in a private tree that happen, and others
// that do not or are elsewhere.
func TestPrivateChangesSaySo(t *testing.T) {
	dir := makeTree(t)
	if err := os.WriteFile(dir+"/old", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const create = unix.O_WRONLY | unix.O_CREAT
	r, _ := makeCalls(t, dir, []aCall{
		open("new", create),
		open("old", unix.O_RDONLY),
		open("none", unix.O_WRONLY),
		{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "made", 0o755}},
		{NR: unix.SYS_SYMLINKAT, Args: []any{"old", cwd, "link2"}},
		{NR: unix.SYS_LINKAT, Args: []any{cwd, "old", cwd, "name2", 0}},
		{NR: unix.SYS_FCHMODAT, Args: []any{cwd, "old", 0o600}},
		{NR: unix.SYS_TRUNCATE, Args: []any{dir + "/old", 1}},
		{NR: unix.SYS_MKNODAT, Args: []any{cwd, "pipe", unix.S_IFIFO | 0o600, 0}},
		{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "name2", cwd, "made/name2", 0}},
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "link2", 0}},
		open("/dev/null", unix.O_WRONLY),
	}, level(Full), trees(policy.Tree{Path: "/", Access: policy.Read}, policy.Tree{Path: "/dev", Access: policy.Device}, policy.Tree{Path: dir, Access: policy.Copy}))
	for _, tt := range []struct {
		action, object, want string
	}{
		{event.FileWrite, "new", event.KeptPrivate}, {event.FileOpen, "old", ""}, {event.FileWrite, "none", ""}, {event.FileMkdir, "made", event.KeptPrivate},
		{event.FileSymlink, "link2", event.KeptPrivate}, {event.FileLink, "name2", event.KeptPrivate}, {event.FileChmod, "old", event.KeptPrivate},
		{event.FileTruncate, dir + "/old", event.KeptPrivate}, {event.FileMknod, "pipe", event.KeptPrivate}, {event.FileRename, "name2", event.KeptPrivate},
		{event.FileUnlink, "link2", event.KeptPrivate}, {event.FileWrite, "/dev/null", ""},
	} {
		if e := r.about(tt.action, tt.object); e.Verdict != event.Allowed || e.Detail[event.DetailKept] != tt.want {
			t.Errorf("%s %s: %v %q, want %q", tt.action, tt.object, e.Verdict, e.Detail[event.DetailKept], tt.want)
		}
	}
}

// privateHome is a view in which home is private; personal reports what of it is asked
// about. Inside and outside are the same here: what the private tree lacks is what is
// missing.
func privateHome(home string, personal func(string) bool) option {
	return func(r *run, c *Config, cmd *exec.Cmd) {
		trees(policy.Tree{Path: "/", Access: policy.Read}, policy.Tree{Path: "/dev", Access: policy.Device}, policy.Tree{Path: home, Access: policy.Copy})(r, c, cmd)
		c.Asked = personal
	}
}

func TestPrivateChangesAreAsked(t *testing.T) {
	home := makeTree(t)
	if err := os.WriteFile(home+"/has", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const create = unix.O_WRONLY | unix.O_CREAT
	calls := []aCall{
		open("new", create),
		{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "made", 0o755}},
		open("has", create|unix.O_TRUNC), // the private tree's own
		{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "made", 0o755}},
		open("nowhere/x", create),
		{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "none", 0}},
		{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "has", cwd, "moved", 0}},
		open(".state", create), // nothing that a user looks for
	}
	personal := func(path string) bool { return !strings.HasPrefix(path, home+"/.") }
	for _, tt := range []struct {
		answer func(event.Attempt) event.Ruling
		want   []string
		kept   string // of what was asked about
	}{
		{yes, []string{"-", "-", "-", "EEXIST", "ENOENT", "ENOENT", "-", "-"}, ""},
		{no, []string{"EACCES", "EACCES", "-", "EACCES", "ENOENT", "ENOENT", "-", "-"}, ""},
	} {
		for _, name := range []string{"new", "made", "moved", ".state"} {
			os.Remove(home + "/" + name)
		}
		if err := os.WriteFile(home+"/has", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		h := &human{ask: below(home), answer: tt.answer}
		r, got := makeCalls(t, home, calls, gate(h, event.KindFile), privateHome(home, personal), carry())
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v: %s", got, tt.want, r.dump())
		}
		for _, a := range h.requests() {
			if a.Path != home+"/new" && a.Path != home+"/made" {
				t.Errorf("asked for %s %s", a.Operation, a.Path)
			}
		}
		if e := r.about(event.FileWrite, "new"); e.Detail[event.DetailKept] != "" || (e.Verdict == event.Denied) != (got[0] == "EACCES") {
			t.Errorf("what was asked about: %+v", e)
		}
		if e := r.about(event.FileWrite, ".state"); e.Detail[event.DetailKept] != event.KeptPrivate {
			t.Errorf("what was not: %+v", e)
		}
	}
}

// TestPrivateWithoutAnAnswerGoesOn has a rule that lets a change go on without
// asking: then it is the private tree's.
func TestPrivateWithoutAnAnswerGoesOn(t *testing.T) {
	home := makeTree(t)
	h := &human{}
	r, got := makeCalls(t, home, []aCall{open("new", unix.O_WRONLY|unix.O_CREAT)}, gate(h, event.KindFile), privateHome(home, func(string) bool { return true }), carry())
	if e := r.about(event.FileWrite, "new"); got[0] != "-" || e.Detail[event.DetailKept] != event.KeptPrivate || e.Detail["by"] != "" {
		t.Errorf("%v: %+v", got, e)
	}
}

// TestNothingIsMadeWhereTheDirectoryIsMissing: the host has the directory, but the
// private tree does not, so that the view refuses what would be made there.
func TestNothingIsMadeWhereTheDirectoryIsMissing(t *testing.T) {
	dir := makeTree(t)
	if err := os.Mkdir(dir+"/host", 0o755); err != nil {
		t.Fatal(err)
	}
	s := &Supervisor{config: Config{HiddenByView: func(path string) bool { return path == dir+"/host" || path == dir+"/none" }}}
	at := func(path string, errno unix.Errno) *location {
		return &location{asked: []byte(path), place: path, tree: &policy.Tree{Path: dir, Access: policy.Copy}, errno: errno}
	}
	for _, tt := range []struct {
		at   *location
		want bool
	}{
		{at(dir+"/host/x", unix.ENOENT), true}, {at(dir+"/none/x", unix.ENOENT), false}, {at(dir+"/other/x", unix.ENOENT), false},
	} {
		if got := s.hiddenByView(tt.at, wantWrite); got != tt.want {
			t.Errorf("%s, %v: %v", tt.at.place, tt.at.errno, got)
		}
	}
}
