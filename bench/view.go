package main

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// mount is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	device   string // major:minor
	point    string
	readonly bool
	fstype   string
}

// parseMounts reads mountinfo and leaves out what it does not understand. Of
// several mounts at one point the last one counts, for it covers the others.
func parseMounts(table string) []mount {
	var all []mount
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 6 || len(tail) < 1 {
			continue
		}
		m := mount{device: head[2], point: unescape.Replace(head[4]), fstype: tail[0]}
		m.readonly = slices.Contains(strings.Split(head[5], ","), "ro")
		all = slices.DeleteFunc(all, func(o mount) bool { return o.point == m.point })
		all = append(all, m)
	}
	return all
}

// unescape undoes what the kernel does to the bytes that would break a line
// into other fields.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// view is what a command sees of files under Holdfast, in one workspace.
type view struct {
	mounts  []mount
	links   map[string]string // symbolic links of the private root, path to target
	texts   []text            // files of the private root that were made for it
	setting []string          // NAME=VALUE
	hidden  int               // mounts in /proc that bubblewrap is spared
}

// text is a file of the private root.
type text struct {
	path string
	size int
}

// private says whether a mount shows nothing of the outside, or for temporary files,
// which are discarded, no more than a command needs.
func (m mount) private(device func(string) string) bool {
	if m.fstype == "overlay" {
		return m.point == "/tmp" || m.point == "/var/tmp"
	}
	return (m.fstype == "tmpfs" || strings.HasPrefix(m.fstype, "fuse")) && device(m.point) != m.device
}

// parseRoot reads what find prints of links and files of the private root, a line
// each: type, path, size and target. What lies below another mount of the same
// device is no part of it: the decoys of the home are such.
func (v *view) parseRoot(list string) {
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || slices.ContainsFunc(v.mounts, func(m mount) bool { return m.point == f[1] || m.point != "/" && under(f[1], m.point) }) {
			continue
		}
		size, err := strconv.Atoi(f[2])
		switch {
		case f[0] == "l":
			v.links[f[1]] = f[3]
		case err == nil:
			v.texts = append(v.texts, text{f[1], size})
		}
	}
}

// bwrapArgs are bubblewrap's arguments for the same view. device says which
// device holds a path outside ("" when there is none): a mount of that device
// shows what is outside, any other is private. fd is the first descriptor that
// is free for the texts, which it reads in order.
//
// Where the two cannot be equal, bubblewrap has the easier part: it binds a
// cache that Holdfast lays under an overlay, and it is spared the masks in
// /proc beyond those that it makes by itself.
func (v *view) bwrapArgs(workspace string, fd int, device func(string) string) []string {
	args := []string{"--unshare-all", "--die-with-parent", "--new-session", "--hostname", "holdfast"}
	mounts := slices.Clone(v.mounts)
	slices.SortFunc(mounts, func(a, b mount) int { return cmp.Compare(a.point, b.point) })
	v.hidden = 0
	for _, m := range mounts {
		switch {
		case m.point == "/":
			continue // bubblewrap's own
		case m.point == "/proc" || m.point == "/dev":
			continue // added below
		case under(m.point, "/proc"):
			v.hidden++
			continue
		case under(m.point, "/dev"):
			continue // --dev makes the same ones
		case m.private(device):
			args = append(args, "--tmpfs", m.point)
		case m.fstype == "overlay":
			args = append(args, "--bind", m.point, m.point)
		case m.readonly:
			args = append(args, "--ro-bind", m.point, m.point)
		default:
			args = append(args, "--bind", m.point, m.point)
		}
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	for _, l := range slices.Sorted(maps.Keys(v.links)) {
		if !under(l, "/dev") {
			args = append(args, "--symlink", v.links[l], l)
		}
	}
	for i, t := range v.texts {
		args = append(args, "--file", strconv.Itoa(fd+i), t.path)
	}
	args = append(args, "--chdir", workspace, "--clearenv")
	for _, s := range v.setting {
		name, value, _ := strings.Cut(s, "=")
		args = append(args, "--setenv", name, value)
	}
	return args
}

// under says whether p lies below dir, which is not below itself.
func under(p, dir string) bool {
	return strings.HasPrefix(path.Clean(p), dir+"/")
}
