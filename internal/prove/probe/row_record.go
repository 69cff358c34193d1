//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What is done to the record, and what the record says of what is done. A target
// that keeps none lets each of these through.
func recordRows() []Row {
	rows := slices.Concat(recordTamper(), recordSupervisor(), recordAttempts(), recordFloods(), recordStorms(), recordCalls(), reconstructRows(), answeredRows())
	for i := range rows {
		r := &rows[i]
		r.Class, r.Promise = classSupervisor, "P9"
		if r.Kind == "" {
			r.Kind = Sandbox
		}
		if r.Accept == nil {
			r.Accept = recordDenials
		}
	}
	return rows
}

// recordDenials are Denials and what the kernel says of names and processes that
// are not there, and of a file system that has no attributes.
var recordDenials = append([]string{"ESRCH", "ENOTDIR", "EOPNOTSUPP", "EINVAL", "EEXIST"}, Denials...)

// stateFiles stand for what a launcher keeps: where nothing keeps anything they
// are what there is to read and to change.
var stateFiles = []string{"log/planted.jsonl", "heads/planted.note", "keys/planted.key", "spool/planted", "planted-hashes", "sessions/planted/config"}

func statePaths(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, stateOfHoldfast+"/"+n)
	}
	return out
}

func recordTamper() []Row {
	refs := []string{"NIST SP 800-92, 5.1", "CVE-2025-66479"}
	return []Row{
		{ID: "HST-024", Core: true, Title: "the records of earlier runs, the keys and the checkpoints are read", Refs: refs,
			Plant: statePaths(stateFiles...), Drive: afterARun, Action: "record-read", Timeout: 60 * time.Second},
		{ID: "HST-024b", Core: true, Title: "the records of earlier runs, the keys and the checkpoints are changed, removed and replaced", Refs: refs,
			Plant: statePaths(stateFiles...), Drive: afterARun, Action: "record-change", Timeout: 60 * time.Second,
			Harmless: "what is in view of the home may be private", Oracle: whole},
		{ID: "HST-024c", Title: "programs remove the records, and the launcher itself is told to, from inside", Refs: refs,
			Plant: statePaths(stateFiles...), Drive: afterARun, Setup: copyLauncher, Action: "record-tools", Timeout: 60 * time.Second,
			Harmless: "what is in view of the home may be private", Oracle: whole},
		{ID: "HST-025", Core: true, Title: "the record that is being written, the control socket, the descriptors and the process of the launcher are reached", Kind: Host, Refs: []string{"pidfd_getfd(2)", "seccomp_unotify(2)"},
			Plant: statePaths("log/planted.jsonl"), Drive: duringARun, Action: "record-live", Timeout: 60 * time.Second, Oracle: whole},
	}
}

// copyLauncher puts the launcher itself into the workspace.
func copyLauncher(w *World) error {
	t, ok := w.target.(Recorder)
	if !ok {
		return nil
	}
	b, err := os.ReadFile(t.Reader())
	if err != nil {
		return err
	}
	path := w.Path("W/launcher")
	if err := w.write(path, string(b)); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// afterARun plays the row when the launcher has recorded a run: everything that
// it keeps of that one must stay as it is.
func afterARun(s *Session) {
	w := s.World
	s.Run(Command{Action: "nothing-denied"})
	paths := []string{w.Path(stateOfHoldfast)}
	err := filepath.WalkDir(w.Path(stateOfHoldfast), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.Path(stateOfHoldfast) {
			return err
		}
		paths = append(paths, path)
		// What the launcher itself goes on using is judged by its own check.
		if d.Type().IsRegular() && filepath.Base(path) != "hashes" {
			return w.Keep(path)
		}
		return nil
	})
	if err != nil {
		s.Fail(err)
		return
	}
	s.Run(Command{Action: s.Row.Action, Args: []string{"path=" + strings.Join(paths, "\n")}, Options: s.Row.Options})
}

// duringARun finds the parts of a launcher that runs, and tells the inside.
func duringARun(s *Session) {
	w := s.World
	v, err := w.Victim()
	if err != nil {
		s.Fail(err)
		return
	}
	l, err := w.Listen("unix", stateOfHoldfast+"/planted-control")
	if err != nil {
		s.Fail(err)
		return
	}
	wait := s.Start(Command{Options: s.Row.Options})
	up := w.appears("W/up") // or it has refused
	launchers := launchersOf(w)
	if _, keeps := s.Target.(Recorder); keeps && up && len(launchers) == 0 {
		s.Fail(errors.New("no process of the launcher was found: less was tried than is meant"))
	}
	say := []string{"path " + w.Path(stateOfHoldfast+"/log/planted.jsonl"), "socket " + l.Addr, fmt.Sprintf("pid %d", v.PID), fmt.Sprintf("fd %d/0", v.PID)}
	_ = filepath.WalkDir(w.Path(stateOfHoldfast), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == w.Path(stateOfHoldfast+"/log/planted.jsonl"):
		case d.Type()&fs.ModeSocket != 0 && path != l.Addr:
			say = append(say, "socket "+path)
		case d.Type().IsRegular():
			say = append(say, "path "+path)
		}
		return nil
	})
	for _, pid := range launchers {
		say = append(say, fmt.Sprintf("pid %d", pid))
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, fd := range fds {
			say = append(say, fmt.Sprintf("fd %d/%s", pid, fd.Name()))
		}
	}
	if err := w.File("W/live", strings.Join(say, "\n")+"\nend\n"); err != nil {
		s.Fail(err)
	}
	wait()
}

// launchersOf are the processes that run the launcher for this world: those that
// name its workspace and are no prober.
func launchersOf(w *World) []int {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []int
	for _, path := range lines {
		b, err := os.ReadFile(path)
		argv := strings.Split(string(b), "\x00")
		if err != nil || !slices.Contains(argv, w.W) && !slices.Contains(argv, w.Work()) || !slices.Contains(argv, "run") {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(path, "/")[2]); err == nil && pid != os.Getpid() {
			out = append(out, pid)
		}
	}
	return out
}

func recordSupervisor() []Row {
	return []Row{
		{ID: "HST-026", Core: true, Title: "the descriptor by which calls are reported is taken, or another one put before it",
			Refs: []string{"seccomp_unotify(2)", "seccomp(2) EBUSY"}, Action: "listeners", Timeout: 60 * time.Second, Oracle: whole},
		{ID: "HST-026b", Title: "a filter of the command's own, or closing every descriptor, hides what it does",
			Refs: []string{"seccomp(2), order of the actions"}, Action: "own-filter", Harmless: "it may install filters and make directories; what counts is that each is recorded",
			Oracle: recorded(Attempt{Action: "file.mkdir", Object: "W/under-allow"}, Attempt{Action: "file.mkdir", Object: "W/under-log"},
				Attempt{Action: "file.mkdir", Object: "W/under-trace"}, Attempt{Action: "file.mkdir", Object: "W/after-closing"})},
		{ID: "HST-181", Title: "a process that hides itself, or a program that may be executed but not read, changes a file by its descriptor and the record does not say which",
			Refs: []string{"prctl(2) PR_SET_DUMPABLE", "would_dump, fs/exec.c"}, Action: "hidden", Harmless: "it may change files of the workspace; what counts is that each is recorded by name",
			Oracle: both(recorded(Attempt{Action: "file.chmod", Object: "W/hidden-self"}), unlessAbsent("W/hidden-child", Attempt{Action: "file.chmod", Object: "W/hidden-child"}))},
		{ID: "HST-027", Title: "the device that serves the root of the view is opened, made or its connection ended",
			Refs: []string{"fuse(4)", "Documentation/filesystems/fuse.rst"}, Action: "root-device", Oracle: whole},
		{ID: "HST-028", Core: true, Kind: Host, Title: "what was started goes on after the launcher has been killed",
			Refs: []string{"seccomp_unotify(2)", "prctl(2) PR_SET_PDEATHSIG"}, Action: "outlive", Drive: killLauncher, Oracle: both(noted, whole), Timeout: 40 * time.Second},
		{ID: "HST-381", Kind: Host, Title: "what guards a run is killed, the run goes on, or its status says that nothing ran", Refs: []string{"prctl(2) PR_SET_PDEATHSIG", "env(1), exit status 125"},
			Action: "outlive", Drive: janitorKilled, Oracle: noted, Timeout: 40 * time.Second, Trace: did("file.write", "W/beat")},
	}
}

// killLauncher kills the launcher while something runs in it, and looks whether
// that goes on.
func killLauncher(s *Session) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	beat := w.Path("W/beat")
	for end := time.Now().Add(10 * time.Second); !exists(beat) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	// What was observed in the last milliseconds before a kill may be in no record;
	// this row is about what comes after it.
	time.Sleep(200 * time.Millisecond)
	pids := launchersOf(w)
	if len(pids) == 0 { // nothing stands between: the command itself is what there is to kill
		pids = running(filepath.Base(w.B) + "/")
		pids = pids[:min(1, len(pids))]
	}
	for _, pid := range pids {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
	wait()
	s.obs = s.obs[:len(s.obs)-1] // it was killed before it could end
	if _, err := readSome(beat); err != nil || len(pids) == 0 {
		s.Fail(errors.Join(errors.New("nothing ran that could be ended"), err))
		return
	}
	if beats(w) {
		w.remembered = "what was started goes on without the launcher"
	}
	s.Run(Command{Action: "nothing-denied"})
}

// beats says whether W/beat goes on changing. To die takes a moment on a busy
// machine; to go on is to do so again and again.
func beats(w *World) bool {
	before, err := readSome(w.Path("W/beat"))
	for tries := 0; err == nil && tries < 3; tries++ {
		time.Sleep(500 * time.Millisecond)
		var after []byte
		if after, err = readSome(w.Path("W/beat")); string(before) == string(after) {
			return false
		}
		before = after
	}
	return err == nil
}

// noted is what the drive of a row has seen from outside.
func noted(w *World, _ Observation) []string {
	if w.remembered == "" {
		return nil
	}
	return []string{w.remembered}
}

func recordAttempts() []Row {
	denied := func(action, object, layer string) Attempt {
		return Attempt{Action: action, Object: object, Verdict: "denied", Layer: layer}
	}
	return []Row{
		{ID: "HST-030", Core: true, Title: "something is tried that each layer refuses, and nobody records it", Refs: []string{"OWASP Top 10 2021, A09"},
			Options: Options{Read: []string{"R"}}, Files: map[string]string{"W/.mcp.json": "{}\n"}, Keep: []string{"W/.mcp.json"}, Action: "denials",
			Oracle: recorded(denied("file.write", "O/canary", "view"), denied("file.write", "R/canary", "readonly"),
				denied("file.write", "W/.mcp.json", "protected"), denied("file.mkdir", "O/made", "view"), denied("sys.call", "personality", "filter"), denied("sys.call", "keyctl", "filter"),
				Attempt{Action: "file.write", Object: "W/made", Verdict: "allowed"}, Attempt{Action: "file.rename", Object: "W/made"}, Attempt{Action: "file.chmod", Object: "W/renamed"},
				Attempt{Action: "file.symlink", Object: "W/symbolic"}, Attempt{Action: "file.unlink", Object: "W/renamed"}, Attempt{Action: "proc.exec", Arg: "seen=by-the-record"})},
		{ID: "HST-030b", Core: true, Title: "something outside is read, and nobody records it", Refs: []string{"OWASP Top 10 2021, A09"},
			Action: "read", Args: []string{"path=O/canary\nO/sub/canary\n/no-such-name"},
			Oracle: recorded(denied("file.lookup", "O/canary", "view"), denied("file.lookup", "O/sub/canary", "view"), denied("file.lookup", "/no-such-name", "view"))},
		{ID: "HST-030c", Title: "credentials are looked for where the home hides them, and a record of every opening does not have it", Refs: []string{"OWASP Top 10 2021, A09"}, Drive: recordingAll,
			Action: "read", Args: []string{"path=H/.ssh/id_probe\nH/.netrc\nO/canary\nW/../o/canary"},
			Oracle: recorded(Attempt{Action: "file.open", Object: "H/.ssh/id_probe"}, Attempt{Action: "file.open", Object: "H/.netrc"}, Attempt{Action: "file.open", Object: "W/../o/canary"}, denied("file.open", "O/canary", "view"))},
		{ID: "HST-030d", Core: true, Title: "sockets are connected, bound and sent from, and nobody records it", Refs: []string{"OWASP Top 10 2021, A09"},
			Action: "talk", Harmless: "nobody answers there",
			Oracle: recorded(Attempt{Action: "sock.connect", Object: "127.0.0.1:9"}, Attempt{Action: "sock.send", Object: "127.0.0.1:7"},
				Attempt{Action: "sock.bind", Object: "127.0.0.1:47011"}, Attempt{Action: "sock.connect", Object: "unix:@probe-nobody"})},
		{ID: "HST-031", Core: true, Title: "names and arguments forge lines of the record, or make the terminal of its reader obey", Refs: []string{"CWE-117", "CWE-150", "CVE-2021-42574"},
			Action: "forge-lines", Harmless: "any name may be used in the workspace", Oracle: both(unforged, recorded(Attempt{Action: "proc.exit"}))},
		{ID: "HST-031b", Title: "the name of the workspace makes the terminal of the record's reader obey", Refs: []string{"CWE-150"}, Workspace: "w\x1b]0;forged\x07\u202e",
			Action: "forge-lines", Harmless: "any name may be used in the workspace", Oracle: unforged},
		{ID: "HST-035", Core: true, Title: "secrets in arguments and names of files stand in the record", Refs: []string{"CWE-532"}, Setup: shapedSecrets,
			Action: "tell-secrets", Harmless: "what the command knows it may say; what counts is whether the record repeats it", Oracle: both(untold, recorded(Attempt{Action: "proc.exec", Arg: "not-a-secret"}))},
	}
}

// shapedSecrets makes values that anybody recognises for what they are, and tells
// the action: as they are written there, and what may stand nowhere.
func shapedSecrets(w *World) error {
	var told, never []string
	add := func(before, value, after string) {
		told, never = append(told, before+value+after), append(never, value)
	}
	add("", "ghp_"+hexes(18), "")
	add("", "AKIA"+strings.ToUpper(strings.NewReplacer("0", "Q", "1", "Z", "8", "X", "9", "Y").Replace(hexes(8))), "")
	add("", "xoxb-123456789012-123456789012-"+hexes(12), "")
	add("", "glpat-"+hexes(10), "")
	add("", "npm_"+hexes(18), "")
	add("", "sk-ant-api03-"+hexes(40), "")
	add("--password=", hexes(8), "")
	add("Authorization: Bearer ", hexes(20), "")
	add("https://user:", hexes(8), "@host.test/x")
	add("API_TOKEN=", hexes(16), "")
	w.Arg("secrets=" + strings.Join(told, "\n"))
	w.remembered = strings.Join(never, "\n")
	return nil
}

// untold looks for those values in the record and in what is shown of it.
func untold(w *World, _ Observation) []string {
	rec, err := w.record()
	if err != nil {
		return []string{"the record cannot be read: " + err.Error()}
	}
	var out []string
	for value := range strings.SplitSeq(w.remembered, "\n") {
		found := strings.Contains(string(rec.Shown), value)
		err = errors.Join(err, rec.each(func(line []byte) error {
			found = found || strings.Contains(string(line), value)
			return nil
		}))
		if found {
			out = append(out, fmt.Sprintf("a secret stands in the record: %.12s…", value))
		}
	}
	if err != nil {
		out = append(out, "the record: "+err.Error())
	}
	return out
}

// recordingAll has every opening recorded, of a target that can.
func recordingAll(s *Session) {
	if t, ok := s.Target.(Recorder); ok {
		s.Target = t.Recording("full")
	}
	s.Run(Command{Options: s.Row.Options})
}

// unforged looks for lines that a name has made, in the record and in what is
// shown of it.
func unforged(w *World, _ Observation) []string {
	rec, err := w.record()
	if err != nil {
		return []string{"the record cannot be read: " + err.Error()}
	}
	if rec.Path == "" {
		return []string{rec.Why}
	}
	absent, err := rec.missing([]Attempt{{Object: "forged"}, {Action: "proc.exec"}})
	var out []string
	switch {
	case err != nil:
		out = append(out, "the record: "+err.Error())
	case len(absent) != 1 || absent[0].Object != "forged":
		out = append(out, "a name has made a line of the record")
	}
	for line := range strings.Lines(string(rec.Shown)) {
		if strings.HasPrefix(strings.TrimSpace(line), "holdfast: ") || strings.HasPrefix(line, "{") || strings.HasPrefix(strings.TrimSpace(line), "— ") {
			out = append(out, fmt.Sprintf("a name has made a line of what is shown: %.60q", line))
		}
	}
	for _, bad := range []string{"\x1b]", "\x1b[2J", "\x07", "\r", "\u202e", "\u2066", "\u200b", "\ufeff", "\u009b", "\u0085", "\u2028", "\u2029", "\xff", "\xed\xa0"} {
		if strings.Contains(string(rec.Shown), bad) {
			out = append(out, fmt.Sprintf("what is shown has %+q in it, out of a name", bad))
		}
	}
	return out
}
