//go:build linux

package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Obeyed tells whether the host executes or obeys files in a home directory.
type Obeyed struct {
	home  string // as the user writes it
	real  string // without links
	rules workspace.Rules
	found *workspace.Obeyed
}

// ObeyedAmong determines, for the places of changes in a home directory, what the
// host executes or obeys there, both now and with all the changes applied: by the
// list of names, and by what refers to them.
func ObeyedAmong(ctx context.Context, home string, all []*Changes) (o *Obeyed, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("checking the changes for what the host executes: %w", err)
		}
	}()
	o = &Obeyed{home: home, rules: workspace.DefaultRules()}
	if o.real, err = filepath.EvalSymlinks(home); err != nil {
		return nil, err
	}
	upper, err := os.MkdirTemp("", "holdfast-changes-") // of mode 0700
	if err == nil {
		upper, err = filepath.EvalSymlinks(upper)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(upper)) }()
	var places []string
	for _, c := range all {
		for _, f := range c.Files {
			rel, inside := o.pathInHome(f)
			if !inside {
				continue
			}
			places = append(places, rel)
			if err := c.stage(f, filepath.Join(upper, rel)); err != nil {
				return nil, err
			}
		}
	}
	options := append(workspace.HostSettings(home), workspace.Around(places...))
	o.found, err = workspace.FindObeyed(ctx, o.real, upper, o.rules, options...)
	return o, err
}

// stage writes the agent's text of a file to the directory that is examined. Of
// several pending runs the newest comes first and wins; a file that conflicts
// with it is skipped.
func (c *Changes) stage(f ChangedFile, at string) error {
	_, text, err := c.Text(f)
	if err != nil || f.New == "" {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	file, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// pathInHome returns the resolved place of a change, relative to the home directory.
func (o *Obeyed) pathInHome(f ChangedFile) (rel string, inside bool) {
	real, err := f.Real()
	if err != nil {
		return "", false // it cannot be applied, and Apply reports why
	}
	return strings.CutPrefix(real, o.real+"/")
}

// Rule returns why the host executes or obeys the place of a change; nil if it
// does not.
func (o *Obeyed) Rule(f ChangedFile) *workspace.Rule {
	if r := o.rules.Find(strings.TrimPrefix(f.Place, o.home+"/")); r != nil {
		return r
	}
	rel, inside := o.pathInHome(f)
	if !inside {
		return nil
	}
	if r := o.rules.Find(rel); r != nil {
		return r
	}
	return o.found.Rule(rel)
}
