package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// newCPUMeter tries to make a control group in the unified hierarchy, whose
// cpu.stat counts time in every group, with or without controllers (4.15).
func newCPUMeter() cpuMeter {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cpuMeter{}
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return cpuMeter{}
	}
	var below string
	for line := range strings.Lines(string(own)) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			below = strings.TrimSpace(p)
		}
	}
	for _, m := range parseMounts(string(table)) {
		if m.fstype != "cgroup2" {
			continue
		}
		parent := filepath.Join(m.point, below)
		if g, err := newGroup(parent); err == nil {
			_, err := g.cpuTime()
			if errors.Join(err, g.remove()) == nil {
				return cpuMeter{parent: parent}
			}
		}
	}
	return cpuMeter{}
}

// group is a control group for the processes of one measured run.
type group struct {
	path string
	dir  *os.File // in which a child is started
}

func newGroup(parent string) (*group, error) {
	path, err := os.MkdirTemp(parent, "bench-")
	if err != nil {
		return nil, fmt.Errorf("making a control group: %w", err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a control group: %w", err), os.Remove(path))
	}
	return &group{path: path, dir: dir}, nil
}

// cpuTime is the processor time of everything that ever ran in the group or below,
// user and system.
func (g *group) cpuTime() (time.Duration, error) {
	us, err := g.field("cpu.stat", "usage_usec")
	return time.Duration(us) * time.Microsecond, err
}

// drain waits until the group is empty, so that the end of orphans is also
// counted; it kills what is left after a second.
func (g *group) drain() error {
	for i := range 2200 {
		n, err := g.field("cgroup.events", "populated")
		if err != nil || n == 0 {
			return err
		}
		if i == 1000 {
			if err := g.kill(); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("processes of a measured run do not end")
}

// kill kills everything in the group (cgroup.kill, 5.14).
func (g *group) kill() error {
	if err := os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0); err != nil {
		return fmt.Errorf("ending a control group: %w", err)
	}
	return nil
}

func (g *group) remove() error {
	if err := errors.Join(g.dir.Close(), os.Remove(g.path)); err != nil {
		return fmt.Errorf("removing a control group: %w", err)
	}
	return nil
}

// field reads one "name number" line of a file of the group.
func (g *group) field(file, name string) (int64, error) {
	f, err := os.Open(filepath.Join(g.path, file))
	if err != nil {
		return 0, fmt.Errorf("reading a control group: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseInt(v, 10, 64)
		}
	}
	return 0, fmt.Errorf("%s of a control group has no %s", file, name)
}
