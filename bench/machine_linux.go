package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine describes the hardware and the kernel, without identifying this
// particular machine.
func machine() string {
	model, cores := "unknown processor", runtime.NumCPU()
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	memory := "unknown memory"
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kb int64
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kb); err == nil {
			memory = fmt.Sprintf("%d GiB", (kb+1<<19)>>20)
		}
	}
	kernel := "unknown"
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%s, %d cores, %s, Linux %s (%s)", model, cores, memory, kernel, runtime.GOARCH)
}

// load is the load average of the last minute; "unknown" if it cannot be read.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// versionsOf lists the versions of the programs, after Holdfast's own.
func (b *bench) versionsOf(programs [][]string) []string {
	commit := "unknown commit"
	git := exec.CommandContext(b.ctx, "git", "rev-parse", "--short", "HEAD")
	git.Dir = b.root
	if out, err := git.Output(); err == nil {
		commit = strings.TrimSpace(string(out))
	}
	compiler := runtime.Version()
	if info, ok := debug.ReadBuildInfo(); ok {
		compiler = info.GoVersion
	}
	all := []string{"holdfast " + commit + " (" + compiler + ")"}
	for _, p := range programs {
		out, err := b.runAs("", p[0], p[1:]...)
		if err != nil {
			all = append(all, p[0]+": not found")
			continue
		}
		first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
		if !strings.Contains(first, p[0]) {
			first = p[0] + " " + first
		}
		all = append(all, first)
	}
	return all
}

func (b *bench) userKind() string {
	if b.user.uid == 0 {
		return "root"
	}
	if os.Geteuid() == 0 {
		return "an ordinary user (" + b.user.name + "), started by root"
	}
	return "an ordinary user"
}
