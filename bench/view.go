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
	part     bool // not all of its file system, such as a file that covers another
}

// parseMounts reads mountinfo and skips lines that it does not understand. Of
// several mounts at one point the last one counts, because it covers the others.
func parseMounts(table string) []mount {
	var all []mount
	for line := range strings.Lines(table) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 6 || len(tail) < 1 {
			continue
		}
		m := mount{device: head[2], point: unescape.Replace(head[4]), fstype: tail[0], part: head[3] != "/"}
		m.readonly = slices.Contains(strings.Split(head[5], ","), "ro")
		all = slices.DeleteFunc(all, func(o mount) bool { return o.point == m.point })
		all = append(all, m)
	}
	return all
}

// unescape decodes the kernel's escapes for bytes that would otherwise split a
// line into other fields.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// view is what a command sees of the file system under Holdfast, in one
// workspace.
type view struct {
	mounts  []mount
	links   map[string]string // symbolic links of the private root, path to target
	texts   []text            // files that were made for the private root
	setting []string          // NAME=VALUE
	hidden  int               // mounts in /proc that bubblewrap does not get
}

// text is a file of the private root.
type text struct {
	path string
	size int
}

// private reports whether a mount shows nothing of the outside. For temporary
// files, which are discarded, it may show what a command needs.
func (m mount) private(device func(string) string) bool {
	if m.fstype == "overlay" {
		return m.point == "/tmp" || m.point == "/var/tmp"
	}
	return (m.fstype == "tmpfs" && !m.part || strings.HasPrefix(m.fstype, "fuse")) && device(m.point) != m.device
}

// parseRoot reads find's list of links and files of the private root, one per
// line: type, path, size and target. Files below another mount of the same
// device, such as the decoys of the home, are not part of it.
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

// bwrapArgs are bubblewrap's arguments for the same view. device returns the
// device of a path outside ("" if there is none): a mount of that device shows
// the outside, any other is private. fd is the first free descriptor for the
// texts, which bubblewrap reads in order.
//
// Where the two cannot be equal, bubblewrap has less to do: it binds a cache that
// Holdfast mounts through an overlay, and it has no masks in /proc beyond its
// own.
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

// under reports whether p is below dir; dir is not below itself.
func under(p, dir string) bool {
	return strings.HasPrefix(path.Clean(p), dir+"/")
}
