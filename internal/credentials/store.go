package credentials

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// Store is the directory of grants. Several processes may use it at once.
type Store struct {
	Dir string           // made if it does not exist
	Now func() time.Time // nil for the machine's clock
}

const grantMost = 64 << 10

func (s Store) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s Store) path(name string) string { return filepath.Join(s.Dir, name+".json") }

// Get reads one grant. The error is fs.ErrNotExist if there is none.
func (s Store) Get(name string) (Grant, error) {
	if !nameOK(name) {
		return Grant{}, badName(name)
	}
	data, _, err := readOwned(s.path(name), false, grantMost)
	if err != nil {
		return Grant{}, err
	}
	var g Grant
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return Grant{}, fmt.Errorf("%s is not a grant: %w", s.path(name), err)
	}
	if g.Version != 1 || g.Name != name || g.ID == "" {
		return Grant{}, fmt.Errorf("%s is not the grant %s of version 1", s.path(name), name)
	}
	return g, nil
}

// Credential is a valid grant, as policy refers to it by name. The error is
// fs.ErrNotExist if there is none, and one of the reasons in grant.go if it is
// not valid.
func (s Store) Credential(name string) (policy.Credential, error) {
	g, err := s.Get(name)
	if err != nil {
		return policy.Credential{}, err
	}
	if err := g.Standing(s.now()); err != nil {
		return policy.Credential{}, &Error{Credential: name, Reason: "its grant is not valid", cause: err, hint: "grant it again: holdfast grant add " + name + " …"}
	}
	c, err := g.credential(s.path(name))
	if err != nil {
		return policy.Credential{}, fmt.Errorf("grant %s: %w", name, err)
	}
	return c, nil
}

// List reads all grants, by name. What cannot be read is in the error; the
// others are still returned.
func (s Store) List() ([]Grant, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Grant
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !nameOK(name) {
			continue
		}
		g, err := s.Get(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, g)
	}
	return all, errors.Join(errs...)
}

// Add stores a grant under a new id. A valid one of the same name is kept,
// unless replace is set: then runs that use it are refused from now on.
func (s Store) Add(g Grant, replace bool) (Grant, error) {
	if _, err := g.credential(""); err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", g.Name, err)
	}
	g.Version, g.ID, g.Used = 1, rand.Text(), 0
	g.Created, g.Revoked, g.LastUse = s.now().UTC().Truncate(time.Second), time.Time{}, time.Time{}
	err := s.withLock(func() error {
		old, err := s.Get(g.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && old.Standing(s.now()) == nil && !replace {
			return &Error{Credential: g.Name, Reason: "there is a grant of this name", hint: "end it first: holdfast grant revoke " + g.Name}
		}
		return s.write(g)
	})
	return g, err
}

// Revoke ends the grant of a name, and the credential of that name in every run in
// progress, wherever the run has it from. It reports whether there was a grant.
func (s Store) Revoke(name string) (found bool, err error) {
	if !nameOK(name) {
		return false, badName(name)
	}
	err = s.withLock(func() error {
		// The mark comes first: it needs nothing that could be broken.
		if err := s.replace(s.markPath(name), []byte(rand.Text()+"\n")); err != nil {
			return err
		}
		g, err := s.Get(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		if g.Revoked.IsZero() {
			g.Revoked = s.now().UTC().Truncate(time.Second)
		}
		return s.write(g)
	})
	return found, err
}

func (s Store) markPath(name string) string { return filepath.Join(s.Dir, name+".revoked") }

// mark is what the last revocation of a name left; "" if there was none. A run
// must not use a credential whose mark has changed since the run began.
func (s Store) mark(name string) (string, error) {
	data, _, err := readOwned(s.markPath(name), false, grantMost)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// valid returns why the grant with an id may not be used any more.
func (s Store) valid(name, id string) error {
	g, err := s.Get(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrRevoked
	case err != nil:
		return err
	case g.ID != id:
		return ErrReplaced
	}
	return g.Standing(s.now())
}

// spendUse counts one use of a grant on disk, so that all runs together keep to its
// limit. It returns how many are left, and whether there is a limit at all.
func (s Store) spendUse(name, id string) (left int64, limited bool, err error) {
	err = s.withLock(func() error {
		if err := s.valid(name, id); err != nil {
			return err
		}
		g, err := s.Get(name)
		if err != nil {
			return err
		}
		limited = g.Uses > 0
		minute := s.now().UTC().Truncate(time.Minute)
		if !limited && g.LastUse.Equal(minute) {
			return nil
		}
		g.Used, g.LastUse = g.Used+1, minute
		left = g.Uses - g.Used
		return s.write(g)
	})
	return left, limited, err
}

// withLock runs f while no other process changes the directory.
func (s Store) withLock(f func() error) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of grants: %w", err)
	}
	unlock, err := lockFile(filepath.Join(s.Dir, ".lock"))
	if err != nil {
		return fmt.Errorf("locking the grants: %w", err)
	}
	defer unlock()
	return f()
}

func (s Store) write(g Grant) error {
	data, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the grant %s: %w", g.Name, err)
	}
	return s.replace(s.path(g.Name), append(data, '\n'))
}

func (s Store) replace(path string, data []byte) error {
	err := sys.ReplaceFile(path, data, 0o600)
	if err == nil {
		var dir *os.File
		if dir, err = os.Open(s.Dir); err == nil {
			err = errors.Join(dir.Sync(), dir.Close()) // a revocation must not be undone by a loss of power
		}
	}
	if err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	return nil
}
