//go:build linux

package supervise

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// rounds of calls, each in a place of its own: they change it.
const rounds = 12

// randomNames are the names that random calls use: those that oddPlace has, that a view
// has, and that neither has. Nothing may lead further up than the test's own directory:
// as root, the calls take effect.
//
// NEVER put "/" or another real directory of the machine in here: as root the calls
// change it.
var randomNames = strings.Fields(`file secret sealed/file sealed blind/file blind sub sub/deep link lost absent sticky/theirs x sub/y way/deep round
	sub/../file file/x readonly writeonly blind/absent sealed/absent . .. sub/. sub/.. sub/ file/ link/ way/ lost/ absent/ empty empty/z way/z sub/x
	sub/inner sub/inner/x ` + strings.Repeat("n", 256))

var viewNames = strings.Fields(`ws/file ws/sub ws/sub/x ws/new ws/prot ws/hooks ws/hooks/pre ws/hooks/new ws/secret ws/vault ws/vault/key ws/link ws/out ws/toro
	ws/toro/file ws/. ws ro/file ro/dir ro/new ro/mine ro private/file private/new private out/file out new ws/sub/. ro/dir/x ws/hooks/ ws/shut ws/prot/`)

// randomCall is a call on names at random, of those that come back at once.
func randomCall(rnd *rand.Rand, names []string) aCall {
	pick := func() string { return names[rnd.IntN(len(names))] }
	one := func(of ...int) int { return of[rnd.IntN(len(of))] }
	// No pipe is opened to wait for its other end.
	const now = unix.O_NONBLOCK | unix.O_CLOEXEC
	switch rnd.IntN(15) {
	default:
		flags := one(unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR) |
			one(0, 0, unix.O_CREAT, unix.O_CREAT|unix.O_EXCL, unix.O_TRUNC, unix.O_DIRECTORY, unix.O_NOFOLLOW, unix.O_PATH, unix.O_TMPFILE, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
		return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, pick(), flags | now, 0o600}}
	case 0:
		return aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, pick(), one(0, unix.AT_REMOVEDIR)}}
	case 1:
		return aCall{NR: unix.SYS_FCHMODAT, Args: []any{cwd, pick(), one(0o700, 0o755, 0o555)}}
	case 2:
		return aCall{NR: unix.SYS_TRUNCATE, Args: []any{pick(), one(0, 0, 0, -1)}}
	case 3:
		return aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, pick(), 0o755}}
	case 4:
		return aCall{NR: unix.SYS_MKNODAT, Args: []any{cwd, pick(), one(unix.S_IFREG, unix.S_IFSOCK, unix.S_IFDIR, unix.S_IFLNK) | 0o600, 0}}
	case 5:
		return aCall{NR: unix.SYS_SYMLINKAT, Args: []any{pick(), cwd, pick()}}
	case 6:
		return aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, pick(), cwd, pick(), one(0, unix.AT_SYMLINK_FOLLOW, unix.AT_SYMLINK_NOFOLLOW)}}
	case 7, 8:
		return aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, pick(), cwd, pick(), one(0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE, unix.RENAME_EXCHANGE|unix.RENAME_NOREPLACE)}}
	case 9:
		id := one(-1, os.Getuid(), 0, 12345)
		return aCall{NR: unix.SYS_FCHOWNAT, Args: []any{cwd, pick(), id, one(-1, id), one(0, unix.AT_SYMLINK_NOFOLLOW)}}
	case 10:
		name := []string{"user.a", "user.b", "trusted.a", "security.a", "nonsense", ""}[rnd.IntN(6)]
		if rnd.IntN(3) == 0 {
			return aCall{NR: unix.SYS_REMOVEXATTR, Args: []any{pick(), name}}
		}
		return aCall{NR: unix.SYS_LSETXATTR, Args: []any{pick(), name, []byte("x"), 1, one(0, unix.XATTR_CREATE, unix.XATTR_REPLACE)}}
	}
}

// TestForeseenIsWhatComes makes calls at random in a place with odd permissions, and
// compares what was foreseen with what came.
func TestForeseenIsWhatComes(t *testing.T) {
	for _, who := range []string{"user", "self"} {
		t.Run(who, func(t *testing.T) {
			options := []option{level(Full)}
			if who == "user" {
				testenv.Need(t, testenv.Unprivileged, nil)
				options = append(options, asUser(t))
			}
			rnd := rand.New(rand.NewPCG(4, 2))
			for range rounds {
				compare(t, rnd, oddPlace(t), randomNames, options...)
			}
		})
	}
}

// TestForeseenIsWhatComesInAView does the same in a view with real mounts: what is for
// reading alone, protected, hidden, private and nowhere at all.
func TestForeseenIsWhatComesInAView(t *testing.T) {
	testenv.Need(t, testenv.Unprivileged, nil)
	testenv.Need(t, testenv.UserNS, nil)
	rnd := rand.New(rand.NewPCG(4, 2))
	for range rounds {
		compareInView(t, rnd)
	}
}

func compareInView(t *testing.T, rnd *rand.Rand) {
	view, options := makeView(t)
	compare(t, rnd, view, viewNames, options...)
}

// makeView makes what a view is mounted from, and says where it will be and how it is
// watched.
func makeView(t *testing.T) (view string, options []option) {
	t.Helper()
	dir := makeTree(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"view", "src/ws/sub", "src/ws/hooks", "src/ws/vault", "src/ws/shut", "src/ro/dir", "src/private", "src/emptydir"} {
		must(os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, f := range []string{"ws/file", "ws/prot", "ws/hooks/pre", "ws/secret", "ws/vault/key", "ws/sub/x", "ro/file", "ro/mine", "ro/dir/x", "private/file", "empty"} {
		must(os.WriteFile(filepath.Join(dir, "src", f), nil, 0o644))
	}
	for link, to := range map[string]string{"link": "file", "out": "../out/file", "toro": "../ro"} {
		must(os.Symlink(to, filepath.Join(dir, "src/ws", link)))
	}
	own(t, dir)
	must(os.Chmod(dir+"/src/empty", 0))
	must(os.Chmod(dir+"/src/ro/file", 0o444))
	must(os.Chmod(dir+"/src/emptydir", 0o555))
	must(os.Chmod(dir+"/src/ws/shut", 0))
	t.Cleanup(func() { unlock(dir) })
	view = dir + "/view"
	mounts := "tmpfs " + view
	for _, m := range []string{"rw ws ws", "ro ro ro", "rw private private", "ro ws/prot ws/prot", "ro ws/hooks ws/hooks", "ro empty ws/secret", "ro emptydir ws/vault"} {
		f := strings.Fields(m)
		mounts += fmt.Sprintf("\n%s %s/src/%s %s/%s", f[0], dir, f[1], view, f[2])
	}
	in := []policy.Tree{{Path: "/usr", Access: policy.Read}, {Path: "/lib", Access: policy.Read}, {Path: "/dev", Access: policy.Read}, {Path: filepath.Dir(real(t, "/proc/self/exe")), Access: policy.Read}, {Path: "/proc", Access: policy.Write},
		{Path: "/sys", Access: policy.Read}, {Path: "/etc", Access: policy.Read}, {Path: view + "/ws", Access: policy.Write}, {Path: view + "/ro", Access: policy.Read}, {Path: view + "/private", Access: policy.Copy},
		{Path: view + "/ws/prot", Access: policy.ProtectedRead}, {Path: view + "/ws/hooks", Access: policy.ProtectedRead}, {Path: view + "/ws/secret", Rule: "hide"}, {Path: view + "/ws/vault", Rule: "hide"},
		{Path: view + "/ws/ghost", Rule: "hide"}}
	return view, []option{level(Full), trees(in...), inView(t, mounts+"\nseal "+view)}
}

// TestHidden: what is hidden is refused by the layer that hides it, with the error of the
// kernel, as long as nothing was made in its place.
func TestHidden(t *testing.T) {
	testenv.Need(t, testenv.Unprivileged, nil)
	testenv.Need(t, testenv.UserNS, nil)
	view, options := makeView(t)
	open := func(path string, flags int) aCall {
		return aCall{NR: unix.SYS_OPENAT, Args: []any{cwd, path, flags, 0o600}}
	}
	rows := []struct {
		call  aCall
		layer string
		errno string
	}{
		{open("ws/secret", unix.O_RDONLY), event.LayerHidden, "EACCES"},
		{open("ws/secret", unix.O_WRONLY|unix.O_TRUNC), event.LayerHidden, "EROFS"},
		{open("ws/vault", unix.O_RDONLY|unix.O_DIRECTORY), event.LayerHidden, ""}, // an empty one
		{open("ws/vault/key", unix.O_RDONLY), event.LayerHidden, "ENOENT"},
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws/file", cwd, "ws/secret", 0}}, event.LayerHidden, "EBUSY"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "ws/secret", 0}}, event.LayerHidden, "EBUSY"},
		{aCall{NR: unix.SYS_LINKAT, Args: []any{cwd, "ws/secret", cwd, "ws/mine", 0}}, event.LayerHidden, "EXDEV"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "ws", unix.AT_REMOVEDIR}}, event.LayerView, "EROFS"}, // by what leads to it
		{aCall{NR: unix.SYS_RENAMEAT2, Args: []any{cwd, "ws", cwd, "private", 0}}, event.LayerView, "EROFS"},
		{aCall{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "ws/hooks", unix.AT_REMOVEDIR}}, event.LayerProtected, "EBUSY"},
		{open("ws/ghost/key", unix.O_RDONLY), event.LayerHidden, "ENOENT"},
		{aCall{NR: unix.SYS_MKDIRAT, Args: []any{cwd, "ws/ghost", 0o700}}, "", ""},
		{open("ws/ghost/key", unix.O_WRONLY|unix.O_CREAT), "", ""},
		{open("ws/ghost/key", unix.O_RDONLY), "", ""},
	}
	var calls []aCall
	for _, r := range rows {
		calls = append(calls, r.call)
	}
	r, got := makeCalls(t, view, calls, options...)
	events := r.sink.events[len(r.sink.events)-len(calls)-1:] // the last is the end of the process
	for i, row := range rows {
		e := events[i]
		if e.Layer != row.layer || e.Error != row.errno || strings.TrimPrefix(got[i], "-") != row.errno || (e.Verdict == event.Denied) != (row.layer != "") {
			t.Errorf("%d %v: %v by %q, %q, came to %s; want %q %q", i, row.call.Args, e.Verdict, e.Layer, e.Error, got[i], row.layer, row.errno)
		}
	}
}

// compare makes calls at random in dir and holds what was foreseen against what came.
func compare(t *testing.T, rnd *rand.Rand, dir string, names []string, options ...option) {
	t.Helper()
	calls := []aCall{{NR: unix.SYS_UNLINKAT, Args: []any{cwd, "begin", 0}}}
	for range 250 {
		calls = append(calls, randomCall(rnd, names))
	}
	r, got := makeCalls(t, dir, calls, options...)
	unlock(filepath.Dir(dir))
	events := r.sink.events
	for len(events) > 0 && events[0].Object != "begin" {
		events = events[1:]
	}
	if len(events) < len(calls) {
		t.Fatalf("%d events of %d calls", len(events), len(calls))
	}
	for i, e := range events[:len(calls)] {
		want := strings.TrimPrefix(got[i], "-")
		// What would fail anywhere is not a denial: for these only the error counts.
		refused := want == "EACCES" || want == "EROFS" && e.Action != event.FileUnlink && e.Action != event.FileRename
		if e.Error != want || refused && e.Verdict != event.Denied || want == "" && e.Verdict != event.Allowed && e.Layer != event.LayerHidden {
			t.Errorf("%d: %s %.40q %v -> %.40q: foreseen %v %s %q, came to %s", i, e.Action, e.Object, calls[i].Args, strings.TrimPrefix(e.Resolved, dir), e.Verdict, e.Layer, e.Error, got[i])
		}
	}
}

// inView has the launcher mount what a view is made of, as an ordinary user.
func inView(t *testing.T, mounts string) option {
	return func(_ *run, c *Config, cmd *exec.Cmd) {
		uid, gid := os.Getuid(), os.Getgid()
		attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if uid == 0 {
			as := exec.Command("true")
			testenv.AsUser(t, as)
			uid, gid = int(as.SysProcAttr.Credential.Uid), int(as.SysProcAttr.Credential.Gid)
		} else {
			attr.Cloneflags |= unix.CLONE_NEWUSER
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
			attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
		}
		cmd.SysProcAttr = attr
		c.View.UID, c.View.GID = uid, gid
		cmd.Env = append(cmd.Env, mountsVar+"="+fmt.Sprintf("%s\nbecome %d %d", mounts, uid, gid))
	}
}

// oddPlace is a place with things that its user may not do.
func oddPlace(t *testing.T) string {
	dir := makeTree(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"sealed", "blind", "sticky"} {
		must(os.Mkdir(filepath.Join(dir, d), 0o777))
	}
	for _, f := range []string{"secret", "sealed/file", "blind/file", "sticky/theirs", "readonly", "writeonly"} {
		must(os.WriteFile(filepath.Join(dir, f), nil, 0o644))
	}
	own(t, dir)
	for name, mode := range map[string]os.FileMode{"secret": 0, "sealed": 0o500, "blind": 0o600, "readonly": 0o444, "writeonly": 0o200, "sticky": 0o1777} {
		must(unix.Chmod(filepath.Join(dir, name), uint32(mode)))
	}
	t.Cleanup(func() { unlock(dir) })
	return dir
}

// unlock lets all directories below dir be removed.
func unlock(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
}

// own gives all below dir to the user of asUser, except what is called theirs, and lets
// others pass through the directories above.
func own(t *testing.T, dir string) {
	t.Helper()
	for p := dir; p != "/tmp" && p != "/"; p = filepath.Dir(p) {
		if os.Chmod(p, 0o755) != nil {
			break
		}
	}
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		if err == nil && filepath.Base(path) != "theirs" {
			testenv.Own(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
