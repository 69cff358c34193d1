//go:build linux

package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
)

// namespaces are the ones that a boundary has of its own (namespaces(7)).
var namespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// expectation is the posture that the plan and the facts demand of the command
// right before it is executed.
func (l *launch) expectation() boundary.Posture {
	f := l.facts
	p := boundary.Posture{
		UID: f.uid, GID: f.gid,
		NoNewPrivs: !l.omit["no-new-privs"],
		Namespaces: map[string]bool{},
		Mounts:     l.builder.expect,
		Limits:     map[string]string{},
	}
	if f.mapped {
		p.Groups = []int{}
	}
	if !l.omit["capabilities"] {
		p.Capabilities = map[string]string{}
		for _, set := range capabilitySets {
			p.Capabilities[set] = "0000000000000000"
		}
	}
	if len(f.filter) > 0 {
		p.Seccomp = unix.SECCOMP_MODE_FILTER
	}
	for _, ns := range namespaces {
		p.Namespaces[ns] = !l.omit["namespace:"+ns]
	}
	for _, r := range f.rlimits {
		p.Limits[limitNames[r.resource]] = strconv.FormatUint(r.value, 10)
	}
	if !l.omit["descriptors"] {
		p.Descriptors = map[int]string{fdControl: "socket"}
		for fd, s := range []boundary.Stream{l.spec.In, l.spec.Out, l.spec.Err} {
			p.Descriptors[fd] = "pipe"
			if s == boundary.Terminal {
				p.Descriptors[fd] = "terminal"
			}
		}
	}
	return p
}

var capabilitySets = []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}

// limitNames are the names of /proc/PID/limits.
var limitNames = [...]string{
	unix.RLIMIT_CORE:   "Max core file size",
	unix.RLIMIT_NOFILE: "Max open files",
	unix.RLIMIT_NPROC:  "Max processes",
	unix.RLIMIT_FSIZE:  "Max file size",
	unix.RLIMIT_DATA:   "Max data size",

	unix.RLIMIT_SIGPENDING: "Max pending signals",
	unix.RLIMIT_MSGQUEUE:   "Max msgqueue size",
}

// Collect reads the posture of a process and all its threads from /proc
// (proc(5)), seen from the host.
func Collect(pid int) (boundary.Posture, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	p := boundary.Posture{Namespaces: map[string]bool{}, Limits: map[string]string{}}
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return p, err
	}
	for i, t := range tasks {
		raw, err := os.ReadFile(filepath.Join(dir, "task", t.Name(), "status"))
		if err != nil {
			return p, err
		}
		one := boundary.Posture{}
		if err := parseStatus(raw, &one); err != nil {
			return p, fmt.Errorf("thread %s: %w", t.Name(), err)
		}
		if i == 0 {
			p.UID, p.GID, p.Groups = one.UID, one.GID, one.Groups
			p.Capabilities, p.NoNewPrivs, p.Seccomp = one.Capabilities, one.NoNewPrivs, one.Seccomp
		} else if fmt.Sprint(one) != fmt.Sprint(boundary.Posture{UID: p.UID, GID: p.GID, Groups: p.Groups,
			Capabilities: p.Capabilities, NoNewPrivs: p.NoNewPrivs, Seccomp: p.Seccomp}) {
			return p, fmt.Errorf("thread %s differs from the first in ids, capabilities or filters", t.Name())
		}
	}
	for _, ns := range namespaces {
		inside, err := os.Readlink(filepath.Join(dir, "ns", ns))
		if err != nil {
			return p, err
		}
		own, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil {
			return p, err
		}
		p.Namespaces[ns] = inside != own
	}
	if p.Mounts, err = readMounts(filepath.Join(dir, "mountinfo")); err != nil {
		return p, err
	}
	if p.Limits, err = readLimits(filepath.Join(dir, "limits")); err != nil {
		return p, err
	}
	p.Descriptors, err = readDescriptors(filepath.Join(dir, "fd"))
	return p, err
}

func parseStatus(raw []byte, p *boundary.Posture) error {
	p.Capabilities = map[string]string{}
	found := 0
	for line := range strings.Lines(string(raw)) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		fields := strings.Fields(value)
		var err error
		switch {
		case key == "Uid" && len(fields) == 4:
			p.UID, err = sameID(fields)
		case key == "Gid" && len(fields) == 4:
			p.GID, err = sameID(fields)
		case key == "Groups":
			p.Groups = []int{}
			for _, f := range fields {
				g, err := strconv.Atoi(f)
				if err != nil {
					return err
				}
				p.Groups = append(p.Groups, g)
			}
		case key == "NoNewPrivs":
			p.NoNewPrivs = value == "1"
		case key == "Seccomp":
			p.Seccomp, err = strconv.Atoi(value)
		case strings.HasPrefix(key, "Cap"):
			p.Capabilities[key] = value
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		found++
	}
	if found < 10 {
		return errors.New("the kernel does not report everything that is compared")
	}
	return nil
}

// sameID returns the one id that real, effective, saved and file-system id are.
func sameID(fields []string) (int, error) {
	for _, f := range fields[1:] {
		if f != fields[0] {
			return 0, fmt.Errorf("ids differ: %v", fields)
		}
	}
	return strconv.Atoi(fields[0])
}

// readMounts parses proc_pid_mountinfo(5). Of mounts on the same point the last
// is the one that is seen.
func readMounts(path string) ([]boundary.Mount, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	byPoint := map[string]boundary.Mount{}
	for line := range strings.Lines(string(raw)) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 1 {
			return nil, fmt.Errorf("reading %s: %q is not a mount", path, line)
		}
		m := boundary.Mount{Point: unescapeMount(f[4]), FSType: g[0]}
		for _, o := range strings.Split(f[5], ",") {
			switch o {
			case "ro":
				m.ReadOnly = true
			case "nosuid":
				m.NoSuid = true
			case "nodev":
				m.NoDev = true
			case "noexec":
				m.NoExec = true
			}
		}
		byPoint[m.Point] = m
	}
	out := make([]boundary.Mount, 0, len(byPoint))
	for _, m := range byPoint {
		out = append(out, m)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Point < out[j].Point })
	return out, nil
}

// unescapeMount undoes the octal escapes of blanks and backslashes.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func readLimits(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		for _, name := range limitNames {
			if rest, ok := strings.CutPrefix(line, name+" "); ok && name != "" {
				if f := strings.Fields(rest); len(f) >= 2 && f[0] == f[1] {
					out[name] = f[0]
				}
			}
		}
	}
	return out, nil
}

func readDescriptors(dir string) (map[int]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			return nil, err
		}
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(target, "pipe:"):
			out[fd] = "pipe"
		case strings.HasPrefix(target, "socket:"):
			out[fd] = "socket"
		case strings.HasPrefix(target, "/dev/pts/"):
			out[fd] = "terminal"
		default:
			out[fd] = target
		}
	}
	return out, nil
}

// buildFilter returns the system-call filter for the running architecture. One
// that leaves out nothing was compiled when the program was built.
func (l *launch) buildFilter(level level) ([]byte, error) {
	groups := omittedGroups(l.omit)
	if len(groups) == 0 {
		return generated.ReadFile(filterFile(runtime.GOARCH, level))
	}
	program, err := filter(runtime.GOARCH, filterOptions{Omit: groups, Level: level})
	if err != nil {
		return nil, fmt.Errorf("compiling the system-call filter: %w", err)
	}
	return encodeFilter(program), nil
}

// filterFile is the generated file with the filter of a level.
func filterFile(arch string, l level) string { return fmt.Sprintf("generated/%s-%d.bpf", arch, l) }

// omittedGroups lists the groups of the filter that a test leaves out.
func omittedGroups(omit map[string]bool) []string {
	var groups []string
	for o := range omit {
		if g, ok := strings.CutPrefix(o, "seccomp:"); ok {
			groups = append(groups, g)
		}
	}
	sort.Strings(groups)
	return groups
}
