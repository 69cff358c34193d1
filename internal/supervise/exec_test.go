//go:build linux

package supervise

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func sumOf(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func real(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExecutions(t *testing.T) {
	dir := makeTree(t)
	r := start(t, []string{"/bin/sh", "-c", "/bin/true one 'two words'; (cd sub && ../prog); /absent/prog; (exit 7); kill -TERM $$"}, in(dir))
	if err := programs.Write(dir+"/prog", []byte("#! /bin/sh -e\nexec /bin/false\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if status := r.wait(); status != 128+15 {
		t.Errorf("status %d", status)
	}
	sh := r.about(event.ProcExec, "/bin/sh")
	if sh.Process.Executable != real(t, "/bin/sh") || sh.Process.SHA256 != sumOf(t, "/bin/sh") || sh.Process.Cwd != dir || len(sh.Process.Argv) != 3 {
		t.Errorf("the shell: %+v", sh)
	}
	yes := r.about(event.ProcExec, "/bin/true")
	if !slices.Equal(yes.Process.Argv, []string{"/bin/true", "one", "two words"}) || yes.Process.Parent != sh.Process.PID || yes.Process.ParentExec != sh.Process.Exec {
		t.Errorf("a child: %+v", yes)
	}
	script := r.about(event.ProcExec, "../prog")
	if script.Resolved != dir+"/prog" || script.Process.Executable != real(t, "/bin/sh") || script.Process.Cwd != dir+"/sub" ||
		script.Detail["script_sha256"] != sumOf(t, dir+"/prog") || script.Detail["interpreter"] != "/bin/sh -e" || script.Process.SHA256 != sumOf(t, "/bin/sh") {
		t.Errorf("a script: %+v", script)
	}
	no := r.about(event.ProcExec, "/bin/false")
	if no.Process.PID != script.Process.PID || no.Detail["replaces"] != strconv.FormatUint(script.Process.Exec, 10) {
		t.Errorf("what replaced the script: %+v", no)
	}
	ends := map[uint64]string{}
	for _, e := range r.eventsOf(event.ProcExit) {
		ends[e.Process.Exec] = e.Detail["status"] + e.Detail["signal"]
	}
	if linux6(15) && (ends[sh.Process.Exec] == "" || ends[yes.Process.Exec] != "0" || ends[no.Process.Exec] != "1") {
		t.Errorf("how they ended: %v; %s", ends, r.dump())
	}
	end := r.last(event.ProcExit)
	if linux6(15) && (end.Detail["status"] != "143" || end.Detail["signal"] != "SIGTERM" || end.Process.PID != sh.Process.PID) {
		t.Errorf("the last end: %+v", end)
	}
}

func TestExecutionsThatFail(t *testing.T) {
	dir := makeTree(t)
	for name, text := range map[string]string{"plain": "no program", "loop": "#!./loop\n", "astray": "#!/no/such/interpreter\n"} {
		if err := programs.Write(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	execve := func(path any, argv any) aCall { return aCall{NR: unix.SYS_EXECVE, Args: []any{path, argv, 0}} }
	r, got := makeCalls(t, dir, []aCall{
		execve("absent", 0), execve("file", 0), execve("sub", 0), execve("plain", 0), execve("loop", 0), execve("astray", 0),
		execve(0, 0), execve("plain", 8), execve("", 0),
		{NR: unix.SYS_OPENAT, Args: []any{cwd, "after", unix.O_CREAT | unix.O_WRONLY, 0o600}},
	})
	for i, e := range r.eventsOf(event.ProcExec)[1:] {
		want := []string{"ENOENT", "EACCES", "EACCES", "", "ELOOP", "ENOENT", "EFAULT", "", "ENOENT"}[i]
		if e.Error != want {
			t.Errorf("%q: foreseen %q, want %q; it came to %s", e.Object, e.Error, want, got[i])
		}
		if e.Error != "" && e.Error != got[i] {
			t.Errorf("%q: foreseen %q, came to %q", e.Object, e.Error, got[i])
		}
	}
	first := r.eventsOf(event.ProcExec)[0]
	if e := r.about(event.FileWrite, "after"); e.Process.Exec != first.Process.Exec {
		t.Errorf("after them the process runs %d, want %d: %s", e.Process.Exec, first.Process.Exec, r.dump())
	}
	if e := r.eventsOf(event.ProcExec)[8]; !strings.Contains(e.Detail["unknown"], "argv") {
		t.Errorf("unreadable arguments: %+v", e)
	}
}

func TestScriptsOfScripts(t *testing.T) {
	dir := makeTree(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := programs.Write(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	inner := write("inner", "#!/bin/sh\nshift; exit 5\n")
	outer := write("outer", "#!"+inner+" x\n")
	r := start(t, []string{outer}, in(dir))
	if status := r.wait(); status != 5 {
		t.Errorf("status %d: %s", status, r.out.String())
	}
	e := r.about(event.ProcExec, outer)
	if e.Detail["interpreter"] != inner+" x <- /bin/sh" || e.Process.Executable != real(t, "/bin/sh") || e.Detail["script"] != outer {
		t.Errorf("%+v", e)
	}
}

func TestManyArguments(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	for _, tt := range []struct {
		name        string
		count, size int
		kept        int
	}{
		{"all of a few", 50, 100, 50},
		{"100 thousand", 100_000, 8, (64 << 10) / 9},
		{"one megabyte", 10, 100_000, 0},
		{"empty ones", 60_000, 0, 60_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code := fmt.Sprintf("import os; os.execv('/bin/true', ['true'] + ['%s'] * %d)", strings.Repeat("a", tt.size), tt.count)
			file := filepath.Join(t.TempDir(), "code.py")
			if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
				t.Fatal(err)
			}
			r := start(t, []string{"/usr/bin/python3", file})
			if status := r.wait(); status != 0 {
				t.Fatalf("status %d: %s", status, r.out.String())
			}
			e := r.about(event.ProcExec, "/bin/true")
			total := 0
			for _, a := range e.Process.Argv {
				total += len(a) + 1
			}
			if total > argvKept+1 {
				t.Errorf("%d bytes are kept", total)
			}
			cut := tt.kept != tt.count
			if cut != (e.Detail["argc"] != "") || cut && e.Detail["argc"] != strconv.Itoa(tt.count+1) {
				t.Errorf("argc %q of %d; %d are kept", e.Detail["argc"], tt.count+1, len(e.Process.Argv))
			}
			if !cut && len(e.Process.Argv) != tt.count+1 {
				t.Errorf("%d are kept of %d", len(e.Process.Argv), tt.count+1)
			}
		})
	}
}

func TestFilesWithoutNames(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	code := `
import os, sys
data = open('/bin/true', 'rb').read()
fd = os.memfd_create('hidden')
os.write(fd, data)
if sys.argv[1] == 'fd':
    os.execve(fd, ['memory'], {})
os.execv('/proc/self/fd/%d' % fd, ['memory'])
`
	for _, how := range []string{"fd", "proc"} {
		t.Run(how, func(t *testing.T) {
			r := start(t, []string{"/usr/bin/python3", "-c", code, how})
			if status := r.wait(); status != 0 {
				t.Fatalf("status %d: %s", status, r.out.String())
			}
			e := r.last(event.ProcExec)
			if !strings.HasPrefix(e.Resolved, "/memfd:hidden") || e.Process.SHA256 != sumOf(t, "/bin/true") || e.Process.Argv[0] != "memory" {
				t.Errorf("%+v", e)
			}
			if e.Process.Executable != e.Resolved {
				t.Errorf("executable %q", e.Process.Executable)
			}
		})
	}
}

// TestReplacedInBetween swaps the executable when it was recorded and before the
// kernel opens it. What runs then has a record of its own.
func TestReplacedInBetween(t *testing.T) {
	dir := makeTree(t)
	prog := filepath.Join(dir, "prog")
	if err := errors.Join(programs.Copy("/bin/true", prog), programs.Copy("/bin/mkdir", prog+".new")); err != nil {
		t.Fatal(err)
	}
	rec := &recorder{}
	done := false
	rec.fail = func(event.Event) error {
		if done {
			return nil
		}
		done = true
		return os.Rename(prog+".new", prog)
	}
	r := start(t, []string{prog, filepath.Join(dir, "made")}, sink(rec))
	r.sink = rec
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	all := r.eventsOf(event.ProcExec)
	if len(all) != 2 || all[0].Process.SHA256 != sumOf(t, "/bin/true") || all[1].Process.SHA256 != sumOf(t, prog) ||
		all[1].Detail["instead_of"] != strconv.FormatUint(all[0].Process.Exec, 10) {
		t.Fatalf("%s", r.dump())
	}
	if e := r.last(event.FileMkdir); e.Process.Exec != all[1].Process.Exec {
		t.Errorf("the call after it is of %d, want %d", e.Process.Exec, all[1].Process.Exec)
	}
}

func TestForkedAndNothingExecuted(t *testing.T) {
	dir := makeTree(t)
	r := start(t, []string{"/bin/sh", "-c", "(echo x > made; true) & wait"}, in(dir))
	if status := r.wait(); status != 0 {
		t.Fatalf("status %d: %s", status, r.out.String())
	}
	sh, seen, made := r.about(event.ProcExec, "/bin/sh"), r.last(event.ProcSeen), r.about(event.FileWrite, "made")
	if seen.Process.Parent != sh.Process.PID || seen.Process.Exec != sh.Process.Exec || seen.Process.Cwd != dir || seen.Process.Executable != real(t, "/bin/sh") {
		t.Errorf("%+v", seen)
	}
	if made.Process.PID != seen.Process.PID || made.Process.PID == sh.Process.PID {
		t.Errorf("%+v", made)
	}
}

func TestHashesAreKept(t *testing.T) {
	store := filepath.Join(t.TempDir(), "hashes")
	keep := func(_ *run, c *Config, _ *exec.Cmd) { c.Hashes = store }
	for _, tt := range []struct {
		name   string
		access policy.Access
		spoil  string
		want   uint64
	}{
		{"what can be written is not", policy.Write, "", 1},
		{"the first run reads", policy.Read, "", 1},
		{"the second does not", policy.Read, "", 0},
		{"a broken file is none", policy.Read, "rubbish\n", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.spoil != "" {
				if err := os.WriteFile(store, []byte(tt.spoil), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := start(t, []string{"/bin/true"}, keep, trees(policy.Tree{Path: "/", Access: tt.access}))
			r.wait()
			if n := r.sup.hashes.reads.Load(); n != tt.want {
				t.Errorf("%d files were read, want %d", n, tt.want)
			}
			if e := r.last(event.ProcExec); e.Process.SHA256 != sumOf(t, "/bin/true") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestWhatGotAnotherModeIsReadOnceMore: the rules of consent take unknown content for
// anything, so a build that links a program while it is read must not cause a question;
// a file whose content changed is not read again.
func TestWhatGotAnotherModeIsReadOnceMore(t *testing.T) {
	for name, change := range map[string]func(file string) error{
		"mode": func(file string) error { return os.Chmod(file, 0o711) },
		"name": func(file string) error { return os.Link(file, file+".link") },
		"size": func(file string) error { return programs.Write(file, []byte("more than it was"), 0o700) },
	} {
		file := filepath.Join(makeTree(t), "program")
		if err := programs.Write(file, []byte("it was"), 0o700); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil {
			t.Fatal(err)
		}
		im := image{is: identityOf(&st)}
		im.is.ctime-- // as before the change, whatever the clock's steps are
		if err := change(file); err != nil {
			t.Fatal(err)
		}
		var err error
		if im.fd, err = unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		im.read(newHashes(""), false)
		if im.have != (name != "size") || im.have && im.sum.hex() != sumOf(t, file) || im.have == (im.why != "") || im.fd != -1 {
			t.Errorf("%s: %+v", name, im)
		}
	}
}
