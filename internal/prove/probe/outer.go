//go:build linux

package probe

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// outer limits everything that one command starts, in total. Rows limit
// themselves, far below this: it is for a payload or a launcher that does not.
type outer struct {
	processes int
	memory    int64 // bytes not shared with other processes
	every     time.Duration
}

// mostOuter is several times what the greediest rows use (RES-001, RES-002), and
// less than what makes a current machine unusable.
var mostOuter = outer{processes: 4096, memory: 3 << 30, every: 200 * time.Millisecond}

// runWithin is cmd.Run for a launcher of w. If the launcher and its descendants
// use too much, all are ended; excess is what they used too much of.
func runWithin(cmd *exec.Cmd, w *World) (excess string, err error) {
	if err := cmd.Start(); err != nil {
		return "", err
	}
	limit := mostOuter
	if w.outer.every > 0 {
		limit = w.outer
	}
	stop, said := make(chan struct{}), make(chan string)
	go func() { said <- limit.watch(cmd.Process.Pid, filepath.Base(w.B)+"/", stop) }()
	err = cmd.Wait()
	close(stop)
	return <-said, err
}

// watch checks what root has started until stop is closed and once more then, or
// until it was too much.
func (l outer) watch(root int, world string, stop <-chan struct{}) string {
	own := family{world: world, members: map[int]process{}, others: map[int]int64{}}
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-stop:
			ended = true
		case <-tick.C:
		}
		own.find(root)
		excess := ""
		switch memory := own.memory(l.memory); {
		case len(own.members) > l.processes:
			excess = fmt.Sprintf("%d processes", len(own.members))
		case memory > l.memory:
			excess = fmt.Sprintf("%d MiB of memory", memory>>20)
		default:
			continue
		}
		own.end(root)
		return excess
	}
	return ""
}

// family are the descendants of one process, also those whose parents have ended:
// a process once seen stays in it, and so do those in its group and session, and
// those with an environment or directory of the world.
type family struct {
	world   string // in the path of everything of the world
	since   int64  // when the first of them started, in clock ticks of the kernel; 0 until that is known
	members map[int]process
	others  map[int]int64 // checked processes: pid to start time
}

// find finds the descendants of root. A process older than root cannot be one of
// them.
func (f *family) find(root int) {
	if f.since == 0 {
		p, ok := processOf(root)
		if !ok {
			return
		}
		f.since, f.members[root] = p.started, p
	}
	all := started.since(f.since)
	for pid, p := range f.members {
		if all[pid].started != p.started {
			delete(f.members, pid)
			continue
		}
		f.members[pid] = all[pid]
	}
	ours := func(pid int) bool { _, ok := f.members[pid]; return ok }
	pids := slices.Sorted(maps.Keys(all)) // mostly parents before children
	for grown := true; grown; {
		grown = false
		for _, pid := range pids {
			p := all[pid]
			if !ours(pid) && pid != os.Getpid() && (ours(p.parent) || ours(p.group) || ours(p.session) || f.marked(p)) {
				f.members[pid], grown = p, true
			}
		}
	}
}

// marked reports whether a process with another parent works in the world or has
// its home there. Each is checked once.
func (f *family) marked(p process) bool {
	if f.others[p.pid] == p.started {
		return false
	}
	f.others[p.pid] = p.started
	at := fmt.Sprintf("/proc/%d/", p.pid)
	if dir, err := os.Readlink(at + "cwd"); err == nil && strings.Contains(dir+"/", f.world) {
		return p.parent != os.Getpid() // else it is one of ours, such as a git that looks from outside
	}
	env, err := os.ReadFile(at + "environ")
	return err == nil && bytes.Contains(env, []byte(f.world)) && p.parent != os.Getpid()
}

// memory returns the memory of the family in bytes. It measures exactly only if
// the rough sum, in which shared memory counts for each process, exceeds most.
func (f *family) memory(most int64) int64 {
	var rough, share int64
	for _, p := range f.members {
		rough += p.resident
	}
	if rough <= most {
		return rough
	}
	for _, p := range f.members {
		share += p.share()
	}
	return share
}

// end kills the family until none of it is left: what forks during one pass is
// found in the next, and what forks in a group of ours dies with the group.
func (f *family) end(root int) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		left := 0
		for pid, p := range f.members {
			if _, ours := f.members[p.group]; ours {
				_ = unix.Kill(-p.group, unix.SIGKILL)
			}
			if unix.Kill(pid, unix.SIGKILL) == nil && !hasEnded(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
		f.find(root)
	}
}
