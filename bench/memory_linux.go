package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// measureIdle runs `sleep` n times in a contestant's way and inspects the process tree
// from outside. For bubblewrap the first process also stays outside, so it is
// counted with those around the command: its counterpart in Holdfast is the
// janitor.
//
// The peak is not taken from wait4: a child begins with its parent's pages, and
// the kernel keeps that as the child's peak across exec.
func (b *bench) measureIdle(c contestant, dir, what string, n int) (memory, error) {
	m := memory{contestant: c.name, what: what}
	for range n {
		if err := b.idleOnce(c, dir, &m); err != nil {
			return m, fmt.Errorf("reading the memory use of %s: %w", c.name, err)
		}
	}
	return m, nil
}

func (b *bench) idleOnce(c contestant, dir string, m *memory) error {
	ctx, cancel := context.WithTimeout(b.ctx, longest)
	defer cancel()
	cmds, closeAll, err := b.commands(ctx, c, dir, []string{"sleep", "0.4"}, 1)
	defer closeAll()
	if err != nil {
		return err
	}
	cmd := cmds[0]
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak, seen, looked := 0.0, time.Time{}, false
	for {
		if kb, err := procField(cmd.Process.Pid, "status", "VmHWM:"); err == nil {
			peak = max(peak, kb)
		}
		if !looked {
			tree := chain(cmd.Process.Pid)
			if command(tree) == "sleep" && seen.IsZero() {
				seen = time.Now()
			}
			if !seen.IsZero() && time.Since(seen) > 100*time.Millisecond {
				looked = true
				m.addTree(tree, c.name == bwrap)
				if kb, err := procField(cmd.Process.Pid, "status", "VmRSS:"); err == nil {
					m.rest = append(m.rest, kb)
				}
			}
		}
		select {
		case err := <-ended:
			if err == nil && !looked {
				err = fmt.Errorf("the command was not seen among the descendants of %s", filepath.Base(cmd.Path))
			}
			m.peak = append(m.peak, peak)
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// addTree adds up the memory of the processes of a tree, without the last one, which
// is the command.
func (m *memory) addTree(tree []int, withFirst bool) {
	around := tree[:len(tree)-1]
	if !withFirst {
		around = around[1:]
	}
	var pss, private float64
	for _, pid := range around {
		var kb [3]float64
		for i, name := range []string{"Pss:", "Private_Clean:", "Private_Dirty:"} {
			var err error
			if kb[i], err = procField(pid, "smaps_rollup", name); err != nil {
				m.unreadable = err
				return
			}
		}
		pss, private = pss+kb[0], private+kb[1]+kb[2]
	}
	m.processes = len(around)
	m.pss, m.private = append(m.pss, pss), append(m.private, private)
}

// chain lists a process and its descendants, parents first. Each should have at
// most one child; of several the first counts.
func chain(pid int) []int {
	parents := map[int]int{}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return []int{pid}
	}
	for _, e := range all {
		if child, err := strconv.Atoi(e.Name()); err == nil {
			if parent, err := procField(child, "status", "PPid:"); err == nil && parents[int(parent)] == 0 {
				parents[int(parent)] = child
			}
		}
	}
	out := []int{pid}
	for parents[out[len(out)-1]] != 0 {
		out = append(out, parents[out[len(out)-1]])
	}
	return out
}

// command is the name of the last process of a tree.
func command(tree []int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", tree[len(tree)-1]))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// procField reads the number after name in a file of a process.
func procField(pid int, file, name string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, name); ok {
			return strconv.ParseFloat(strings.Fields(v)[0], 64)
		}
	}
	return 0, fmt.Errorf("%s of a process has no %s", file, name)
}
