package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one process in /proc, as far as this user may read it.
type process struct {
	pid, parent, session int
	start                string // ticks since boot; with pid it identifies a process uniquely
	args                 string // arguments separated by spaces; "" for a zombie
	text                 string // arguments, environment, directory, executable and mounts
	descends             bool   // from this process
}

// isOurs reports whether p can only have come from this test process.
func (p process) isOurs(marks []string) bool {
	if p.pid == os.Getpid() {
		return false
	}
	return p.descends || containsAny(p.text, marks)
}

// processes lists the processes below proc. One that ends while it is read is
// left out.
func processes(proc string) []process {
	dirs, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	var all []process
	parent := map[int]int{}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		p, err := readProcess(filepath.Join(proc, d.Name()))
		if err != nil {
			continue
		}
		p.pid = pid
		parent[pid] = p.parent
		all = append(all, p)
	}
	self, session := os.Getpid(), 0
	for _, p := range all {
		if p.pid == self {
			session = p.session
		}
	}
	for i := range all {
		p := &all[i]
		// If this process leads its session, all others in it were started by it;
		// an inherited session also contains our callers.
		p.descends = below(p.pid, self, parent) || session == self && p.session == session
	}
	return all
}

func below(pid, ancestor int, parent map[int]int) bool {
	for range len(parent) { // bounded: the list is no atomic snapshot and may contain a loop
		pid = parent[pid]
		if pid == ancestor {
			return true
		}
		if pid == 0 {
			return false
		}
	}
	return false
}

func readProcess(dir string) (process, error) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, err
	}
	// proc_pid_stat(5): the name is in parentheses and may contain any byte.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 20 {
		return process{}, fmt.Errorf("reading %s/stat: %d fields", dir, len(f))
	}
	var p process
	if p.parent, err = strconv.Atoi(f[1]); err != nil {
		return process{}, err
	}
	if p.session, err = strconv.Atoi(f[3]); err != nil {
		return process{}, err
	}
	p.start = f[19]
	var text strings.Builder
	for _, name := range []string{"cmdline", "environ", "mountinfo"} {
		b, _ := os.ReadFile(filepath.Join(dir, name)) // another user's is partly unreadable
		text.Write(b)
		if name == "cmdline" {
			p.args = strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	for _, name := range []string{"cwd", "exe"} {
		target, _ := os.Readlink(filepath.Join(dir, name))
		text.WriteString("\n" + target)
	}
	p.text = text.String()
	return p, nil
}
