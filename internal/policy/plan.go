package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// Plan is the effective policy of one run: resolved for this user, this host
// and this workspace, and nothing left to look up. A backend enforces exactly
// what stands here.
type Plan struct {
	Profile   string      // local, ci or production
	Sources   []Source    // what was read, in order of precedence, for records
	Workspace string      // absolute, every component resolved; the only writable host tree by default
	Dir       string      // working directory inside; Workspace or below it
	Identity  Identity    // who the command is inside
	Paths     []PathRule  // what is in view besides the fixed system view; sorted by Path
	Protect   []Protected // names that the host would execute: read-only, and neither they nor their ancestors move
	HardLinks []Protected // files that are also files outside the workspace: read-only, but free to move
	Hidden    []Protected // secrets of the workspace: unreadable, and neither they nor their ancestors move
	Env       []Env       // the whole environment inside, sorted by name
	Limits    Limits
	Allow     []HostRule // destinations; empty means no network but loopback inside
	Publish   []Port     // services inside that the host may reach on its loopback
	Accepted  []Guarantee

	ProtectMore []Pattern // workspace.protect: protected besides the built-in list
	ProtectLess []Pattern // workspace.unprotect: entries of that list that stay writable
	HideMore    []Pattern // workspace.hide: secrets besides the built-in list
	HideLess    []Pattern // workspace.show: files of that list that stay readable
	Notes       []string  // what was left out or lowered, and why; for humans
}

// Pattern is a name or a path pattern (path.Match) that applies at any depth of
// the workspace, or with a leading slash at its top only.
type Pattern struct {
	Text   string
	Origin Origin
}

// Accepts says whether the human accepted the loss of g by name.
func (p Plan) Accepts(g Guarantee) bool { return slices.Contains(p.Accepted, g) }

// Within returns the absolute path of a protected row of the plan.
func (p Plan) Within(r Protected) string {
	if r.Root != "" {
		return filepath.Join(r.Root, r.Path)
	}
	return filepath.Join(p.Workspace, r.Path)
}

// Source is a policy that contributed to a Plan.
type Source struct {
	Name   string // file path, "profile local", "--rw"
	SHA256 string // of its bytes, hex; "" for flags
}

// Origin says where an entry of a Plan comes from.
type Origin struct {
	File string // path, "profile local", or a flag such as "--rw"
	Line int    // 1-based; 0 where lines mean nothing
}

func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// Access is how a path appears inside.
type Access int

// The zero value shows nothing.
const (
	Hidden Access = iota
	Read          // bound read-only
	Copy          // readable; writes go to a private layer that is dropped at the end
	Write         // bound writable: changes are changes on the host
)

func (a Access) String() string {
	return [...]string{"hidden", "read", "copy", "write"}[a]
}

// PathRule puts one host path into view.
type PathRule struct {
	Path   string // absolute; every component resolved, so it names no link
	At     string // a link by which the rule was given: inside, a link of this name leads to Path, which is mounted in one place only; "" for none
	Access Access
	Origin Origin
}

// Protected is a path below the workspace that the host would later execute
// (or obey), and that is therefore read-only inside although the workspace is
// writable. Found by package workspace, enforced by the backend: the path is
// read-only, and neither it nor an ancestor up to the workspace can be renamed
// or removed.
type Protected struct {
	Root   string // absolute directory that Path is below; "" means Plan.Workspace. Set for the git directory of a worktree whose repository is elsewhere
	Path   string // relative to Root, cleaned, no leading ./
	Rule   string // pattern of the list that matched, for messages
	Reason string // what on the host executes it
	IsDir  bool
	IsLink bool // the path itself is a symbolic link; its target has a row of its own if it is in the workspace
}

// Identity is who the command is inside.
type Identity struct {
	UID, GID int    // as seen inside
	Name     string // user name shown inside
	Home     string // absolute path of the private home inside
}

// Env is one variable of the environment inside.
type Env struct {
	Name, Value string
	Origin      Origin
}

// Limits are upper bounds for everything inside together, unless said
// otherwise. Zero means the profile's default was explicitly lifted.
type Limits struct {
	Memory    int64         // bytes
	Processes int64         // processes and threads
	Files     int64         // open descriptors a process
	Disk      int64         // bytes of private storage (home, /tmp, /dev/shm) together
	FileSize  int64         // bytes a file may grow to
	CPUs      float64       // cores; 0 means all
	Time      time.Duration // wall clock of the run
}

// HostRule is a network destination. The egress that enforces it is a later
// capability; until then a plan with any HostRule is refused.
type HostRule struct {
	Host   string
	Ports  []int
	Origin Origin
}

// Port is a TCP port that is served inside and shown on the host's loopback.
type Port struct {
	Host, Inside int // 1..65535
	Origin       Origin
}

// Guarantee is one thing the boundary promises, by the name that doctor shows
// and --without takes.
type Guarantee string

// The guarantees that a host may be unable to keep.
const (
	Namespaces   Guarantee = "namespaces"       // user, mount, pid, net, ipc, uts and cgroup namespaces
	PrivateProc  Guarantee = "private-proc"     // a /proc of its own that shows only what is inside
	Landlock     Guarantee = "landlock"         // second wall over the view, kernel 5.13
	Scopes       Guarantee = "landlock-scopes"  // abstract sockets and signals scoped by Landlock, kernel 6.12
	Seccomp      Guarantee = "seccomp"          // system-call filter
	TaskID       Guarantee = "task-id"          // as root: a user id of its own through an idmapped mount
	CopyLayers   Guarantee = "copy-on-write"    // overlay layers for Access Copy
	HardLinks    Guarantee = "hard-links"       // no file of the workspace is also a file outside it
	MemoryLimit  Guarantee = "limits.memory"    // for all processes together
	ProcessLimit Guarantee = "limits.processes" // for all processes together
)
