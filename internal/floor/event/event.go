// Package event is the shared vocabulary of Holdfast: what was attempted, by which
// process, on what, and what was decided. It has no behaviour and imports nothing of
// this module, so that every component can use it without depending on another.
package event

import (
	"fmt"
	"time"
)

// Verdict is what was decided about one attempt.
type Verdict int

// The zero value is Unknown, so that a forgotten assignment never reads as
// permission. It is also the answer where something could not be found out, such as the object of
// a call whose process died while it was read.
const (
	Unknown Verdict = iota
	Denied
	Allowed
)

func (v Verdict) String() string {
	switch v {
	case Denied:
		return "denied"
	case Allowed:
		return "allowed"
	default:
		return "unknown"
	}
}

// MarshalText writes the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the word.
func (v *Verdict) UnmarshalText(text []byte) error {
	for _, w := range []Verdict{Unknown, Denied, Allowed} {
		if w.String() == string(text) {
			*v = w
			return nil
		}
	}
	return fmt.Errorf("%q is not a verdict", text)
}

// Sensor is the part that saw or decided something. Each numbers its events, so that a
// reader notices a missing one.
type Sensor string

// The sensors.
const (
	Task     Sensor = "task"     // the supervisor's own: start, end, attestation, limits, quarantine
	Syscall  Sensor = "syscall"  // system calls, by notification
	Tripwire Sensor = "tripwire" // look-ups outside the view, by the file system of its root
	Landlock Sensor = "landlock" // the kernel's audit records
	Honey    Sensor = "honey"    // fake credentials
	Egress   Sensor = "egress"   // names, connections, requests
	Broker   Sensor = "broker"   // credentials
	Detect   Sensor = "detect"   // alerts
	Gateway  Sensor = "gateway"  // messages between an agent outside and an MCP server inside
	Agent    Sensor = "agent"    // what an agent's own hooks say of its tool calls: information from inside, which nothing that is allowed rests on
	Approve  Sensor = "approve"  // what a human is asked and answers, and what a rule of consent decides
	Record   Sensor = "record"   // the log itself: what it dropped or summarised
)

// Event is one attempt, decision or change of state. Strings are bytes as they
// came: they may hold control characters and need not be UTF-8.
type Event struct {
	Seq      uint64    // place in the log of its session, from 1; set by the log
	Time     time.Time // wall clock
	Session  string
	Sensor   Sensor
	N        uint64 // which of its sensor's events this is, from 1, without gaps
	Action   string // verb of the kind, one of the constants below
	Object   string // what it was about, as asked: a path, host:port, name of a system call, credential or tool
	Resolved string // the object as it was found: for a path absolute, without links and dots; "" when it is Object or could not be found out
	Verdict  Verdict
	Layer    string // what denied, see the Layer constants; "" when nothing did
	Rule     string // policy rule that decided, as file:line; "" for a built-in default
	Error    string // name of the error that the asker got or will get, such as "ENOENT"; "" for none or unknown
	Process  Process
	Detail   map[string]string
}

// DetailKept is the detail of a change that was made and does not reach the host.
// KeptPrivate says that it is in a private directory, which is dropped with the run.
const (
	DetailKept  = "kept"
	KeptPrivate = "private"
)

// KeptConfigs is the private directory with the copies of repositories' configurations,
// where changes of a .git/config are made.
const KeptConfigs = "/run/holdfast-git"

// Process is the process that asked. Only proc.exec and the first event of a process
// that was not executed carry more than PID and Exec.
type Process struct {
	PID        int    // in the host's pid namespace; 0 when it is not known
	Exec       uint64 // which program this process runs: Exec of its proc.exec event, from 1 in each session; 0 when it is not known
	Parent     int    // pid of the parent
	ParentExec uint64 // which program the parent runs
	Executable string // as found: absolute, without links
	SHA256     string // of the executable's content, hex; "" when it was not read, and Detail says why
	Cwd        string // absolute
	Argv       []string
}

// What was attempted. A name or two paths: Object is what changes, Detail["to"]
// the other one, Detail["to_resolved"] that as found.
const (
	SessionStart  = "session.start"  // the boundary is complete; Object is the workspace
	SessionEnd    = "session.end"    // everything inside is dead; Detail: status, count.SENSOR, how many events each sensor had, and undelivered.N, which alerts a sink did not get
	SessionAttest = "session.attest" // what the boundary was found to be, before the command
	SessionLimit  = "session.limit"  // a limit was hit; Object names it

	ProcExec = "proc.exec" // Object is the path as asked; Process what is executed
	ProcExit = "proc.exit" // Detail: status as a shell gives it, or signal
	ProcSeen = "proc.seen" // a process that was forked and executed nothing yet, at its first event

	FileOpen       = "file.open"       // for reading alone
	FileWrite      = "file.write"      // opened for writing, created or emptied; Detail: mode
	FileMkdir      = "file.mkdir"      //
	FileRename     = "file.rename"     // Object is the old name, to the new one
	FileLink       = "file.link"       // Object is the new name, to the file that it is for
	FileSymlink    = "file.symlink"    // Object is the link, to its text
	FileUnlink     = "file.unlink"     // also of directories
	FileChmod      = "file.chmod"      // Detail: mode, octal
	FileChown      = "file.chown"      // Detail: owner, as uid:gid
	FileTruncate   = "file.truncate"   // by name
	FileMknod      = "file.mknod"      // Detail: type
	FileXattr      = "file.xattr"      // Detail: name
	FileLookup     = "file.lookup"     // a name outside the view, or hidden in it, was looked up; Detail: call, where it is known
	FileQuarantine = "file.quarantine" // held back at the end: the host would execute it

	SockConnect = "sock.connect" // Object: host:port, unix:/path, unix:@abstract
	SockBind    = "sock.bind"    //
	SockSend    = "sock.send"    // to an address, without a connection
	SysCall     = "sys.call"     // a system call that the boundary refuses; Object is its name

	NetQuery   = "net.query"
	NetConnect = "net.connect"
	NetRequest = "net.request"
	NetClose   = "net.close"

	CredentialUse   = "credential.use"
	CredentialRenew = "credential.renew" // a login was renewed outside, or its provider refused; Object is host:port of its token endpoint
	CredentialAlert = "credential.alert"
	HoneyRead       = "honey.read" // a honeytoken's file was opened; Object is its path
	HoneySent       = "honey.sent" // a honeytoken's value was on its way out; Object is the destination

	ToolCall   = "tool.call"   // an agent is about to use a tool; Object is its name, see package hooks for Detail
	ToolResult = "tool.result" // and has used it
	ToolLost   = "tool.lost"   // a report of that kind is missing or could not be read; Detail: reason, and count where it is one for several
	ToolList   = "tool.list"   // which tools a server offers; Object is the server
	ToolDrop   = "tool.drop"   // what was not passed on between an agent and a server; Object is the sender: agent or server

	ApprovalRequest = "approval.request" // something waits for an answer; Object is what the event of the attempt would be about; Detail: id, rule, digest
	ApprovalAnswer  = "approval.answer"  // an answer, or that none came in time; Detail: id, by, scope, reason, grant
	ApprovalUse     = "approval.use"     // an answer covers an attempt; Detail: grant, left
	ApprovalRule    = "approval.rule"    // denied without asking: by a rule, beyond a limit, because there is no one to ask; Detail: outcome, reason
	ApprovalRevoke  = "approval.revoke"  // a grant was taken back; Detail: grant, by
	ApprovalExpire  = "approval.expire"  // the time of a grant is over; Detail: grant, left
	ReviewAnswer    = "review.answer"    // a change that waits was accepted or rejected; Object is its path
	ReviewApply     = "review.apply"     // a change reached the tree, or could not; Object is its path

	PolicyReload = "policy.reload"
	AlertRaise   = "alert.raise" // Object is the rule's id; see package detect for Detail

	RecordBegin = "record.begin" // first record: Detail says what is recorded and by which sensors
	RecordDrop  = "record.drop"  // events of a sensor that are lost for the log; Detail: of (the sensor), from, to, reason
	RecordCut   = "record.cut"   // events that are summarised; Detail: of, from, to, counts by action, reason
	RecordBlind = "record.blind" // from here on the run's sensors do not see something; Object is one of the Blind constants; Detail: reason, seen
)

// What the sensors of a run cannot see: the Object of RecordBlind.
const (
	BlindCalls   = "calls"       // system calls: programs, processes, changes of files, sockets
	BlindLookups = "lookups"     // names outside the view that are asked for
	BlindNetwork = "network"     // names, connections and requests
	BlindChanges = "changes"     // which file a call changes, where another thread can exchange its path
	BlindHoney   = "honeytokens" // fake credentials that are touched
)

// What denied.
const (
	LayerView        = "view"        // it is not in view
	LayerReadonly    = "readonly"    // it is in view for reading alone
	LayerProtected   = "protected"   // the host would execute it
	LayerHidden      = "hidden"      // a secret of the workspace
	LayerPermissions = "permissions" // owner and mode bits
	LayerFilter      = "filter"      // the system-call filter
	LayerLandlock    = "landlock"
	LayerEgress      = "egress"
	LayerBroker      = "broker"
	LayerTools       = "tools"   // the policy's rules for tools; the agent obeys its hook, or not
	LayerConsent     = "consent" // a rule of ask: or deny:, the human who was asked, or KeptWorktrees
	LayerGateway     = "gateway" // no message of the protocol, or above a limit
)

// KeptWorktrees is the built-in rule by which git is refused the directory of a worktree that
// would not be kept.
const KeptWorktrees = "worktrees"

// Sink receives events, from several goroutines at once.
type Sink interface {
	// Emit must report loss. A caller that guards a privileged action must
	// treat an error from Emit as a denial.
	Emit(Event) error
}
