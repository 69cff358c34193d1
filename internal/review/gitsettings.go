//go:build linux

package review

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// GitSettings are the settings of one section of a git configuration that a run changed in
// its copy, and that wait: a remote, a branch, a submodule.
type GitSettings struct {
	ID      string                   `json:"id"` // of what they are: the same text is the same ID
	File    workspace.Name           `json:"file"`
	Changes []workspace.ConfigChange `json:"changes"`

	of []Reviewed // the runs that left them, the newest first
}

// WaitingGit returns the settings that wait in a workspace, of the newest run first, and
// those of the newest run that cannot be taken over. What several runs left alike is listed
// once.
func WaitingGit(all []Reviewed, root workspace.Name) (waiting []GitSettings, refused []workspace.ConfigChange, err error) {
	var errs []error
	first := true
	for _, r := range all {
		if !r.Direct() || r.Workspace != root {
			continue
		}
		l, err := ReadChangeList(r.Dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first {
			refused, first = slices.DeleteFunc(slices.Clone(l.Git), func(c workspace.ConfigChange) bool { return c.Refused == "" }), false
		}
		for _, g := range GroupGit(l.Git) {
			at := slices.IndexFunc(waiting, func(have GitSettings) bool { return have.ID == g.ID })
			if at < 0 {
				at = len(waiting)
				waiting = append(waiting, g)
			}
			waiting[at].of = append(waiting[at].of, r)
		}
	}
	return waiting, refused, errors.Join(errs...)
}

// GroupGit puts settings that can be taken over together by their section.
func GroupGit(all []workspace.ConfigChange) (out []GitSettings) {
	for _, c := range all {
		if c.Refused != "" {
			continue
		}
		at := slices.IndexFunc(out, func(g GitSettings) bool { return g.File == c.File && section(g.Changes[0]) == section(c) })
		if at < 0 {
			at = len(out)
			out = append(out, GitSettings{File: c.File})
		}
		out[at].Changes = append(out[at].Changes, c)
	}
	for i, g := range out {
		data, err := json.Marshal(g.Changes)
		if err != nil {
			panic(err) // of texts alone
		}
		sum := sha256.Sum256(data)
		out[i].ID = hex.EncodeToString(sum[:8])
	}
	return out
}

func section(c workspace.ConfigChange) string {
	if c.Sub == nil {
		return c.Section
	}
	return fmt.Sprintf("%s %q", c.Section, *c.Sub)
}

// String is what would change, in a line that may hold anything.
func (g GitSettings) String() string {
	var parts []string
	for _, c := range g.Changes {
		text := c.Key + " = " + strings.Join(c.Now, ", ")
		if len(c.Now) == 0 {
			text = c.Key + " is removed"
		}
		if len(c.Was) > 0 {
			text += " (was " + strings.Join(c.Was, ", ") + ")"
		}
		parts = append(parts, text)
	}
	return section(g.Changes[0]) + ": " + strings.Join(parts, "; ")
}

// Of is the newest run that left them.
func (g GitSettings) Of() Reviewed { return g.of[0] }

// TakeOver makes the changes in the file on the host. No run may be able to write there.
func (g GitSettings) TakeOver() error { return workspace.ApplyConfig(g.Changes) }

// Forget removes the settings from the lists of their runs.
func (g GitSettings) Forget() error {
	for _, r := range g.of {
		l, err := ReadChangeList(r.Dir)
		if err != nil {
			return err
		}
		l.Git = slices.DeleteFunc(l.Git, func(c workspace.ConfigChange) bool {
			return c.Refused == "" && c.File == g.File && section(c) == section(g.Changes[0])
		})
		if err := l.save(r.Dir); err != nil {
			return fmt.Errorf("saving the list of changes: %w", err)
		}
	}
	return nil
}
