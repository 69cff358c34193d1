//go:build linux

package probe

import (
	"encoding/json"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// Promise is a line of the threat model that a row tries to break, P1 to P10.
type Promise string

// Kind is who does what a row tries.
type Kind string

// The kinds that this package runs.
const (
	Sandbox Kind = "sandbox" // the action runs inside
	Host    Kind = "host"    // the launcher is what is tested
	Control Kind = "control" // the action must succeed: a guard against refusing everything
)

// Row is one probe: data, and small functions where data is not enough.
//
// Every path and every argument is a template: a leading W/, O/, H/, R/ or B/ (or
// the letter alone) stands for the workspace, the directory outside, the home
// that the launcher is given, the directory outside that the command may read,
// and the parent of them all.
type Row struct {
	ID      string
	Class   string
	Title   string
	Promise Promise
	Kind    Kind
	Core    bool     // one of the headline cases of the catalogue
	Refs    []string // advisories, issues, manual pages

	Workspace string            // name of the directory W; "" means "w"
	Needs     []string          // what the host must have; see needs.go
	Files     map[string]string // made before the start: path to content
	Links     map[string]string // made before the start: path to target; a target with a template prefix is made absolute
	Plant     []string          // files made before the start that hold a fresh token, and must not change
	Setup     func(*World) error

	// Shared are trees outside that the command may write in part, such as the
	// repository that the workspace is a worktree of: new names there are not escapes,
	// unless listed in Absent.
	Shared []string

	Keep   []string // paths that must be the same afterwards: kind, mode, owner, inode, content, times
	Absent []string // paths that must not exist afterwards

	Action string // name of a function of package inside
	// Spellings are ways to one wall, which the action tries one after the other.
	Spellings []inside.Trick
	Args      []string // KEY=VALUE for it; VALUE is a template
	Options   Options  // what the target is asked for beyond its default
	Drive     func(*Session)
	// Beside is a second hostile run that is alive in the same workspace from before
	// the row's own run begins until after that has ended and was settled. Its action
	// makes W/beside when it runs, and ends when W/over exists. nil for none.
	Beside  *Command
	Timeout time.Duration // of one command; 0 means 20 s

	Accept []string // errno names that count as a denial; nil means Denials
	// Harmless is the reason why an attempt may succeed without an escape, for example
	// because it changes a private copy. Then only the oracle decides. "" means that a
	// success is an escape.
	Harmless string
	// RefusalHolds is set if a launcher that refuses to start counts as a defence.
	RefusalHolds bool
	// Residual is the documented reason why this is known to get through.
	Residual string
	// Oracle checks from outside what got through, beyond the canaries, tokens and
	// listeners that every row watches.
	Oracle func(*World, Observation) []string
	// Proof is set if only something that got through can make Oracle report, so that
	// it counts even for an incomplete run.
	Proof bool
	// Trace is what must be seen of it if the target keeps a record.
	Trace Trace
	// NotIn are the worlds in which the row has no meaning, with the reason. It is
	// filled by [All]; in all others the row is played.
	NotIn map[string]string

	// Alone is the reason why no other row may be played beside this one, such as that
	// it counts what the whole machine has; "" for none.
	Alone string
	// Timed is set if the row is slow by design: a race, or a flood. A quick run leaves
	// it out.
	Timed bool
	// Least is, for a race, how often it must have been tried at least: fewer tries
	// prove nothing, and neither does a race whose honest way was not timed.
	Least int
	// Bare is the reason why the row cannot escape without any sandbox; "" means that
	// it must, or it proves nothing. BareUser is the reason for a user who is not root.
	Bare, BareUser string
}

// Denials are the errors that count as a denial if a row lists none.
var Denials = []string{
	"EPERM", "EACCES", "EROFS", "ENOENT", "EXDEV", "EBUSY", "ENOSYS",
	"ECONNREFUSED", "ENETUNREACH", "SIGSYS",
}

// Options are what a row asks of a target, in neutral terms. A target that cannot
// express one of them must return ErrUnsupported.
type Options struct {
	Read      []string      `yaml:"read" json:"read,omitempty"`     // paths outside that are in view, read-only
	Write     []string      `yaml:"write" json:"write,omitempty"`   // paths outside that are in view, writable
	Hide      []string      `yaml:"hide" json:"hide,omitempty"`     // paths of the workspace that the command may not read
	Env       []string      `yaml:"env" json:"env,omitempty"`       // NAME or NAME=VALUE that the command is given
	Memory    int64         `yaml:"memory" json:"memory,omitempty"` // bytes for everything inside together
	Processes int64         `yaml:"processes" json:"processes,omitempty"`
	Files     int64         `yaml:"files" json:"files,omitempty"`           // open descriptors of a process
	FileSize  int64         `yaml:"file_size" json:"file_size,omitempty"`   // bytes
	Disk      int64         `yaml:"disk" json:"disk,omitempty"`             // bytes of private storage
	Time      time.Duration `yaml:"time" json:"time,omitempty"`             // wall clock
	Terminal  bool          `yaml:"terminal" json:"terminal,omitempty"`     // standard streams of the launcher are a terminal
	Reach     []Reach       `yaml:"reach" json:"reach,omitempty"`           // allowed destinations
	HostPorts []int         `yaml:"host_ports" json:"host_ports,omitempty"` // services on the host's loopback that are shown inside
	Secrets   []Secret      `yaml:"secrets" json:"secrets,omitempty"`       // what may be used but not known
}

// MarshalJSON implements [json.Marshaler]: a time is written as in the files.
func (o Options) MarshalJSON() ([]byte, error) {
	type plain Options
	return json.Marshal(struct {
		plain
		Time limit `json:"time,omitzero"`
	}{plain(o), limit(o.Time)})
}

// Secret is a variable of the launcher whose value may be used for one host, in
// one header, and which the command may not learn.
type Secret struct {
	Env    string `yaml:"env" json:"env,omitempty"` // the variable, outside, and inside where it may hold a stand-in
	Host   string `yaml:"host" json:"host,omitempty"`
	Header string `yaml:"header" json:"header,omitempty"` // with {} for the value
}

// Command is one start of the prober.
type Command struct {
	Action  string
	Args    []string // KEY=VALUE
	Dir     string   // working directory of the launcher; "" means W
	Options Options
}
