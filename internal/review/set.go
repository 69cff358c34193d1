//go:build linux

package review

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Mode says how a run saw the workspace.
type Mode string

// The modes.
const (
	Overlay Mode = "overlay" // Dir/upper is the upper directory of an overlay on the workspace
	Copy    Mode = "copy"    // Dir/upper is a copy of the whole workspace
	Held    Mode = "held"    // Dir/upper is what was moved out of the workspace after the run, and nothing else
	Direct  Mode = "direct"  // the run wrote into the workspace: changes are listed only
)

// Source is a run whose changes will be reviewed.
type Source struct {
	Workspace string          // absolute, resolved
	Dir       string          // of the review: STATE/reviews/SESSION
	Mode      Mode            // "": as Dir/review.json says
	Rules     workspace.Rules // names that are flagged; the zero value flags none

	// Obey hands in what the user's own configuration makes programs obey in the
	// workspace, as workspace.GitConfig does.
	Obey []workspace.Option

	// Began is when the run could first write. Zero: as Dir/review.json says.
	Began time.Time
}

// Kind says what happened to a path.
type Kind uint8

// The kinds.
const (
	Added       Kind = iota + 1
	Modified         // other content, and maybe another mode
	Deleted          // of a directory: it and all below it, each with a change of its own
	Renamed          // the same content under another name
	ModeChanged      // the same content with other permission bits
	TypeChanged      // a file became a link, or the like
	History          // what git keeps in a repository other than settings and hooks, taken as one
)

var kinds = [...]string{"", "added", "modified", "deleted", "renamed", "mode", "type", "history"}

func (k Kind) String() string { return enumText(kinds[:], int(k)) }

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Kind) UnmarshalText(b []byte) error { return parseEnum(kinds[:], b, k) }

// Type is the type of a file.
type Type uint8

// The types. None means no file.
const (
	None Type = iota
	File
	Dir
	Link
	FIFO
	Socket
	Device
)

var types = [...]string{"none", "file", "dir", "link", "fifo", "socket", "device"}

func (t Type) String() string { return enumText(types[:], int(t)) }

// MarshalText implements encoding.TextMarshaler.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Type) UnmarshalText(b []byte) error { return parseEnum(types[:], b, t) }

// Decision is a human's decision on a change or on a hunk.
type Decision uint8

// The decisions. A change some of whose hunks are accepted is Accept itself.
const (
	Undecided Decision = iota
	Accept
	Reject
)

var decisions = [...]string{"undecided", "accept", "reject"}

func (d Decision) String() string { return enumText(decisions[:], int(d)) }

// MarshalText implements encoding.TextMarshaler.
func (d Decision) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Decision) UnmarshalText(b []byte) error { return parseEnum(decisions[:], b, d) }

func enumText(words []string, i int) string {
	if i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func parseEnum[T ~uint8](words []string, b []byte, to *T) error {
	for i, w := range words {
		if w != "" && w == string(b) {
			*to = T(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of %q", b, words)
}

// Flag is a reason to look at a change before anything on the host runs.
type Flag struct {
	Rule   string `json:"rule"`   // pattern of the list of names, or: program, setuid, link, git, name, below
	Reason string `json:"reason"` // in words
}

// Change is one path that a run changed. Names are bytes as they came: what
// shows them makes them visible.
type Change struct {
	Path    workspace.Name `json:"path"` // from the workspace
	Kind    Kind           `json:"kind"`
	From    workspace.Name `json:"from,omitempty"` // of a rename: the old path
	Type    Type           `json:"type"`           // now; None: deleted
	OldType Type           `json:"old_type"`       // before; None: added
	Mode    uint32         `json:"mode"`           // 07777 as the run left it; Apply carries the permission bits only
	OldMode uint32         `json:"old_mode"`
	Size    int64          `json:"size"` // bytes; of a history: of all that is new in it
	OldSize int64          `json:"old_size"`

	Target    workspace.Name `json:"target,omitempty"`     // of a link
	OldTarget workspace.Name `json:"old_target,omitempty"` // of a link before

	Binary bool `json:"binary,omitempty"` // the first 8 KiB of a side are no text; Diff has the last word
	Huge   bool `json:"huge,omitempty"`   // a side is larger than MaxText: summarised

	Flags  []Flag   `json:"flags,omitempty"`
	Notes  []string `json:"notes,omitempty"`  // what is worth knowing and no reason to worry
	Cannot string   `json:"cannot,omitempty"` // why Apply will never carry it; "" when it can

	Decision Decision     `json:"decision"`
	Applied  bool         `json:"applied,omitempty"` // it is in the workspace; of hunks: those that are accepted are
	History  *HistoryInfo `json:"history,omitempty"`

	program  string    // what kind of program its first bytes are; "" for none
	digest   string    // of what Diff or Decide saw; "" before
	hunks    *choice   // nil: decided as a whole
	parts    []*Change // of a history
	inherits bool      // its directory hands on its group
	indexed  []Flag    // what an index would have git do
}

// Flagged reports whether there is a reason to look at c first.
func (c *Change) Flagged() bool { return len(c.Flags) > 0 }

// HistoryInfo says what a run did in a repository, as far as it can be read
// without git. Strings come from the run.
type HistoryInfo struct {
	Branch  string      `json:"branch,omitempty"` // that HEAD names; "" when it is detached
	Commits []Commit    `json:"commits"`          // new ones on the way from HEAD, newest first, MaxCommits at most
	More    bool        `json:"more,omitempty"`   // the history continues in commits that could not be read, or are too many
	Refs    []RefChange `json:"refs"`
	Objects int         `json:"objects"` // new loose objects
	Packs   int         `json:"packs"`   // new packs, whose content is not looked into
	Left    []string    `json:"left,omitempty"`
}

// Commit is a commit that a run made.
type Commit struct {
	ID      string `json:"id"`
	Author  string `json:"author"`
	Subject string `json:"subject"` // the first line, 200 bytes at most
}

// RefChange is a branch, tag or other ref that was moved. Old or New is "" if there was
// or is none.
type RefChange struct {
	Name string `json:"name"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Unseen is what was not looked at, and is therefore never applied.
type Unseen struct {
	Path   workspace.Name `json:"path"`   // the directory or file at which looking ended; "" for the tree
	Reason string         `json:"reason"` // in words
}

// Set is all that a run changed. It is not safe for use by several goroutines, except
// Diff and Content.
type Set struct {
	Source  Source         `json:"-"`
	Mode    Mode           `json:"mode"`
	Root    workspace.Name `json:"workspace"`
	Changes []*Change      `json:"changes"` // flagged ones first, then by path
	Unseen  []Unseen       `json:"unseen,omitempty"`
	Notes   []string       `json:"notes,omitempty"`

	index map[string]*Change
	start map[string]workspace.Identity // of what was changed, when the run began
	began int64                         // ns

	listed  bool // there is a list of all files at the start
	running bool // the run is still active

	recovered []Problem // from an interrupted apply, for the next report
	apart     map[string]bool
	dev       uint64 // of the directory that was the workspace; 0: not known
	ino       uint64
	trees     *trees
	saved     *decisionFile
}

// Counts are the figures of a Set.
type Counts struct {
	Changes   int   `json:"changes"`
	Flagged   int   `json:"flagged"`
	Added     int   `json:"added"`
	Modified  int   `json:"modified"`
	Deleted   int   `json:"deleted"`
	Renamed   int   `json:"renamed"`
	Other     int   `json:"other"`  // modes, types and histories
	Cannot    int   `json:"cannot"` // never applied
	Accepted  int   `json:"accepted"`
	Rejected  int   `json:"rejected"`
	Undecided int   `json:"undecided"` // that could be applied
	Applied   int   `json:"applied"`
	Unseen    int   `json:"unseen"`
	Bytes     int64 `json:"bytes"` // of what is new or changed
}

// Counts counts.
func (s *Set) Counts() Counts {
	n := Counts{Changes: len(s.Changes), Unseen: len(s.Unseen)}
	for _, c := range s.Changes {
		if c.Flagged() {
			n.Flagged++
		}
		switch c.Kind {
		case Added:
			n.Added++
		case Modified:
			n.Modified++
		case Deleted:
			n.Deleted++
		case Renamed:
			n.Renamed++
		default:
			n.Other++
		}
		if c.Type == File || c.Kind == History {
			n.Bytes += c.Size
		}
		switch {
		case c.Decision == Undecided && c.hunks != nil:
			n.Undecided++ // what of it was accepted may be applied already
		case c.Applied:
			n.Applied++
		case c.Cannot != "":
			n.Cannot++
		case c.Decision == Accept:
			n.Accepted++
		case c.Decision == Reject:
			n.Rejected++
		default:
			n.Undecided++
		}
	}
	return n
}

// Find returns the change of a path, of a rename by its new path; nil if there is none.
func (s *Set) Find(path string) *Change { return s.index[path] }

// Settled reports whether nothing is left to decide or to apply: the review can
// be dropped and nothing is lost but what was rejected or cannot be applied.
func (s *Set) Settled() bool {
	n := s.Counts()
	return n.Undecided == 0 && n.Accepted == 0 && n.Unseen == 0
}
