package boundary

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Posture is everything about a confined process that can be observed from
// outside it. Expected comes from the plan, Collected from the kernel; the
// command is executed only when Diff finds nothing. The environment is not part of
// it: there is none before the execve that gives it.
type Posture struct {
	UID, GID     int               // effective ids, as the host sees them
	Groups       []int             // supplementary groups, as the host sees them
	Capabilities map[string]string // set name in /proc/PID/status (CapEff…) → hex mask
	NoNewPrivs   bool
	Seccomp      int             // mode of every thread: 2 is a filter (seccomp(2))
	Namespaces   map[string]bool // name in /proc/PID/ns → differs from the supervisor's
	Mounts       []Mount         // sorted by Point; the topmost mount at each point
	Descriptors  map[int]string  // number → class: pipe, terminal, control
	Limits       map[string]string
}

// Mount is one mount as the command sees it.
type Mount struct {
	Point    string
	FSType   string // "" in an expectation: whatever the host's file system is
	ReadOnly bool
	NoSuid   bool
	NoDev    bool
	NoExec   bool
}

func (m Mount) String() string {
	flags := []string{"rw"}
	if m.ReadOnly {
		flags[0] = "ro"
	}
	for _, f := range []struct {
		set  bool
		name string
	}{{m.NoSuid, "nosuid"}, {m.NoDev, "nodev"}, {m.NoExec, "noexec"}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return strings.Join(flags, ",")
}

// Diff says in words where got differs from what p expects; nothing when the
// boundary is the plan's. A host may add noexec to a mount, and it may have
// sub-mounts below a tree that was bound: those must be at least as narrow as
// the tree itself.
func (p Posture) Diff(got Posture) []string {
	var out []string
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }

	if p.UID != got.UID || p.GID != got.GID {
		note("runs as %d:%d, not %d:%d", got.UID, got.GID, p.UID, p.GID)
	}
	if p.Groups != nil && fmt.Sprint(p.Groups) != fmt.Sprint(got.Groups) {
		note("has the groups %v, not %v", got.Groups, p.Groups)
	}
	for _, set := range slices.Sorted(maps.Keys(p.Capabilities)) {
		if got.Capabilities[set] != p.Capabilities[set] {
			note("%s is %s, not %s", set, got.Capabilities[set], p.Capabilities[set])
		}
	}
	if p.NoNewPrivs && !got.NoNewPrivs {
		note("no_new_privs is not set")
	}
	if p.Seccomp != got.Seccomp {
		note("seccomp mode is %d, not %d", got.Seccomp, p.Seccomp)
	}
	for _, ns := range slices.Sorted(maps.Keys(p.Namespaces)) {
		if got.Namespaces[ns] != p.Namespaces[ns] {
			note("the %s namespace is shared with the host", ns)
		}
	}
	for _, r := range slices.Sorted(maps.Keys(p.Limits)) {
		if got.Limits[r] != p.Limits[r] {
			note("limit %s is %s, not %s", r, got.Limits[r], p.Limits[r])
		}
	}
	out = append(out, diffMounts(p.Mounts, got.Mounts)...)
	return append(out, diffDescriptors(p.Descriptors, got.Descriptors)...)
}

func diffMounts(want, got []Mount) []string {
	var out []string
	expected := make(map[string]Mount, len(want))
	for _, m := range want {
		expected[m.Point] = m
	}
	seen := make(map[string]bool, len(got))
	for _, m := range got {
		seen[m.Point] = true
		w, ok := expected[m.Point]
		if !ok {
			w, ok = enclosing(expected, m.Point)
			if !ok {
				out = append(out, fmt.Sprintf("%s is mounted but not in the plan", m.Point))
				continue
			}
			w.FSType = ""
		}
		if w.FSType != "" && w.FSType != m.FSType {
			out = append(out, fmt.Sprintf("%s is a %s, not a %s", m.Point, m.FSType, w.FSType))
		}
		if w.ReadOnly && !m.ReadOnly || w.NoSuid && !m.NoSuid || w.NoDev && !m.NoDev || w.NoExec && !m.NoExec {
			out = append(out, fmt.Sprintf("%s is mounted %s, not %s", m.Point, m, w))
		}
	}
	for _, m := range want {
		if !seen[m.Point] {
			out = append(out, m.Point+" is not mounted")
		}
	}
	return out
}

// enclosing finds the bound tree of the host that a mount point lies in.
func enclosing(expected map[string]Mount, point string) (Mount, bool) {
	for dir := point; dir != "/" && dir != ""; {
		dir = dir[:strings.LastIndexByte(dir, '/')]
		if m, ok := expected[dir]; ok && m.FSType == "" {
			return m, true
		}
	}
	return Mount{}, false
}

func diffDescriptors(want, got map[int]string) []string {
	var out []string
	if want == nil {
		return nil
	}
	for fd, class := range got {
		if want[fd] == "" {
			out = append(out, fmt.Sprintf("descriptor %d (%s) is open", fd, class))
		} else if want[fd] != class {
			out = append(out, fmt.Sprintf("descriptor %d is a %s, not a %s", fd, class, want[fd]))
		}
	}
	for fd, class := range want {
		if got[fd] == "" {
			out = append(out, fmt.Sprintf("descriptor %d (%s) is closed", fd, class))
		}
	}
	slices.Sort(out)
	return out
}
