package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// Grant is a credential that a user keeps across runs: where its secret comes
// from, where it may go, and for how long. The secret itself is not in it.
type Grant struct {
	Version int      `json:"version"`
	ID      string   `json:"id"` // of this grant; another one of the same name has another
	Name    string   `json:"name"`
	Source  Source   `json:"source"`
	Hosts   []string `json:"hosts"` // host:port
	Paths   []string `json:"paths,omitempty"`
	Header  string   `json:"header,omitempty"`
	Format  string   `json:"format,omitempty"`
	Always  bool     `json:"always,omitempty"`
	Sign    string   `json:"sign,omitempty"`
	Env     []string `json:"env,omitempty"`
	Shape   string   `json:"shape,omitempty"`
	TTL     string   `json:"ttl"`            // of a lease
	Uses    int64    `json:"uses,omitempty"` // in all runs together; 0 for any number
	Used    int64    `json:"used"`

	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`  // zero for never
	Revoked time.Time `json:"revoked,omitzero"`  // zero for not
	LastUse time.Time `json:"last_use,omitzero"` // to the minute
}

// Source is policy.CredentialSource as it is stored.
type Source struct {
	Kind    string            `json:"kind"`
	Value   string            `json:"value,omitempty"`
	Argv    []string          `json:"argv,omitempty"`
	Options map[string]string `json:"options,omitempty"`
}

// Reasons for a grant not to stand.
var (
	ErrRevoked  = errors.New("it was revoked")
	ErrExpired  = errors.New("it has expired")
	ErrUsedUp   = errors.New("it is used up")
	ErrReplaced = errors.New("it was replaced by another of the same name")
)

// Standing is nil while the grant may be used.
func (g Grant) Standing(now time.Time) error {
	switch {
	case !g.Revoked.IsZero():
		return ErrRevoked
	case !g.Expires.IsZero() && !now.Before(g.Expires):
		return ErrExpired
	case g.Uses > 0 && g.Used >= g.Uses:
		return ErrUsedUp
	}
	return nil
}

// credential is the grant as a run uses it. path is the file that it stands in.
func (g Grant) credential(path string) (policy.Credential, error) {
	ttl, err := time.ParseDuration(g.TTL)
	if err != nil || ttl <= 0 {
		return policy.Credential{}, fmt.Errorf("%q is no time that a lease can last", g.TTL)
	}
	c := policy.Credential{
		Name:   g.Name,
		Source: policy.CredentialSource{Kind: g.Source.Kind, Value: g.Source.Value, Argv: g.Source.Argv, Options: g.Source.Options},
		Paths:  g.Paths, Header: g.Header, Format: g.Format, Always: g.Always, Sign: g.Sign, Env: g.Env, Shape: g.Shape,
		TTL: ttl, Origin: policy.Origin{File: path},
	}
	for _, h := range g.Hosts {
		at := strings.LastIndexByte(h, ':')
		port, err := strconv.Atoi(h[at+1:])
		if at <= 0 || err != nil || port < 1 || port > 65535 {
			return policy.Credential{}, fmt.Errorf("%q is not HOST:PORT", h)
		}
		c.Hosts = append(c.Hosts, policy.HostPort{Host: h[:at], Port: port})
	}
	return c, g.check(c)
}

// check says what makes a grant useless or dangerous.
func (g Grant) check(c policy.Credential) error {
	switch {
	case !nameOK(g.Name):
		return fmt.Errorf("the name %q is not made of letters, digits, - and _", g.Name)
	case len(c.Hosts) == 0:
		return errors.New("it is for no host")
	case g.Uses < 0:
		return errors.New("a number of uses cannot be negative")
	case g.Sign != "" && g.Sign != signAWS:
		return fmt.Errorf("there is no way to sign %q", g.Sign)
	case g.Sign == "" && !headerOK(g.Header):
		return fmt.Errorf("%q is not the name of a header that can hold a secret", g.Header)
	case g.Sign == "" && (strings.Count(g.Format, "{}") != 1 || strings.ContainsAny(g.Format, "\r\n\x00")):
		return fmt.Errorf("the value of the header needs {} once, not %q", g.Format)
	}
	for _, h := range c.Hosts {
		if h.Host != strings.ToLower(h.Host) || strings.ContainsAny(h.Host, "*/@ ") || strings.HasSuffix(h.Host, ".") {
			return fmt.Errorf("%q is not a host in normal form; a secret does not go to a wildcard", h.Host)
		}
	}
	_, err := sourceOf(c, Config{Env: func(string) (string, bool) { return "", false }}, nil)
	return err
}

// headerOK says whether a header may be written by a grant: not those that say
// where a request goes or how long it is.
func headerOK(name string) bool {
	if name == "" || name != textproto.CanonicalMIMEHeaderKey(name) || strings.ContainsAny(name, " \t:\r\n") {
		return false
	}
	framing := []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Forwarded", "Via", "Keep-Alive"}
	return !slices.Contains(framing, name) && !strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "X-Forwarded-")
}

// Store is the directory of grants. Several processes may use it at once.
type Store struct {
	Dir string           // made where it is not there
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

// Get reads one grant. It is fs.ErrNotExist where there is none.
func (s Store) Get(name string) (Grant, error) {
	if !nameOK(name) {
		return Grant{}, &Error{Credential: strconv.Quote(name), Reason: "a name has letters, digits, - and _, and at most 64 of them"}
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

// Credential is a grant that stands, as policy refers to it by name. It is
// fs.ErrNotExist where there is none, and one of the reasons above where it does
// not stand.
func (s Store) Credential(name string) (policy.Credential, error) {
	g, err := s.Get(name)
	if err != nil {
		return policy.Credential{}, err
	}
	if err := g.Standing(s.now()); err != nil {
		return policy.Credential{}, &Error{Credential: name, Reason: "its grant does not stand", cause: err, hint: "grant it again: holdfast grant add " + name + " …"}
	}
	c, err := g.credential(s.path(name))
	if err != nil {
		return policy.Credential{}, fmt.Errorf("grant %s: %w", name, err)
	}
	return c, nil
}

// List reads all grants, by name. What cannot be read is in the error; the
// others are returned all the same.
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

// Add stores a grant under a new id. One of the same name that still stands is
// kept, unless replace is set: then runs that use it are refused from now on.
func (s Store) Add(g Grant, replace bool) (Grant, error) {
	if _, err := g.credential(""); err != nil {
		return Grant{}, fmt.Errorf("grant %s: %w", g.Name, err)
	}
	g.Version, g.ID, g.Used = 1, random(26, base32), 0
	g.Created, g.Revoked, g.LastUse = s.now().UTC().Truncate(time.Second), time.Time{}, time.Time{}
	err := s.locked(func() error {
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

// Revoke ends the grant of a name, and the credential of that name in every run
// that is under way, wherever that run has it from. It reports whether there was
// a grant.
func (s Store) Revoke(name string) (found bool, err error) {
	if !nameOK(name) {
		return false, &Error{Credential: strconv.Quote(name), Reason: "a name has letters, digits, - and _, and at most 64 of them"}
	}
	err = s.locked(func() error {
		// The mark comes first: it needs nothing that could be broken.
		if err := s.replace(s.markPath(name), []byte(random(26, base32)+"\n")); err != nil {
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

// mark is what the last revocation of a name left; "" when there was none. A run
// whose mark has changed since it began must not use that credential.
func (s Store) mark(name string) (string, error) {
	data, _, err := readOwned(s.markPath(name), false, grantMost)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// stands says why the grant with an id may not be used any more.
func (s Store) stands(name, id string) error {
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

// take counts one use of a grant on disk, so that all runs together keep to its
// number. It returns how many are left, and whether there is a number at all.
func (s Store) take(name, id string) (left int64, limited bool, err error) {
	err = s.locked(func() error {
		if err := s.stands(name, id); err != nil {
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

// locked runs f while no other process changes the directory.
func (s Store) locked(f func() error) error {
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

// replace puts a whole file in the place of another, so that a reader and a
// machine that loses power see the one or the other.
func (s Store) replace(path string, data []byte) error {
	tmp, err := os.CreateTemp(s.Dir, ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	dir, err := os.Open(s.Dir)
	if err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	err = errors.Join(dir.Sync(), dir.Close())
	if err != nil {
		return fmt.Errorf("writing a grant: %w", err)
	}
	return nil
}
