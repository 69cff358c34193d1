package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settle is how long connections are idle before they are counted: longer than
// Holdfast waits before it releases a pipe.
const settle = 1500 * time.Millisecond

// idleRounds is how often every layout is started again: a program keeps freed
// memory for later use, which would look free.
const idleRounds = 3

// slabs are the kernel caches that contain the data of a connection.
var slabs = []string{"TCP", "TCPv6", "sock_inode_cache", "filp", "dentry", "eventpoll_epi"}

// measureIdleConns opens connections and measures what they cost while idle.
func (a *arena) measureIdleConns(e *egress) error {
	var out []string
	for range idleRounds {
		for _, l := range a.layouts() {
			if !slices.Contains(e.layouts, l.name) || slices.Contains(out, l.name) {
				continue
			}
			k, err := a.startLayout(l)
			if err == nil {
				err = errors.Join(k.openIdleConns(e), k.end())
			}
			if err != nil {
				e.failed = append(e.failed, "idle connections: "+err.Error())
				out = append(out, l.name)
			}
			if a.b.ctx.Err() != nil {
				return errors.New("interrupted")
			}
		}
	}
	return nil
}

func (k *link) openIdleConns(e *egress) error {
	n := idleConns(k.name, e.quick)
	before, files, err := k.memoryUse()
	if err != nil {
		return err
	}
	if _, _, err := k.sendOrder(order{Do: "open", Conns: n}); err != nil {
		return err
	}
	time.Sleep(settle)
	after, filesAfter, err := k.memoryUse()
	if err != nil {
		return err
	}
	e.add(idleKiB, k.name, (after-before)/float64(n))
	if k.name == holdfast {
		e.add(idleFiles, k.name, float64(filesAfter-files)/float64(n))
	}
	return nil
}

// memoryUse is the memory of a layout's processes and of the kernel in KiB, and
// the number of descriptors of its first process.
func (k *link) memoryUse() (kib float64, files int, err error) {
	pids, err := k.group.pids()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the memory use of %s: %w", k.name, err)
	}
	for _, pid := range pids {
		pss, err := procField(pid, "smaps_rollup", "Pss:")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading the memory use of %s: %w", k.name, err)
		}
		kib += pss
	}
	kernel, err := kernelKiB()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the kernel's memory use: %w", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("counting descriptors: %w", err)
	}
	return kib + kernel, len(open), nil
}

// pids lists the processes in the group and below it.
func (g *group) pids() ([]int, error) {
	var all []int
	err := filepath.WalkDir(g.path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			all = append(all, pid)
		}
		return nil
	})
	return all, err
}

// kernelKiB is the kernel memory of the kinds that connections and processes
// need. It is that of the whole machine: other work disturbs it.
func kernelKiB() (float64, error) {
	kib := 0.0
	text, err := os.ReadFile("/proc/slabinfo") // slabinfo(5): name, objects in use, all, bytes of one
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if !slices.Contains(slabs, f[0]) {
			continue
		}
		used, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			return 0, err
		}
		size, err := strconv.ParseFloat(f[3], 64)
		if err != nil {
			return 0, err
		}
		kib += used * size / 1024
	}
	if text, err = os.ReadFile("/proc/meminfo"); err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] != "PageTables:" && f[0] != "KernelStack:" {
			continue
		}
		n, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			return 0, err
		}
		kib += n
	}
	return kib, nil
}
