// Package story summarises a session from its events: which program
// started which, in what directory and how it ended, what each touched and
// where it connected, what came back, what was refused and by which rule.
//
// It reads a log from its beginning to its end and keeps little of it: as many
// programs, files, destinations and refusals as Limits says, each once with a
// count, and no more text than Limits.Bytes. What there was no room for is
// counted in Left, so that a story never looks complete when it is not.
package story

import "time"

// Limits bounds what a story keeps.
type Limits struct {
	Programs     int // programs that were executed
	Each         int // objects of each kind a program
	Files        int // paths of the session; 0: Files has none, and Left counts none
	Changes      int // that were reviewed
	Destinations int // names, destinations and sockets, each
	Refusals     int // different ones of an action; alerts, credentials and notes together
	Bytes        int // of all text together, with what it takes to hold it
}

// Default is enough for a human reader.
var Default = Limits{Programs: 20_000, Each: 40, Files: 100_000, Changes: 100_000, Destinations: 2_000, Refusals: 1_000, Bytes: 64 << 20}

// longest is how much of one text is kept, in bytes: a path has 4096 at most.
const longest = 4096

// Story is what happened in a session. Everything is in the order of its first
// event, except the paths of Files, which are sorted.
type Story struct {
	Session   string            `json:"session"`
	Workspace string            `json:"workspace,omitempty"`
	Command   []string          `json:"command,omitempty"` // what was run
	Begin     time.Time         `json:"begin"`             // of the session; of the first event if that is not recorded
	End       time.Time         `json:"end,omitzero"`      // of the last event
	Ended     bool              `json:"ended"`             // the record has the end of the session
	Status    string            `json:"status,omitempty"`
	Recorded  map[string]string `json:"recorded,omitempty"` // what was to be recorded: detail of record.begin
	Attested  map[string]string `json:"attested,omitempty"` // what the boundary was found to be: detail of session.attest
	Started   map[string]string `json:"started,omitempty"`  // detail of session.start
	Events    uint64            `json:"events"`

	Alerts       []*Alert       `json:"alerts,omitempty"`
	Tools        []*Tool        `json:"tools,omitempty"`
	Programs     []*Program     `json:"programs,omitempty"`
	Files        []*File        `json:"files,omitempty"`
	Destinations []*Destination `json:"destinations,omitempty"`
	Sockets      []*Socket      `json:"sockets,omitempty"`
	Refusals     []*Refusal     `json:"refusals,omitempty"`
	Credentials  []*Credential  `json:"credentials,omitempty"`
	Approvals    []*Approval    `json:"approvals,omitempty"`
	Changes      []*Change      `json:"changes,omitempty"` // of the workspace, that were reviewed
	Dropped      []Dropped      `json:"dropped,omitempty"` // what went with the private home
	Notes        []Note         `json:"notes,omitempty"`
	Lost         []Note         `json:"lost,omitempty"`
	Blind        []Note         `json:"blind,omitempty"`   // what the sensors of the run did not see
	Unknown      uint64         `json:"unknown,omitempty"` // events that may or may not have been allowed
	Left         Left           `json:"left,omitzero"`
}

// Left counts what there was no room for.
type Left struct {
	Programs     uint64 `json:"programs,omitempty"`
	Files        uint64 `json:"files,omitempty"`        // events on files that are not listed
	Destinations uint64 `json:"destinations,omitempty"` // events likewise
	Refusals     uint64 `json:"refusals,omitempty"`     // events likewise
	Other        uint64 `json:"other,omitempty"`        // alerts, credentials, approvals and notes
	Bytes        uint64 `json:"bytes,omitempty"`        // of texts that were cut
}

// Listed reports whether the lists lack anything, apart from ends of long texts.
func (l Left) Listed() bool {
	l.Bytes = 0
	return l != Left{}
}

// Program is one execution.
type Program struct {
	Exec       uint64    `json:"exec"`
	Parent     uint64    `json:"parent,omitempty"` // Exec of the program that started it; 0 when it is not in the story
	PID        int       `json:"pid,omitempty"`
	Asked      string    `json:"asked,omitempty"` // path as requested
	Executable string    `json:"executable,omitempty"`
	SHA256     string    `json:"sha256,omitempty"`
	Cwd        string    `json:"cwd,omitempty"`
	Argv       []string  `json:"argv,omitempty"`
	ArgvLeft   int       `json:"argv_left,omitempty"` // arguments that are not in Argv
	Seq        uint64    `json:"seq"`
	Begin      time.Time `json:"begin"`
	End        time.Time `json:"end,omitzero"`
	Status     string    `json:"status,omitempty"`   // as a shell gives it; "" when it is not known
	Signal     string    `json:"signal,omitempty"`   // what ended it
	Replaced   bool      `json:"replaced,omitempty"` // its process executed another program, which is its child here
	Forks      uint64    `json:"forks,omitempty"`    // processes that ran this program without executing another

	Read    Touched `json:"read,omitzero"`
	Wrote   Touched `json:"wrote,omitzero"` // also made: directories, links, devices
	Renamed Touched `json:"renamed,omitzero"`
	Removed Touched `json:"removed,omitzero"`
	Changed Touched `json:"changed,omitzero"` // mode, owner, attributes
	Reached Touched `json:"reached,omitzero"` // connections and datagrams
	Bound   Touched `json:"bound,omitzero"`
	Refused Touched `json:"refused,omitzero"`
	Failed  uint64  `json:"failed,omitempty"` // what was allowed and failed by itself, such as a file that is not there

	touched map[touch]int // index of an object in its list
}

// Touched is a list of objects, each once.
type Touched struct {
	Objects []Object `json:"objects,omitempty"`
	More    uint64   `json:"more,omitempty"` // events on objects that are not listed
}

// Count is the number of events.
func (t Touched) Count() uint64 {
	n := t.More
	for _, o := range t.Objects {
		n += o.Count
	}
	return n
}

// Object is what a program touched.
type Object struct {
	Name  string `json:"name"`
	To    string `json:"to,omitempty"` // new name, or what a link is to
	Count uint64 `json:"count"`
	What  string `json:"what,omitempty"` // of something refused: action, layer, error; of a change: what it was changed to; else what is special about it
}

// File is a path and what happened to it.
type File struct {
	Path    string   `json:"path"`
	Read    uint64   `json:"read,omitempty"`
	Written uint64   `json:"written,omitempty"`
	Removed uint64   `json:"removed,omitempty"` // or renamed
	Changed uint64   `json:"changed,omitempty"`
	Refused uint64   `json:"refused,omitempty"`
	First   uint64   `json:"first"` // seq of the first event
	Last    uint64   `json:"last"`
	By      []uint64 `json:"by,omitempty"` // programs, the first few
	Gone    bool     `json:"gone,omitempty"`
	Private bool     `json:"private,omitempty"` // the last change went into a private directory: nothing of it is on the host
}

// Destination is a name or host:port outside the boundary.
type Destination struct {
	Name     string    `json:"name"`
	Queries  uint64    `json:"queries,omitempty"`
	Connects uint64    `json:"connects,omitempty"`
	Denied   uint64    `json:"denied,omitempty"`
	Requests []Request `json:"requests,omitempty"`
	More     uint64    `json:"more,omitempty"` // requests that are not listed
	In       uint64    `json:"in"`             // bytes that came back
	Out      uint64    `json:"out"`            // bytes that were sent
	Rules    []string  `json:"rules,omitempty"`
	Reasons  []string  `json:"reasons,omitempty"` // of denials and of connections that broke
	By       []uint64  `json:"by,omitempty"`
	First    uint64    `json:"first"`

	requested bool // its bytes are counted by request
}

// Request is a request and what came back.
type Request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Status string `json:"status,omitempty"` // "" when it was not passed on
	Denied bool   `json:"denied,omitempty"`
	Count  uint64 `json:"count"`
}

// Socket is an address that a program connected to, sent to or bound, as the
// system call says it.
type Socket struct {
	Address string   `json:"address"`
	Action  string   `json:"action"`
	Count   uint64   `json:"count"`
	Denied  uint64   `json:"denied,omitempty"`
	By      []uint64 `json:"by,omitempty"`
}

// Refusal is something that was denied, listed once.
type Refusal struct {
	Action string   `json:"action"`
	Object string   `json:"object"`
	Layer  string   `json:"layer,omitempty"`
	Rule   string   `json:"rule,omitempty"`
	Error  string   `json:"error,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Count  uint64   `json:"count"`
	First  uint64   `json:"first"`         // seq
	PID    int      `json:"pid,omitempty"` // of the first
	By     []uint64 `json:"by,omitempty"`  // programs, the first few
}

// Credential is a credential and a place where it was used, or was refused.
type Credential struct {
	Name   string `json:"name"`
	Where  string `json:"where"`
	Action string `json:"action"`
	Used   uint64 `json:"used,omitempty"`
	Denied uint64 `json:"denied,omitempty"`
	Reason string `json:"reason,omitempty"`
	First  uint64 `json:"first"`
}

// Alert is what a rule of detection raised.
type Alert struct {
	Rule   string            `json:"rule"`
	Detail map[string]string `json:"detail,omitempty"`
	Count  uint64            `json:"count"`
	Seq    uint64            `json:"seq"`
	Time   time.Time         `json:"time"`
}

// Note is another event of the session itself.
type Note struct {
	Action string            `json:"action"`
	Object string            `json:"object,omitempty"`
	Detail map[string]string `json:"detail,omitempty"`
	Seq    uint64            `json:"seq"`
}
