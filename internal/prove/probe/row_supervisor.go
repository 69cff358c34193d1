//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const classSupervisor = "host.supervisor"

// What a careless harness believes (HST-013 to HST-015) is tried in the tests
// of the judge, and by playing every row without a sandbox.
func supervisorRows() []Row {
	rows := slices.Concat(supervisorFailing(), supervisorPolicy(), supervisorNeighbours(), supervisorControls(), supervisorKept(), endRows())
	for i := range rows {
		rows[i].Class = classSupervisor
		if rows[i].Kind == "" {
			rows[i].Kind = Host
		}
		if rows[i].Promise == "" {
			rows[i].Promise = "P10"
		}
	}
	return rows
}

var outsideAndHome = []string{"path=O/canary\nH/.ssh/id_probe\nH/.netrc"}

func supervisorFailing() []Row {
	return []Row{
		{ID: "HST-001", Core: true, Title: "no program that a launcher may need is on PATH",
			Refs:         []string{"github.com/anthropics/claude-code: silent fallback without a sandbox"},
			Setup:        func(w *World) error { w.Env = append(w.Env, "PATH=/nonexistent"); return nil },
			RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "HST-001b", Core: true, Title: "the kernel gives no user namespaces",
			Refs: []string{"user_namespaces(7)", "/proc/sys/user/max_user_namespaces"},
			Setup: func(w *World) error {
				if !onPath("unshare") {
					return fmt.Errorf("unshare: %w", ErrMissing)
				}
				// The limit is one of the throw-away namespace's own.
				w.Under = []string{"unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}
				if exec.Command("unshare", "-Ur", "true").Run() != nil {
					return fmt.Errorf("user namespaces: %w", ErrMissing)
				}
				return nil
			},
			RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "HST-001c", Core: true, Title: "the kernel lacks one of the system calls that a boundary is made of",
			Refs:         []string{"seccomp(2)", "landlock(7)"},
			Drive:        func(s *Session) { s.lacking(boundaryCalls) },
			RefusalHolds: true, Action: "both", Args: outsideAndHome, Timeout: 15 * time.Second},
		{ID: "HST-003", Title: "the kernel refuses the filter of system calls",
			Refs: []string{"npm @anthropic-ai/sandbox-runtime: fails closed"},
			Drive: func(s *Session) {
				var calls []string
				for _, no := range []unix.Errno{unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.ENOMEM, unix.EFAULT} {
					calls = append(calls, fmt.Sprintf("%d=%d,%d:%d=%d", unix.SYS_SECCOMP, no, unix.SYS_PRCTL, unix.PR_SET_SECCOMP, no))
				}
				s.lacking(calls)
			},
			RefusalHolds: true, Action: "both", Args: outsideAndHome, Timeout: 15 * time.Second},
		{ID: "HST-012", Title: "a thousand protected files are there, and none of them is forgotten",
			Refs: []string{"npm @anthropic-ai/sandbox-runtime LinuxSandboxProfileError", "/proc/sys/fs/mount-max"}, Promise: "P3",
			Setup: func(w *World) error {
				var tried []string
				for i := range 1000 {
					path := fmt.Sprintf("W/d%d/.mcp.json", i)
					if err := w.File(path, "{}\n"); err != nil {
						return err
					}
					if err := w.Keep(w.Path(path)); err != nil {
						return err
					}
					if i%53 == 0 || i == 999 {
						tried = append(tried, w.Path(path))
					}
				}
				w.Arg("path=" + strings.Join(tried, "\n"))
				return nil
			},
			RefusalHolds: true, Action: "overwrite", Timeout: 60 * time.Second},
	}
}

// boundaryCalls are refused one at a time.
var boundaryCalls = lackOf(unix.ENOSYS, unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_UMOUNT2, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SYS_CAPSET,
	unix.SYS_OPENAT2, unix.SYS_MEMFD_CREATE, unix.SYS_PIDFD_OPEN, unix.SYS_EXECVEAT, unix.SYS_SETHOSTNAME, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
	unix.SYS_SETSID, unix.SYS_PRLIMIT64, unix.SYS_STATX, unix.SYS_CLOSE_RANGE, unix.SYS_CLONE3)

func lackOf(no unix.Errno, calls ...int) []string {
	var out []string
	for _, nr := range calls {
		out = append(out, fmt.Sprintf("%d=%d", nr, no), fmt.Sprintf("%d=%d", nr, unix.EPERM))
	}
	for _, op := range []int{unix.PR_SET_NO_NEW_PRIVS, unix.PR_SET_DUMPABLE, unix.PR_CAPBSET_DROP, unix.PR_SET_PDEATHSIG, unix.PR_CAP_AMBIENT, unix.PR_SET_SECUREBITS} {
		out = append(out, fmt.Sprintf("%d:%d=%d", unix.SYS_PRCTL, op, unix.EPERM))
	}
	return out
}

// lacking plays the row once for each set of calls that the kernel refuses.
// A launcher that is broken by the lack before it starts anything must say so
// by its status, as for every refusal; any other end is reported.
func (s *Session) lacking(calls []string) {
	launch, err := s.World.helper()
	if err != nil {
		s.Fail(err)
		return
	}
	for _, c := range calls {
		s.World.Under = []string{launch, "-child", "x", "without-calls", "calls=" + c, "--"}
		o := s.Run(Command{})
		said := parse(o)
		if o.Err == nil && !o.Refused && !(said.begun && said.ended) {
			s.obs = s.obs[:len(s.obs)-1]
			s.Fail(fmt.Errorf("without %s: status %d: %s", c, o.Exit, firstLine(o.Stderr)))
		}
	}
}

func supervisorPolicy() []Row {
	wide := "version: 1\nfilesystem:\n  write:\n    - {O}\n"
	written := "version: 1\n"
	return []Row{
		{ID: "HST-004", Core: true, Title: "a policy is broken in one of the many ways, and would widen what is allowed",
			Refs: []string{"CVE-2025-66479", "nono: unknown fields are errors"}, Drive: brokenPolicies,
			RefusalHolds: true, Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}},
		{ID: "HST-004b", Core: true, Title: "the user's own policy is broken, and no other was named",
			Refs: []string{"CVE-2025-66479"},
			Setup: func(w *World) error {
				return w.File("H/.config/holdfast/policy.yaml", w.aimed(wide)+"unknown: true\n")
			},
			RefusalHolds: true, Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}},
		{ID: "HST-006", Promise: "P2", Title: "a policy in the workspace widens what is allowed",
			Refs: []string{"CBSE (Cymulate)", "CVE-2025-59536"},
			Setup: func(w *World) error {
				var errs []error
				for _, n := range []string{"holdfast.yaml", ".holdfast.yaml", "holdfast.yml", ".holdfast/policy.yaml", ".config/holdfast/policy.yaml"} {
					errs = append(errs, w.File("W/"+n, w.aimed(wide)))
				}
				return errors.Join(errs...)
			},
			RefusalHolds: true, Action: "both", Args: []string{"path=O/canary\nO/sub/canary"}},
		{ID: "HST-007", Promise: "P2", Title: "the user's policy and the launcher's records are changed from inside",
			Refs:     []string{"github.com/AxeForging/aigate ConfigDirHidden", "nono: ~/.nono is protected"},
			Files:    map[string]string{"H/.config/holdfast/policy.yaml": written, "H/.local/state/holdfast/record": "a record\n", "H/.config/holdfast/trust": ""},
			Keep:     []string{"H/.config/holdfast/policy.yaml", "H/.local/state/holdfast/record"},
			Harmless: "what is in view of the home may be private",
			Action:   "home-names", Args: []string{"path=H/.config/holdfast/policy.yaml\nH/.local/state/holdfast/record\nH/.config/holdfast/new.yaml\nH/.local/state/holdfast/new"}},
		{ID: "HST-007b", Promise: "P3", Title: "the workspace's policy is changed from inside",
			Refs: []string{"github.com/AxeForging/aigate ConfigDirHidden"}, Files: map[string]string{"W/holdfast.yaml": written},
			Keep: []string{"W/holdfast.yaml"}, Action: "rewrite-names", Args: []string{"path=W/holdfast.yaml"}},
		{ID: "HST-007c", Promise: "P3", Title: "a policy appears in the workspace for the next run",
			Refs: []string{"CVE-2026-25725"}, Absent: []string{"W/holdfast.yaml", "W/HOLDFAST.YAML"},
			Harmless: takenAway, Action: "create", Args: []string{"path=W/holdfast.yaml\nW/HOLDFAST.YAML"}},
	}
}

// brokenPolicies names a broken policy in each run. A target that takes none
// plays the row without.
func brokenPolicies(s *Session) {
	t, ok := s.Target.(Policied)
	if !ok {
		s.Run(Command{})
		return
	}
	w := s.World
	write := "filesystem:\n  write:\n    - " + w.O + "\n"
	bodies := []string{"", "\n", "{}", "null\n", write, "version: 2\n" + write, "version: one\n" + write, "version: 1\n" + write + "unknown: 1\n",
		"version: 1\n" + write + "  unknown: 1\n", "version: 1\n" + write + "limits: [1]\n", "version: 1\n" + write + "limits:\n  memory: much\n", "version: 1\n" + write + write,
		"version: 1\nversion: 1\n" + write, "version: 1\n" + write + "---\nversion: 1\n", "version: 1\n" + write + "\x00\n", "version: 1\n" + write + "# \xff\xfe\n",
		"version: 1\n\tfilesystem:\n", "version: 1\nfilesystem: {write: [" + w.O + "\n", "version: 1\nfilesystem: {write: {" + w.O + ": true}}\n",
		"version: 1\nfilesystem:\n  write: " + w.O + "\n", "version: 1\nfilesystem: &a\n  write: [*a, " + w.O + "]\n", "version: 1\n" + write + "x: &a [1]\ny: [*a, *a]\n",
		"version: 1\nfilesystem:\n  write: [!!binary " + w.O + "]\n", "version: 1\n<<: {filesystem: {write: [" + w.O + "]}}\n", "version: 1\n" + write + "network:\n  allow: true\n",
		"version: 1\nextends: nowhere\n" + write, "version: 1\n" + write + "filesystem.write: []\n", "version: 1\nFilesystem:\n  write: [" + w.O + "]\n",
		"{\"version\": 1, \"filesystem\": {\"write\": [\"" + w.O + "\"]}, \"version\": 1}", "version: 1\n" + write + strings.Repeat("# long\n", 1<<19)}
	paths := []string{w.B + "/missing.yaml", w.O, "/dev/zero", ""}
	for i, body := range bodies {
		path := fmt.Sprintf("%s/broken-%d.yaml", w.B, i)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			s.Fail(err)
			return
		}
		paths = append(paths, path)
	}
	// These are whole, and somebody else's to write.
	open, inside, link := w.B+"/open.yaml", w.W+"/inside.yaml", w.B+"/link.yaml"
	if err := errors.Join(os.WriteFile(open, []byte("version: 1\n"+write), 0o600), os.Chmod(open, 0o666),
		os.WriteFile(inside, []byte("version: 1\n"+write), 0o644), os.Symlink(inside, link), unix.Mkfifo(w.B+"/fifo.yaml", 0o600)); err != nil {
		s.Fail(err)
		return
	}
	for _, path := range append(paths, open, link, w.B+"/fifo.yaml") {
		s.Target = t.WithPolicy(path)
		o := s.Run(Command{})
		for _, what := range w.changes() {
			s.Fail(fmt.Errorf("with %s: %s", w.short(path), what))
			return
		}
		if o.TimedOut {
			return
		}
	}
}

func supervisorNeighbours() []Row {
	return []Row{
		{ID: "HST-009", Promise: "P5", Title: "a socket or descriptor of the launcher is reached from inside",
			Refs: []string{"ironclaw self-modification gate"}, Setup: controlSockets,
			Action: "inherited-api"},
		{ID: "HST-013", Core: true, Promise: "P9", Title: "the workload prints verdicts of its own",
			Refs: []string{"TNG security_assertions_test.go"}, Action: "forge"},
		{ID: "HST-017", Promise: "P6", Title: "a command gets at another command of the same user in another sandbox",
			Refs: []string{"huggingface sandbox-server audit"}, Drive: neighbours, Action: "visit"},
		{ID: "HST-018", Core: true, Promise: "P3", Title: "what the launcher reads after the end are links, fifos, holes and names that a terminal obeys",
			Refs:   []string{"huggingface/sandbox-server#16"},
			Absent: []string{"W/.mcp.json", "W/.bashrc", "W/.vscode", "W/.exrc", "W/.zshrc", "W/.cursorrules", "W/CLAUDE.md", "W/many/7/.mcp.json"},
			Oracle: quietTerminal, Harmless: takenAway, Action: "plant-traps", Timeout: 60 * time.Second},
	}
}

// quietTerminal demands that no name from the workspace reaches the terminal
// as it is.
func quietTerminal(_ *World, o Observation) []string {
	if bytes.ContainsAny(o.Stderr, "\x1b\x07") {
		return []string{"the launcher printed control characters out of a name"}
	}
	for line := range bytes.Lines(o.Stderr) {
		if bytes.HasPrefix(line, []byte("holdfast: everything is well")) {
			return []string{"the launcher printed a line out of a name"}
		}
	}
	return nil
}

func controlSockets(w *World) error {
	var at []string
	for _, addr := range []string{"H/.local/state/holdfast/control", "H/.config/holdfast/s", "@holdfast-" + hexes(4)} {
		if !strings.HasPrefix(addr, "@") {
			if err := w.File(addr+".d/keep", ""); err != nil {
				return err
			}
		}
		l, err := w.Listen("unix", addr)
		if err != nil {
			return err
		}
		at = append(at, l.Addr)
	}
	w.Arg("sockets=" + strings.Join(at, "\n"))
	return nil
}

func neighbours(s *Session) {
	w := s.World
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fail(err)
		return
	}
	at := free.Addr().String()
	free.Close()
	where := []string{"tcp=" + at, "abstract=@neighbour-" + hexes(4), "file=/tmp/probe-neighbour-" + hexes(4)}
	// The secret is among the arguments, which is one more way to see it.
	wait := s.Start(Command{Action: "neighbour", Args: append([]string{"secret=" + w.Token("the neighbour")}, where...)})
	for range 50 {
		if exists(w.Path("W/neighbour-is-there")) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Run(Command{Action: "visit", Args: where})
	wait()
	if !exists(w.Path("W/neighbour-is-there")) {
		s.Fail(errors.New("there was no neighbour"))
	}
}

func supervisorControls() []Row {
	tools := func(id, title string, timeout time.Duration, programs []string, lines string, files map[string]string) Row {
		return Row{ID: id, Core: id == "HST-023", Kind: Control, Title: title, Refs: []string{"SandBench lessons"}, Timeout: timeout, Files: files,
			Setup: func(*World) error {
				for _, p := range programs {
					if !onPath(p) {
						return fmt.Errorf("%s: %w", p, ErrMissing)
					}
				}
				return nil
			},
			Action: "tools-work", Args: []string{"tools=" + lines}}
	}
	return []Row{
		tools("HST-023", "a shell, pipes, temporary files and other programs work", 0, []string{"sh"},
			"echo a | cat | grep -q a\nmktemp >/dev/null"+
				"\ntest -w \"$HOME\"\nsleep 0.1 & wait\nls -l /usr/bin >/dev/null\ncp ok.txt copy.txt && mv copy.txt moved.txt && rm moved.txt\nid -un\n(exit 3); test $? = 3", nil),
		tools("HST-023b", "a program is compiled and run", 170*time.Second, []string{"go"},
			"HOME=$PWD/.h GOCACHE=$PWD/.h/c GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o made . && ./made",
			map[string]string{"W/go.mod": "module probe.test/made\n\ngo 1.21\n", "W/main.go": "package main\n\nfunc main() { println(\"made\") }\n"}),
		tools("HST-023c", "processes that share work do so", 60*time.Second, []string{"python3"},
			"python3 many.py", map[string]string{"W/many.py": "import multiprocessing as m\ndef f(x): return x * x\n" +
				"if __name__ == '__main__':\n    with m.Pool(2) as p: assert p.map(f, range(4)) == [0, 1, 4, 9]\n    m.Lock(); m.Queue()\n"}),
		tools("HST-461", "a program that looks for a protocol which it may not have hears that there is none", 0, []string{"python3"},
			"python3 rare.py", map[string]string{"W/rare.py": "import errno, socket as s\nfor kind, protocol in (s.SOCK_DGRAM, 136), (s.SOCK_STREAM, 132), (s.SOCK_SEQPACKET, 132):\n" +
				"    try: s.socket(s.AF_INET, kind, protocol).close()\n    except OSError as e: assert e.errno in (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT), e\n"}),
		{ID: "HST-023d", Kind: Control, Title: "a terminal can be made", Refs: []string{"fence PTY tests", "pty(7)"}, Action: "terminal-pair"},
		{ID: "HST-013b", Promise: "P9", Title: "status and signal of the workload arrive unchanged", Refs: []string{"wait(2)"}, Drive: statuses, Action: "nothing-denied",
			Bare: "nothing stands between the command and its caller"},
	}
}

// statuses compares how commands end with how the launcher ends.
func statuses(s *Session) {
	ends := map[string]int{"status=0": 0, "status=1": 1, "status=2": 2, "status=77": 77, "status=126": 126, "status=127": 127, "status=255": 255}
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		ends["signal="+strconv.Itoa(int(sig))] = 128 + int(sig)
	}
	for arg, want := range ends {
		o := s.Run(Command{Action: "end-by", Args: []string{arg}})
		if o.Err == nil && !o.Refused && !o.TimedOut {
			s.obs = s.obs[:len(s.obs)-1]
		}
		if o.Exit != want {
			s.Fail(fmt.Errorf("%s arrived as %d", arg, o.Exit))
		}
	}
	s.Run(Command{})
}
