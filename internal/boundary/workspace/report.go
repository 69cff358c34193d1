//go:build linux

package workspace

import "time"

// Change says how a flagged file differs from the start.
type Change string

// The changes.
const (
	Added    Change = "added"
	Changed  Change = "changed"
	Mode     Change = "mode"
	Removed  Change = "removed"
	Setuid   Change = "setuid"
	Leaving  Change = "link-leaving-workspace"
	HardLink Change = "hardlink"
	Socket   Change = "socket"
	FIFO     Change = "fifo"
	Device   Change = "device"

	Unexamined Change = "unexamined" // a directory that was not looked through
)

// Flagged is a file that stays where it is and that the user should look at
// before running anything.
type Flagged struct {
	Path   Name   `json:"path"` // absolute
	Change Change `json:"change"`
	Rule   string `json:"rule,omitempty"`
	Reason string `json:"reason"`
	Before string `json:"before,omitempty"` // SHA-256, hex; "" when there was none, or it was too large to read
	After  string `json:"after,omitempty"`
	Files  int64  `json:"files,omitempty"` // how many in a tree that is listed as one
}

// Quarantined is a file or directory that was moved out of the workspace.
type Quarantined struct {
	Path   Name      `json:"path"` // absolute, where it was
	Held   Name      `json:"held"` // absolute, where it is now
	Rule   string    `json:"rule"`
	Reason string    `json:"reason"` // what on the host would have executed it
	Why    string    `json:"why"`    // why it could not stay
	Type   string    `json:"type"`   // file, dir, link, or special
	Mode   uint32    `json:"mode"`   // permission bits
	Sum    string    `json:"sha256,omitempty"`
	Link   Name      `json:"link,omitempty"` // target of a link
	Cut    bool      `json:"cut,omitempty"`  // only a part of it could be kept
	Time   time.Time `json:"time"`
}

// Report is what Settle did and saw. Lists are sorted by path.
type Report struct {
	Quarantined []Quarantined `json:"quarantined"`
	Flagged     []Flagged     `json:"flagged"`
	Warnings    []string      `json:"warnings,omitempty"`
	Differences []Difference  `json:"differences,omitempty"` // all that changed, what is flagged or was moved out first
	Unsure      string        `json:"unsure,omitempty"`      // why Differences may lack something; "" when it does not
}

// Kind is what became of a file.
type Kind string

// The kinds.
const (
	KindAdded    Kind = "added"
	KindModified Kind = "modified"
	KindDeleted  Kind = "deleted"
	KindRenamed  Kind = "renamed"
	KindType     Kind = "type" // it is another kind of file
)

// Difference is a file that changed since the run began, whatever changed it.
type Difference struct {
	Path    Name     `json:"path"` // absolute
	Kind    Kind     `json:"kind"`
	From    Name     `json:"from,omitempty"`     // absolute, of what was renamed
	Type    string   `json:"type"`               // file, dir, link, fifo, socket or device
	OldMode uint32   `json:"old_mode,omitempty"` // permission bits, where they were others
	Mode    uint32   `json:"mode,omitempty"`     // permission bits; 0 of what is gone
	Size    int64    `json:"size,omitempty"`     // bytes
	Files   int64    `json:"files,omitempty"`    // how many changed in a tree that is listed as one
	Held    Name     `json:"held,omitempty"`     // where it was moved, see Quarantined
	Flag    *Flagged `json:"flag,omitempty"`     // why it should be looked at first
}
