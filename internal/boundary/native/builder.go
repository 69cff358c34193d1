//go:build linux

package native

import (
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// facts are what the supervisor found out or prepared before the launch.
type facts struct {
	uid, gid   int    // ids of everything inside, the same numbers inside and outside
	mapped     bool   // the supervisor writes the id maps and the task takes the ids itself (root)
	gate       bool   // the first process inside waits for the supervisor before it continues
	landlock   int    // ABI, 0 for none
	filter     []byte // struct sock_filter, one after another
	level      level  // of filter
	tripwire   bool   // the root of the view is served by the supervisor
	masks      []mask
	userLimits []userLimit
	cgroups    []group
	trees      map[string]int // place inside → inherited descriptor of its detached tree
	rlimits    []rlimit
	environ    []string
	privProc   bool
	tty        bool
	rung       boundary.Rung // how connections are intercepted
	ipv6       bool          // the host has it
	portal     int           // family of the sockets that the portal hands out
	orphanEnv  []string
}

type rlimit struct {
	resource int
	value    uint64
}

// userLimit is a file of /proc/sys/user and what is written to it.
type userLimit struct {
	name  string
	value int64
}

// mask is a part of /proc that is hidden or made read-only.
type mask struct {
	path     string
	dir      bool
	readonly bool // show it, but read-only
}

// builder writes the launch program for one run. The methods that append steps
// follow one another here in the order in which the steps run.
type builder struct {
	*program
	spec   boundary.Spec
	facts  facts
	omit   map[string]bool // controls left out: by tests only
	empty  uint64          // address of ""
	stat   uint64          // address of a struct statx; 0 for none yet
	made   map[string]bool
	own    map[string]bool  // files and links that the launch makes by themselves
	over   map[string]bool  // where something is attached: whether it is another file system than the root
	served []boundary.Entry // what is in the root that the supervisor serves, before anything asks it
	pinned map[string]bool  // directories that cannot be renamed, for something is mounted over them
	parts  []part
	system system
	trees  map[string]ref
	expect []boundary.Mount
	umask  ref
	slave  ref
	cmdPID ref
	doors  int // that the program hands out
}

// begin begins an empty program.
func (b *builder) begin() {
	b.program = newProgram()
	b.empty = b.str("")
	b.made, b.own, b.pinned, b.over = map[string]bool{"/": true}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	b.trees = map[string]ref{}
}

// build writes the whole program.
func (b *builder) build() {
	b.begin()
	b.parts = b.layout()
	inside, command := &label{}, &label{}

	b.janitor(inside)
	b.placeLabel(inside)
	b.enter()
	b.openSources()
	b.newRoot()
	b.populate()
	b.protect()
	b.seal()
	b.terminal()
	b.dropPrivileges()
	b.restrict()
	b.supervise(command)
	b.placeLabel(command)
	b.command()
}

// janitor is the first process. It stays outside, in the namespaces of the
// user, so that it can clean up when the supervisor cannot: it waits for the
// supervisor's message or death, ends everything inside, removes the control
// groups, and after a death runs the orphaned command.
func (b *builder) janitor(inside *label) {
	var pid, goodbye ref
	b.stay(func() { pid, goodbye = b.slot(), b.slot() })
	b.call("setsid", unix.SYS_SETSID, nil)
	b.call("name janitor", unix.SYS_PRCTL, []any{unix.PR_SET_NAME, b.str("holdfast-jan"), 0, 0, 0}, ignored())
	b.clone("clone into new namespaces", b.namespaces(), pid, inside)
	// Its memory reveals what the run is, and its descriptors lead to the supervisor.
	b.call("hide janitor", unix.SYS_PRCTL, []any{unix.PR_SET_DUMPABLE, 0, 0, 0, 0})
	b.message("report first process", msgSpawned, b.copyField(pid, 1))
	b.call("close standard descriptors", unix.SYS_CLOSE_RANGE, []any{0, 2, 0}, ignored())
	b.call("close control", unix.SYS_CLOSE, []any{fdControl}, ignored()) // so that its end is the end of the first process alone
	b.call("close portal", unix.SYS_CLOSE, []any{fdPortal}, ignored())
	b.call("close sign of life", unix.SYS_CLOSE, []any{fdAlive}, ignored())
	b.call("close trees", unix.SYS_CLOSE_RANGE, []any{fdTrees, 1<<32 - 1, 0}, ignored())
	b.leave(func() { b.guard(pid, goodbye) })
}

// namespaces are the flags of the inside's own namespaces: all, except those that a
// test leaves out.
func (b *builder) namespaces() int {
	flags := cloneNamespaces
	for name, flag := range map[string]int{
		"cgroup": unix.CLONE_NEWCGROUP, "ipc": unix.CLONE_NEWIPC, "net": unix.CLONE_NEWNET,
		"pid": unix.CLONE_NEWPID, "uts": unix.CLONE_NEWUTS,
	} {
		if b.omit["namespace:"+name] {
			flags &^= flag
		}
	}
	return flags
}

// guard waits for the end of the supervisor, kills what is inside, removes the control
// groups, and runs the orphaned command if the supervisor died.
func (b *builder) guard(pid, goodbye ref) {
	b.call("wait for the supervisor", unix.SYS_READ, []any{fdJanitor, b.words(0), 8}, into(goodbye), ignored())
	b.call("kill inside", unix.SYS_KILL, []any{pid, int(unix.SIGKILL)}, ignored())
	b.call("wait for inside", unix.SYS_WAIT4, []any{pid, 0, unix.WALL, 0}, ignored())
	for _, g := range b.facts.cgroups {
		b.call("rmdir "+g.dir, unix.SYS_UNLINKAT, []any{unix.AT_FDCWD, b.str(g.dir), unix.AT_REMOVEDIR}, ignored())
	}
	if len(b.spec.Orphaned) == 0 {
		b.exit(0)
		return
	}
	orphan := &label{}
	b.test("supervisor died?", goodbye, 0, orphan)
	b.exit(0)
	b.placeLabel(orphan)
	b.call("execute orphaned command", unix.SYS_EXECVEAT, []any{fdBinary, b.str(""),
		b.strings(b.spec.Orphaned), b.strings(b.facts.orphanEnv), unix.AT_EMPTY_PATH})
}

// copyField makes word i of a message hold the value at r when the message is
// sent: the result is stored there too.
func (b *builder) copyField(r ref, i int) func(uint64) {
	return func(addr uint64) {
		b.call("fill message", noCall, []any{r}, into(ref(addr+8*uint64(i))), ignored())
	}
}

// enter makes the first process inside what the rest of the launch needs: its
// ids, its loopback, a mount namespace that shares nothing.
func (b *builder) enter() {
	f := b.facts
	b.call("close janitor socket", unix.SYS_CLOSE, []any{fdJanitor})
	b.call("close binary", unix.SYS_CLOSE, []any{fdBinary})
	b.call("close janitor's side", unix.SYS_CLOSE, []any{fdHeld})
	b.dieWithParent()
	b.enterGroups()
	if !f.mapped {
		b.mapIDs()
	}
	if f.gate {
		b.await("wait for go")
	}
	if b.spec.Network != nil && b.spec.Network.Intercept && f.rung == boundary.Tun {
		b.tun() // the device is root's on most machines: before the ids of the task
	}
	if f.tripwire {
		b.openRootDevice() // likewise
	}
	if f.mapped {
		b.call("drop groups", unix.SYS_SETGROUPS, []any{0, 0})
		b.call("take group id", unix.SYS_SETRESGID, []any{f.gid, f.gid, f.gid})
		b.call("take user id", unix.SYS_SETRESUID, []any{f.uid, f.uid, f.uid})
		b.dieWithParent() // a change of ids clears it, prctl(2)
	}
	b.umask = b.slot()
	b.call("umask", unix.SYS_UMASK, []any{0}, into(b.umask))
	if !b.omit["namespace:net"] {
		b.loopback()
		b.network()
	}
	b.call("make mounts private", unix.SYS_MOUNT, []any{0, b.str("/"), 0, unix.MS_REC | unix.MS_PRIVATE, 0})
}

// dieWithParent asks for SIGKILL when the janitor dies. It is single-threaded,
// so the per-thread meaning of the call is the meaning that is wanted. A janitor
// that was dead before sends no signal, and its number says nothing from another
// pid namespace: its side of the socket is closed then (do_exit closes files
// before it looks after children).
func (b *builder) dieWithParent() {
	b.call("die with parent", unix.SYS_PRCTL, []any{unix.PR_SET_PDEATHSIG, int(unix.SIGKILL), 0, 0, 0})
	b.call("parent is alive", unix.SYS_RECVFROM, []any{fdAlive, b.words(0), 8, unix.MSG_DONTWAIT, 0, 0}, want(-int64(unix.EAGAIN)))
}

// loopback brings up lo in the new network namespace (netdevice(7)).
func (b *builder) loopback() {
	sock := b.slot()
	request := make([]byte, 40)
	copy(request, "lo")
	request[16] = unix.IFF_UP | unix.IFF_RUNNING
	b.call("socket for loopback", unix.SYS_SOCKET, []any{unix.AF_INET, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0}, into(sock))
	b.call("bring up loopback", unix.SYS_IOCTL, []any{sock, unix.SIOCSIFFLAGS, b.bytes(request)})
	b.closeFD(sock)
}

// layout decides what is mounted where.
func (b *builder) layout() []part {
	b.system = systemParts()
	parts := append(b.system.parts, taskParts(b.spec)...)
	for i := range parts {
		parts[i].fd = b.facts.trees[parts[i].at]
	}
	for _, s := range scratchParts(b.spec.Plan.Identity.Home) {
		parts = append(parts, part{at: s.at, access: policy.Write, dir: true, exec: s.exec})
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].at < parts[j].at })
	return dropDuplicates(parts)
}

// taskParts are the host trees of this run: the workspace or the view of it, and
// what the policy names, which may be the workspace with another access. The
// task's own user owns them inside.
func taskParts(spec boundary.Spec) []part {
	plan := spec.Plan
	parts := []part{workspacePart(spec)}
	if spec.Scratch != "" {
		parts = append(parts, part{source: spec.Scratch, at: policy.ScratchDir, access: policy.Write, dir: true, exec: true})
	}
	add := func(r policy.PathRule, at string) {
		if r.Access == policy.Copy && plan.Accepts(policy.CopyLayers) {
			r.Access = policy.Read
		}
		parts = append(parts, part{source: r.Path, at: at, access: r.Access, dir: isDir(r.Path), exec: true})
	}
	for _, r := range plan.Paths {
		if r.Access == policy.Hidden {
			continue
		}
		add(r, r.Path)
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].at < parts[j].at })
	return dropDuplicates(parts)
}

// dropDuplicates keeps the last part of those at one place: the workspace and
// the policy after the system view.
func dropDuplicates(parts []part) []part {
	out := parts[:0]
	for i, p := range parts {
		if i+1 < len(parts) && parts[i+1].at == p.at {
			continue
		}
		out = append(out, p)
	}
	return out
}

// below reports whether path is dir or in it.
func below(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// hostTree returns the part bound from the host that path lies in, if any:
// mount points in there exist already and are never made.
func (b *builder) hostTree(path string) *part {
	var found *part
	for i := range b.parts {
		p := &b.parts[i]
		if path != p.at && below(path, p.at) {
			found = p
		}
	}
	if found != nil && found.source == "" {
		return nil
	}
	return found
}

// mountPoint makes the place where a part is attached.
func (b *builder) mountPoint(p part) {
	if b.hostTree(p.at) != nil {
		return
	}
	if p.dir {
		b.mkdir(p.at, 0o755)
		return
	}
	b.mkdir(filepath.Dir(p.at), 0o755)
	if !b.made[p.at] {
		b.made[p.at] = true
		b.mountFile(p.at, or(-int64(unix.EEXIST)))
	}
}
