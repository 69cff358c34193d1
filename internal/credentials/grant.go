package credentials

import (
	"errors"
	"fmt"
	"net/textproto"
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
	Used    int64    `json:"used"`           // each one where Uses limits them; else the minutes with a use

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

// Reasons why a grant is not valid.
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

// credential is the grant as a run uses it. path is the file that contains it.
func (g Grant) credential(path string) (policy.Credential, error) {
	ttl, err := time.ParseDuration(g.TTL)
	if err != nil || ttl <= 0 {
		return policy.Credential{}, fmt.Errorf("%q is not a valid duration for a lease", g.TTL)
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

// check returns what makes a grant useless or dangerous.
func (g Grant) check(c policy.Credential) error {
	switch {
	case !nameOK(g.Name):
		return fmt.Errorf("the name %q is not made of letters, digits, - and _", g.Name)
	case len(c.Hosts) == 0:
		return errors.New("it has no host")
	case g.Uses < 0:
		return errors.New("a number of uses cannot be negative")
	case g.Sign != "" && g.Sign != signAWS:
		return fmt.Errorf("%q is not a known way to sign", g.Sign)
	case g.Sign != "" && (g.Header != "" || g.Always || len(g.Env) > 0 || g.Shape != ""):
		return errors.New("a signature cannot be combined with header, always, env or shape: it signs the whole request and uses the variables of AWS")
	case g.Sign == "" && !headerOK(g.Header):
		return fmt.Errorf("%q is not the name of a header that can hold a secret", g.Header)
	case g.Sign == "" && (strings.Count(g.Format, "{}") != 1 || strings.ContainsAny(g.Format, "\r\n\x00")):
		return fmt.Errorf("the value of the header needs {} once, not %q", g.Format)
	}
	for _, name := range g.Env {
		if !variableOK(name) {
			return fmt.Errorf("%q is not the name of a variable that can hold a placeholder", name)
		}
	}
	if len(g.Shape) > 32 || strings.Trim(g.Shape, urlSafe+".") != "" {
		return fmt.Errorf("%q is not the beginning of a token: letters, digits, ., _ and -, at most 32", g.Shape)
	}
	for _, h := range c.Hosts {
		if h.Host != strings.ToLower(h.Host) || strings.ContainsAny(h.Host, "*/@ ") || strings.HasSuffix(h.Host, ".") {
			return fmt.Errorf("%q is not a host in normal form; a secret does not go to a wildcard", h.Host)
		}
	}
	_, err := sourceOf(c, Config{Env: func(string) (string, bool) { return "", false }}, nil)
	return err
}

// variableOK reports whether a variable may hold a placeholder: not those that
// determine how programs work.
func variableOK(name string) bool {
	if name == "" || strings.Trim(name, alphanumeric+"_") != "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	return !slices.Contains([]string{"PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "TMPDIR", "USER", "PWD"}, name) && !strings.HasPrefix(name, "LD_")
}

// headerOK reports whether a grant may set a header: not those that say where a
// request goes or how long it is.
func headerOK(name string) bool {
	if name == "" || name != textproto.CanonicalMIMEHeaderKey(name) || strings.ContainsAny(name, " \t:\r\n") {
		return false
	}
	framing := []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Forwarded", "Via", "Keep-Alive"}
	return !slices.Contains(framing, name) && !strings.HasPrefix(name, "Proxy-") && !strings.HasPrefix(name, "X-Forwarded-")
}
