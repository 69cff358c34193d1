//go:build linux

package native

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// hidden has what the launch needs and must not be in view: it is detached before the
// command runs.
const hidden = "/.holdfast"

// isDir looks at a path in which there is no link.
func isDir(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.IsDir()
}

// openSources makes detached copies of everything that is bound from the host,
// before the new root hides any of it.
func (b *builder) openSources() {
	if b.facts.privProc {
		proc := b.slot()
		b.filesystem("proc", "proc", [][2]string{{"hidepid", "invisible"}}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC, proc)
		b.trees["/proc"] = proc
	}
	for _, p := range b.parts {
		if p.source != "" {
			b.trees[p.at] = b.openSource(p)
		}
	}
	if store := storePart(b.spec); store.at != "" {
		store.fd = b.facts.trees[store.at]
		b.trees[store.at] = b.openSource(store)
	}
	for _, d := range devices {
		name := "/dev/" + d
		b.trees[name] = b.cloneMount(name, name)
		b.attributes(name+": restrict", b.trees[name], unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
}

func (b *builder) openSource(p part) ref {
	tree := b.slot()
	if p.fd != 0 { // made and restricted by the supervisor
		b.call("take "+p.source, noCall, []any{p.fd}, into(tree))
		return tree
	}
	fd := b.slot()
	b.openNoLinks("open "+p.source, p.source, 0, fd)
	b.compare(fd, judgedFile(b.spec, p), p.source)
	b.cloneTree("clone "+p.source, fd, tree)
	b.closeFD(fd)
	b.attributes("restrict "+p.at, tree, p.attributes(b.omit))
	return tree
}

// attributes are the mount attributes of a part bound from the host.
func (p part) attributes(omit map[string]bool) uint64 {
	attrs := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if p.access != policy.Write && !omit["readonly"] {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	return attrs
}

// devices are the device nodes in view. tty is the controlling terminal of
// the process that opens it, so it is the boundary's own.
var devices = []string{"full", "null", "random", "tty", "urandom", "zero"}

// newRoot changes to an empty root and releases the host's.
func (b *builder) newRoot() {
	root, fstype := b.slot(), "tmpfs"
	if b.facts.tripwire {
		fstype = "fuse"
		b.tripwireRoot(root)
	} else {
		b.filesystem("root", fstype, [][2]string{{"mode", "0755"}, {"size", "4m"}, {"nr_inodes", "65536"}},
			unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, root)
	}
	b.attach("attach root", root, "/tmp")
	b.call("chdir to root", unix.SYS_CHDIR, []any{b.str("/tmp")})
	dot := b.str(".")
	b.call("pivot_root", unix.SYS_PIVOT_ROOT, []any{dot, dot})
	b.call("detach the host's root", unix.SYS_UMOUNT2, []any{dot, unix.MNT_DETACH})
	b.call("chdir to /", unix.SYS_CHDIR, []any{b.str("/")})
	clear(b.over)
	b.expectMount("/", fstype, true, true, false)
}

// expectMount notes a mount for the attestation. No mount honours set-user-ID.
func (b *builder) expectMount(at, fstype string, ro, nodev, noexec bool) {
	b.expect = append(b.expect, boundary.Mount{Point: at, FSType: fstype, ReadOnly: ro, NoSuid: true, NoDev: nodev, NoExec: noexec})
}

// populate fills the new root.
func (b *builder) populate() {
	b.scratch()
	for _, p := range b.parts {
		b.pinAbove(p.at)
		if s, ok := b.scratchAt(p); ok {
			b.mkdir(p.at, s.mode)
			b.attachScratch(s)
			continue
		}
		b.mountPoint(p)
		switch {
		case p.layers:
			b.attachView(p)
		case p.access == policy.Copy:
			b.attachCopy(p)
		default:
			b.attach("attach "+p.at, b.trees[p.at], p.at)
			b.expectMount(p.at, "", p.access != policy.Write && !b.omit["readonly"], true, false)
		}
	}
	for _, r := range b.spec.Plan.Paths {
		if r.Access == policy.Hidden && b.hostTree(r.Path) != nil {
			b.hide(pin{path: r.Path, dir: isDir(r.Path), file: r.File})
		}
	}
	for _, l := range append(b.system.links, b.ruleLinks()...) {
		b.mkdir(filepath.Dir(l.at), 0o755)
		b.link(l)
	}
	for _, f := range b.system.files {
		if slices.ContainsFunc(b.spec.Files, func(own boundary.File) bool { return own.Path == f.at }) {
			continue
		}
		b.mkdir(filepath.Dir(f.at), 0o755)
		b.file(f.at, f.content, 0o444)
	}
	b.etc()
	b.ownFiles()
	b.dev()
	b.proc()
}

// ruleLinks are the names of policy paths that are links on the host: inside
// they are links too, so that a path has one mount and one access. Where a host
// tree is bound, the link is there already.
func (b *builder) ruleLinks() []viewLink {
	var out []viewLink
	for _, r := range b.spec.Plan.Paths {
		if r.Access == policy.Hidden || r.At == "" || r.At == r.Path || b.hostTree(r.At) != nil || b.made[r.At] {
			continue
		}
		if throughLink(r.At, b.spec.Plan.Paths) {
			continue
		}
		b.made[r.At] = true
		out = append(out, viewLink{r.At, r.Path})
	}
	return out
}

// throughLink reports whether a name lies below another link of the policy's, and so
// is there when that is.
func throughLink(at string, rules []policy.PathRule) bool {
	return slices.ContainsFunc(rules, func(r policy.PathRule) bool {
		return r.At != "" && r.At != r.Path && at != r.At && below(at, r.At)
	})
}

// attachCopy lays a private writable layer over a host directory: the layer is
// on the private storage and goes with it. For a file, the copy is a plain
// read-only bind.
func (b *builder) attachCopy(p part) {
	if !p.dir {
		b.attach("attach "+p.at, b.trees[p.at], p.at)
		b.expectMount(p.at, "", true, true, false)
		return
	}
	n := len(b.expect)
	lower, upper, work := fmt.Sprintf("%s/lower%d", hidden, n), fmt.Sprintf("%s/upper%d", hidden, n), fmt.Sprintf("%s/work%d", hidden, n)
	for _, d := range []string{lower, upper, work} {
		b.mkdirOne(d, 0o755)
	}
	b.attach("attach lower layer of "+p.at, b.trees[p.at], lower)
	b.attachOverlay("layers of "+p.at, lower, upper, work, p.at)
}

// etc writes the files that name users and hosts: the host's own would reveal the other
// users of the machine, and its name servers.
func (b *builder) etc() {
	id := b.spec.Plan.Identity
	name := id.Name
	if name == "" || name == "root" {
		name = "agent"
	}
	b.mkdir("/etc", 0o755)
	b.file("/etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%d:%d::%s:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		name, b.facts.uid, b.facts.gid, id.Home), 0o444)
	b.file("/etc/group", fmt.Sprintf("root:x:0:\n%s:x:%d:\ntty:x:5:\nnogroup:x:65534:\n", name, b.facts.gid), 0o444)
	b.file("/etc/hosts", "127.0.0.1\tlocalhost holdfast\n::1\tlocalhost ip6-localhost ip6-loopback holdfast\n", 0o444)
	b.file("/etc/hostname", "holdfast\n", 0o444)
	b.file("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n", 0o444)
	b.file("/etc/resolv.conf", b.resolvConf(), 0o444)
	b.link(viewLink{"/etc/mtab", "/proc/self/mounts"})
	b.mkdir("/var", 0o755)
	b.link(viewLink{"/var/run", "../run"})
	b.link(viewLink{"/var/lock", "../run/lock"})
}

// resolvConf names the door for names, where there is one (resolv.conf(5)).
func (b *builder) resolvConf() string {
	if b.spec.Network == nil {
		return ""
	}
	return "nameserver " + boundary.NameServer + "\noptions edns0\n"
}

// ownFiles puts the files of the run into view. One in a host tree
// covers the host's.
func (b *builder) ownFiles() {
	for i, f := range b.spec.Files {
		mode := int(f.Mode)
		if mode == 0 {
			mode = 0o444
		}
		if b.hostTree(f.Path) == nil {
			b.mkdir(filepath.Dir(f.Path), 0o755)
			b.file(f.Path, string(f.Content), mode)
			continue
		}
		from := fmt.Sprintf("%s/file%d", hidden, i)
		b.file(from, string(f.Content), mode)
		b.cover(from, "tmpfs", pin{path: f.Path})
	}
}

// mostTerminals is how many a run may have: all instances of devpts but the
// host's own share one number (kernel.pty.max, kernel.pty.reserve).
const mostTerminals = "512"

// dev fills /dev.
func (b *builder) dev() {
	b.mkdir("/dev", 0o755)
	for _, d := range devices {
		at := "/dev/" + d
		b.mountFile(at)
		b.attach("attach "+at, b.trees[at], at)
		b.expectMount(at, "", false, false, true)
	}
	for _, l := range []viewLink{{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
		{"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"}} {
		b.link(l)
	}
	pts := b.slot()
	b.mkdir("/dev/pts", 0o755)
	b.filesystem("terminals", "devpts", [][2]string{{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", mostTerminals}}, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, pts)
	b.attach("attach /dev/pts", pts, "/dev/pts")
	b.expectMount("/dev/pts", "devpts", false, false, true)
}

// proc attaches /proc and masks what reveals facts about the machine or controls it.
func (b *builder) proc() {
	b.mkdir("/proc", 0o555)
	if !b.facts.privProc {
		return
	}
	b.attach("attach /proc", b.trees["/proc"], "/proc")
	b.expectMount("/proc", "proc", false, true, true)
	for _, l := range b.facts.userLimits {
		b.writeFile("limit "+l.name, "/proc/sys/user/"+l.name, strconv.FormatInt(l.value, 10))
	}
	if b.omit["proc-masks"] {
		return
	}
	for _, m := range b.facts.masks {
		from, typ := hidden+"/empty", "tmpfs"
		switch {
		case m.readonly:
			from, typ = m.path, "proc"
		case m.dir:
			from = hidden + "/emptydir"
		}
		tree := b.cloneMount("mask "+m.path, from)
		b.attributes("mask "+m.path+": restrict", tree, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		b.attach("mask "+m.path, tree, m.path)
		b.expectMount(m.path, typ, true, true, true)
	}
}
