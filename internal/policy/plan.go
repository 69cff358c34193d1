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
//
// Compile makes it, and it is final but for what only a look at the trees and the
// start of the run can say: With adds that, and checks it. Nothing else assigns to
// its fields.
type Plan struct {
	Profile     string      // local, ci or production
	Sources     []Source    // what was read, in order of precedence, for records
	Workspace   string      // absolute, every component resolved; the only writable host tree by default
	File        FileID      // what Workspace was: a backend shows this or nothing
	Dir         string      // working directory inside; Workspace or below it
	Identity    Identity    // who the command is inside
	Paths       []PathRule  // what is in view besides the fixed system view; sorted by Path
	Protect     []Protected // names that the host would execute: read-only, and neither they nor their ancestors move
	HardLinks   []Protected // files that are also files outside the workspace: read-only, but free to move
	Hidden      []Protected // secrets of the workspace: unreadable, and neither they nor their ancestors move
	Env         []Env       // the whole environment inside, sorted by name
	Limits      Limits
	Allow       []HostRule   // destinations; empty means no network but loopback inside
	HostPorts   []Port       // services on the host's loopback that are reached at the same port inside
	Publish     []Port       // services inside that the host may reach on its loopback
	Credentials []Credential // secrets that stay outside, and where they may go
	Agent       *Agent       // what a preset adds for an agent program; nil without one
	Accepted    []Guarantee

	Tools []ToolRule // calls of agents' tools that their hooks deny

	Ask, Deny []GateRule // what a human must decide, and what is denied without asking
	Approvals Approvals
	Programs  Programs // that may be started

	Record      Record
	Alerts      Alerts
	Honeytokens bool // credentials that are worth nothing stand in the private home

	Review  bool     // the command works on a view of the workspace, and what it changes there waits for a human
	View    View     // how that is made
	Scratch bool     // a private directory on disk, at ScratchDir
	Outputs []string // directories for results, absolute and resolved but for the last component, which the run makes; each is in Paths too

	ProtectMore []Pattern // workspace.protect: protected besides the built-in list
	ProtectLess []Pattern // workspace.unprotect: entries of that list that stay writable
	HideMore    []Pattern // workspace.hide: secrets besides the built-in list
	HideLess    []Pattern // workspace.show: files of that list that stay readable
	Notes       []string  // what was left out or lowered, and why; for humans
}

// View is how a run in review mode sees the workspace.
type View string

// The ways.
const (
	ViewAuto    View = "auto" // ViewOverlay, or ViewCopy where the host cannot do that
	ViewOverlay View = "overlay"
	ViewCopy    View = "copy"
)

// ScratchDir is where the scratch directory is inside.
const ScratchDir = "/var/scratch"

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

// The narrowest comes first: the zero value shows nothing. A policy gives Hidden,
// Read, Copy and Write; a boundary makes trees of the two others besides.
const (
	Hidden        Access = iota // not there, or something empty in its place
	ProtectedRead               // what the host would execute: read-only, whatever is around it
	Read                        // read-only
	Copy                        // readable and writable; what is written is private and dropped at the end
	Write                       // writable: changes are changes on the host
	Device                      // writable, and keeps nothing: a device, or a tree of the kernel's own
)

func (a Access) String() string {
	return [...]string{"hidden", "protected", "read", "copy", "write", "device"}[a]
}

// Tree is a path of the view that a boundary made of a plan, with all below it,
// but for what a longer path says.
type Tree struct {
	Path   string // absolute inside, without links and dots
	Access Access
	Rule   string // that put it there, as file:line or pattern; "" for a built-in default
}

// FileID is which file of the host a path was when it was judged. The zero value
// says that it is not known.
type FileID struct{ Dev, Ino uint64 }

// PathRule puts one host path into view.
type PathRule struct {
	Path   string // absolute; every component resolved, so it names no link
	At     string // a link by which the rule was given: inside, a link of this name leads to Path, which is mounted in one place only; "" for none
	Access Access
	Origin Origin
	File   FileID // what Path was: a backend shows this or nothing
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
	IsLink bool   // the path itself is a symbolic link; its target has a row of its own if it is in the workspace
	File   FileID // what Path was: a backend mounts over this or over nothing
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

// HostKind is what may be spoken to a destination.
type HostKind string

// The kinds of a destination.
const (
	TLS  HostKind = "tls"  // TLS whose server name is the destination's; the default of port 443
	HTTP HostKind = "http" // HTTP in the clear, request by request; the default of port 80
	TCP  HostKind = "tcp"  // bytes, not looked at, as for ssh; the default of every other port
)

// HostRule is a network destination that the command may reach. Several rules
// may name the same host and port: what any of them permits is permitted.
type HostRule struct {
	Host        string   // in normal form: a DNS name in lower case without a final dot, "*.name" for every name below it, or an IP address
	Ports       []int    // at least one, 1..65535
	Kind        HostKind // never empty
	Methods     []string // of requests, upper case; empty means all
	Paths       []string // of requests: "*" stands for part of one segment, "/**" at the end for everything below; empty means all
	Credentials []string // names of Plan.Credentials that may be used there; empty means none
	Internal    bool     // it may be at an address that is not public
	Inspect     bool     // TLS is terminated, so that requests are decided one by one and answers recorded; set where Methods, Paths or Credentials need it
	Origin      Origin
}

// Credential is a secret that never enters the boundary: inside there is a
// placeholder, which is replaced on the way to the hosts that the secret is for.
type Credential struct {
	Name   string           // as the policy calls it: letters, digits, - and _
	Source CredentialSource // where the secret comes from
	Hosts  []HostPort       // where it may go; each is also in a rule of Plan.Allow with this credential
	Paths  []string         // of requests that may carry it, as HostRule.Paths; empty means all
	Header string           // name of the only header it may stand in, canonical, such as "Authorization"
	Format string           // value of that header with {} for the secret, such as "Bearer {}"; with Always it is what is set
	Always bool             // the header is set on every request to Hosts, whether or not a placeholder stands there
	Sign   string           // "" or "aws-sigv4": requests are signed afresh instead of a secret being put in
	Env    []string         // variables inside that hold the placeholder; with Sign aws-sigv4 the three of AWS are set
	Shape  string           // how the placeholder begins, such as "ghp_", so that tools take it
	TTL    time.Duration    // how long a lease lasts; never 0
	Uses   int64            // how many requests a lease is good for; 0 means any number
	Origin Origin
}

// HostPort is a place that a credential may go to.
type HostPort struct {
	Host string // in normal form; never a wildcard
	Port int
}

// CredentialSource says where a secret comes from. Exactly one of its kinds.
type CredentialSource struct {
	Kind    string            // env, file, command, vault or github-app
	Value   string            // env: the variable; file: absolute path; vault: path of the secret
	Argv    []string          // command: executed on the host, without a shell
	Options map[string]string // vault: address, and where given field, namespace and token-file; github-app: app-id, installation-id, key-file, repositories (names, a comma between), permissions (name=level, a comma between), and where given api; files are absolute paths
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
	Recording    Guarantee = "record"           // system calls are seen by the supervisor, kernel 5.19
	Interception Guarantee = "interception"     // every TCP connection arrives at the supervisor, whether or not a program knows of proxies
	HardLinks    Guarantee = "hard-links"       // no file of the workspace is also a file outside it
	MemoryLimit  Guarantee = "limits.memory"    // for all processes together
	ProcessLimit Guarantee = "limits.processes" // for all processes together
)
