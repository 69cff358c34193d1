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
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// GitSettings are the settings of one section of a git configuration that a run changed in
// its copy, and that wait: a remote, a branch, a submodule.
type GitSettings struct {
	ID      string                   `json:"id"` // of what they are: the same text is the same ID
	File    workspace.Name           `json:"file"`
	Changes []workspace.ConfigChange `json:"changes"`

	of    []Reviewed // the runs that left them, the newest first
	older []Reviewed // earlier runs that left another value of one of them
}

// WaitingGit returns the settings that wait in a workspace, of the newest run first, and
// those of the newest run that cannot be taken over. What several runs left alike is listed
// once, and of several values of a setting the newest: after it no other can be taken over.
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
			refused, first = RefusedGit(l.Git), false
		}
		for _, g := range GroupGit(l.Git) {
			at := slices.IndexFunc(waiting, g.meets)
			switch {
			case at < 0:
				g.of = []Reviewed{r}
				waiting = append(waiting, g)
			case waiting[at].ID == g.ID:
				waiting[at].of = append(waiting[at].of, r)
			default:
				waiting[at].older = append(waiting[at].older, r)
			}
		}
	}
	return waiting, refused, errors.Join(errs...)
}

// RefusedGit returns the settings that cannot be taken over.
func RefusedGit(all []workspace.ConfigChange) []workspace.ConfigChange {
	return slices.DeleteFunc(slices.Clone(all), func(c workspace.ConfigChange) bool { return c.Refused == "" })
}

// GroupGit puts settings that can be taken over together by their section.
func GroupGit(all []workspace.ConfigChange) (out []GitSettings) {
	for _, c := range all {
		if c.Refused != "" {
			continue
		}
		at := slices.IndexFunc(out, func(g GitSettings) bool { return g.File == c.File && sameSection(g.Changes[0], c) })
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
		out[i].ID = hex.EncodeToString(sum[:16]) // a run may search for two that are alike
	}
	return out
}

func section(c workspace.ConfigChange) string {
	if c.Sub == nil {
		return c.Section
	}
	return fmt.Sprintf("%s %q", c.Section, *c.Sub)
}

func sameSection(a, b workspace.ConfigChange) bool {
	return a.Section == b.Section && (a.Sub == nil) == (b.Sub == nil) && (a.Sub == nil || *a.Sub == *b.Sub)
}

// String is what would change, in a line that is safe on a terminal.
func (g GitSettings) String() string {
	var parts []string
	for _, c := range g.Changes {
		part := c.Key + " = " + ShowValues(c.Now)
		if len(c.Now) == 0 {
			part = c.Key + " is removed"
		}
		if len(c.Was) > 0 {
			part += " (was " + ShowValues(c.Was) + ")"
		}
		parts = append(parts, part)
	}
	return floortext.Line(section(g.Changes[0])) + ": " + strings.Join(parts, "; ")
}

// ShowValues are the values of a setting in a line, each as one word, so that none looks
// like what is said about it.
func ShowValues(all []string) string {
	shown := make([]string, len(all))
	for i, v := range all {
		shown[i] = floortext.Word(v)
	}
	return strings.Join(shown, ", ")
}

// Of is the newest run that left them.
func (g GitSettings) Of() Reviewed { return g.of[0] }

// meets reports whether both have a setting in common.
func (g GitSettings) meets(o GitSettings) bool {
	return g.File == o.File && slices.ContainsFunc(g.Changes, func(c workspace.ConfigChange) bool {
		return slices.ContainsFunc(o.Changes, func(d workspace.ConfigChange) bool { return c.Key == d.Key && sameSection(c, d) })
	})
}

// TakeOver makes the changes in the file on the host, and forgets what earlier runs left
// instead of them. No run may be able to write there, which check says.
func (g GitSettings) TakeOver(check func() error) error {
	if err := workspace.ApplyConfig(g.Changes, check); err != nil {
		return err
	}
	return g.forget(g.older)
}

// Forget removes the settings from the lists of their runs.
func (g GitSettings) Forget() error { return g.forget(g.of) }

func (g GitSettings) forget(runs []Reviewed) error {
	for _, r := range runs {
		l, err := ReadChangeList(r.Dir)
		if err != nil {
			return err
		}
		l.Git = slices.DeleteFunc(l.Git, func(c workspace.ConfigChange) bool {
			return c.Refused == "" && c.File == g.File && sameSection(c, g.Changes[0])
		})
		if err := l.save(r.Dir); err != nil {
			return fmt.Errorf("saving the list of changes: %w", err)
		}
	}
	return nil
}
