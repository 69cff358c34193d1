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
}
