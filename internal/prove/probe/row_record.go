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

// afterARun plays the row after the launcher has recorded a run: all that it
// keeps of that run must stay unchanged.
func afterARun(s *Session) {
	w := s.World
	s.Run(Command{Action: "nothing-denied"})
	paths := []string{w.Path(stateOfHoldfast)}
	err := filepath.WalkDir(w.Path(stateOfHoldfast), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.Path(stateOfHoldfast) {
			return err
		}
		paths = append(paths, path)
		// What the launcher itself keeps using is judged by its own check.
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

// duringARun finds the parts of a running launcher and passes them to the inside.
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
		s.Fail(errors.New("no process of the launcher was found: the row tried less than it should"))
	}
	parts := []string{"path " + w.Path(stateOfHoldfast+"/log/planted.jsonl"), "socket " + l.Addr, fmt.Sprintf("pid %d", v.PID), fmt.Sprintf("fd %d/0", v.PID)}
	_ = filepath.WalkDir(w.Path(stateOfHoldfast), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == w.Path(stateOfHoldfast+"/log/planted.jsonl"):
		case d.Type()&fs.ModeSocket != 0 && path != l.Addr:
			parts = append(parts, "socket "+path)
		case d.Type().IsRegular():
			parts = append(parts, "path "+path)
		}
		return nil
	})
	for _, pid := range launchers {
		parts = append(parts, fmt.Sprintf("pid %d", pid))
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		for _, fd := range fds {
			parts = append(parts, fmt.Sprintf("fd %d/%s", pid, fd.Name()))
		}
	}
	if err := w.File("W/live", strings.Join(parts, "\n")+"\nend\n"); err != nil {
		s.Fail(err)
	}
	wait()
}

// launchersOf returns the processes that run the launcher for this world: those
// that name its workspace and are not probers.
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

// killLauncher kills the launcher while something runs in it, and checks whether
// that continues.
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
	if len(pids) == 0 { // without a launcher, the command itself is killed
		pids = runningProbers(filepath.Base(w.B) + "/")
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
	if stillBeating(w) {
		w.remembered = "what was started goes on without the launcher"
	}
	s.Run(Command{Action: "nothing-denied"})
}

// stillBeating reports whether W/beat keeps changing. On a busy machine dying takes a
// moment; only repeated changes count.
func stillBeating(w *World) bool {
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

// noted reports what the drive of a row has seen from outside.
func noted(w *World, _ Observation) []string {
	if w.remembered == "" {
		return nil
	}
	return []string{w.remembered}
}

// shapedSecrets makes values that anyone recognises as secrets, passes them to
// the action in their usual form, and remembers the values that must not be
// recorded.
func shapedSecrets(w *World) error {
	var texts, never []string
	add := func(before, value, after string) {
		texts, never = append(texts, before+value+after), append(never, value)
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
	w.Arg("secrets=" + strings.Join(texts, "\n"))
	w.remembered = strings.Join(never, "\n")
	return nil
}

// untold looks for those values in the record and in its output.
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

// recordingAll records every opening, if the target can.
func recordingAll(s *Session) {
	if t, ok := s.Target.(Recorder); ok {
		s.Target = t.Recording("full")
	}
	s.Run(Command{Options: s.Row.Options})
}

// unforged looks for lines made by a name, in the record and in its output.
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
