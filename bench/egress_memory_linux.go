package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settle is how long connections are idle before they are counted: longer than
// what Holdfast waits before it gives a pipe back.
const settle = 1500 * time.Millisecond

// idleOnes opens connections and looks what they cost while nothing is said.
func (b *bench) idleOnes(e *egress, k *link, keep bool) error {
	n := idleConns(k.name, b.options.quick)
	before, files, err := k.occupied()
	if err != nil {
		return err
	}
	if _, _, err := k.do(order{Do: "open", Conns: n}); err != nil {
		return err
	}
	time.Sleep(settle)
	after, filesAfter, err := k.occupied()
	if err != nil {
		return err
	}
	if _, _, err := k.do(order{Do: "close"}); err != nil {
		return err
	}
	time.Sleep(settle) // the next layout must not be counted for what this one frees
	if keep {
		e.add(idleKiB, k.name, (after-before)/float64(n))
		if k.name == holdfast {
			e.add(idleFiles, k.name, float64(filesAfter-files)/float64(n))
		}
	}
	return nil
}

// occupied is the memory of a layout's processes and of the kernel in KiB, and
// how many descriptors its first process has.
func (k *link) occupied() (kib float64, files int, err error) {
	err = filepath.WalkDir(k.group.path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		for _, pid := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(pid)
			if err != nil {
				return err
			}
			pss, err := procField(n, "smaps_rollup", "Pss:")
			if err != nil {
				return err
			}
			kib += pss
		}
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the memory of %s: %w", k.name, err)
	}
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the kernel's memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch f[0] {
		case "SUnreclaim:", "PageTables:", "KernelStack:":
			n, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return 0, 0, fmt.Errorf("looking at the kernel's memory: %w", err)
			}
			kib += n
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", k.cmd.Process.Pid))
	if err != nil {
		return 0, 0, fmt.Errorf("counting descriptors: %w", err)
	}
	return kib, len(open), nil
}
