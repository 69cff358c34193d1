package network

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/policy"
)

// Bounds of what variables of the environment can name. The stores of distributions have
// some 150 certificates, in 220 KiB.
const (
	rootFile  = 4 << 20 // bytes of one file
	rootFiles = 2048    // of a directory; /etc/ssl/certs has some 300
	rootCerts = 4096    // that are added to the distribution's
)

// rootVariables name certificates that all tools are to trust: a file in PEM, or
// directories of such. What names those of a single tool, such as PIP_CERT, is not among
// them: they would vouch for every host.
var rootVariables = []string{
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"NODE_EXTRA_CA_CERTS",
	"REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"GIT_SSL_CAINFO",
	"NIX_SSL_CERT_FILE",
}

// NamesRoots reports whether a variable of the environment names certificates, of
// whichever tool.
func NamesRoots(variable string) bool {
	return slices.Contains(rootVariables, variable) || slices.Contains(policy.TrustVariables, variable)
}

// Roots are the certificates that upstream servers are verified with, and that programs
// inside trust: the host's.
type Roots struct {
	bundle []byte   // PEM
	found  []string // where the distribution has its own, inside
	Added  bool     // variables named some that the distribution lacks
	pool   func() (*x509.CertPool, error)
}

// HostRoots are the certificates of the distribution, and those that variables of the
// user's environment name: a company's authority, which its proxy signs with. Only the
// certificates of a file are taken. A file that the command inside could change is no
// source of trust; warnings says why something is left out. Of SSL_CERT_FILE and
// SSL_CERT_DIR, which this process reads itself (crypto/x509), what is left out is unset.
func HostRoots(c RootsConfig) (r *Roots, warnings []string, err error) { return rootsAt("/", c) }

// RootsConfig is what HostRoots needs of the process.
type RootsConfig struct {
	Getenv func(string) string
	// Read returns a file of at most so many bytes. Its error is fs.ErrNotExist where there
	// is none, and another one for what the command inside could change.
	Read  func(path string, most int64) ([]byte, error)
	Unset func(string) error // takes a variable out of the environment of this process; nil for not
}

// rootsAt is HostRoots for a host whose distribution is below root.
func rootsAt(root string, c RootsConfig) (r *Roots, warnings []string, err error) {
	r = &Roots{}
	if r.bundle, r.found, err = readBundles(root); err != nil {
		return nil, nil, err
	}
	own := len(r.found) > 0
	named := collector{read: c.Read, taken: map[string]bool{}}
	for _, name := range rootVariables {
		value := c.Getenv(name)
		if value == "" || value == Bundle || r.isOwn(root, value) {
			continue
		}
		why := named.take(name, value)
		if why == nil {
			continue
		}
		warnings = append(warnings, name+" is not trusted: "+withoutValue(why, value))
		if c.Unset != nil && strings.HasPrefix(name, "SSL_CERT_") {
			if err := c.Unset(name); err != nil {
				return nil, nil, fmt.Errorf("unsetting %s: %w", name, err)
			}
		}
	}
	before := len(r.bundle)
	r.bundle = named.addTo(r.bundle)
	r.Added = len(r.bundle) > before
	r.pool = sync.OnceValues(func() (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !own { // its certificates may be in a directory
			if pool, err = x509.SystemCertPool(); err != nil {
				return nil, fmt.Errorf("reading the host's root certificates: %w", err)
			}
		}
		pool.AppendCertsFromPEM(r.bundle)
		return pool, nil
	})
	return r, warnings, nil
}

// isOwn reports whether a path is where the distribution has the bundle that was read, or
// the directory of that, from which the bundle is made.
func (r *Roots) isOwn(root, path string) bool {
	return len(r.found) > 0 && slices.ContainsFunc(hostBundles, func(bundle string) bool {
		return (bundle == path || filepath.Dir(bundle) == filepath.Clean(path)) && slices.Equal(resolveAll(root, []string{bundle}), r.found[:1])
	})
}

// Pool are the certificates for this process, read once.
func (r *Roots) Pool() (*x509.CertPool, error) { return r.pool() }

// withoutValue is an error without the value of the variable that it is about: a value is
// not shown, because it can be a secret that somebody put there.
func withoutValue(err error, value string) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "what it names does not exist"
	}
	text := err.Error()
	for _, path := range append([]string{value}, filepath.SplitList(value)...) {
		text = strings.ReplaceAll(text, path, "what it names")
	}
	return text
}

// collector gathers certificates of files, each once.
type collector struct {
	read  func(path string, most int64) ([]byte, error)
	taken map[string]bool // values of variables
	certs [][]byte        // DER
}

// take adds what a variable names: a file or, for SSL_CERT_DIR, directories.
func (c *collector) take(name, value string) error {
	if c.taken[value] { // several variables name one file
		return nil
	}
	if name != "SSL_CERT_DIR" {
		err := c.whole(c.file, value)
		c.taken[value] = err == nil
		return err
	}
	var all []error
	for _, dir := range filepath.SplitList(value) {
		all = append(all, c.whole(c.directory, dir))
	}
	return errors.Join(all...)
}

// whole adds all of a path, or nothing.
func (c *collector) whole(add func(path string) error, path string) error {
	before := len(c.certs)
	err := add(path)
	if err != nil {
		c.certs = c.certs[:before]
	}
	return err
}

// directory adds the files of a directory as OpenSSL has them, which may be links.
func (c *collector) directory(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%s is not an absolute path", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s is empty", dir)
	}
	if len(entries) > rootFiles {
		return fmt.Errorf("%s has %d files; %d are read", dir, len(entries), rootFiles)
	}
	for _, e := range entries {
		if e.IsDir() { // of Java, in /etc/ssl/certs
			continue
		}
		err := c.file(filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNoCertificate) {
			return err
		}
	}
	return nil
}

var errNoCertificate = errors.New("it has no certificate in PEM")

// file adds the certificates of a file in PEM.
func (c *collector) file(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%s is not an absolute path", path)
	}
	data, err := c.read(path, rootFile)
	if err != nil {
		return err
	}
	before := len(c.certs)
	for len(data) > 0 {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue // such as a private key
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			continue
		}
		if len(c.certs) == rootCerts {
			return fmt.Errorf("%s has more than %d certificates", path, rootCerts)
		}
		c.certs = append(c.certs, block.Bytes)
	}
	if len(c.certs) == before {
		return fmt.Errorf("%s: %w", path, errNoCertificate)
	}
	return nil
}

// addTo returns the bundle with those of the certificates that it lacks.
func (c *collector) addTo(bundle []byte) []byte {
	if len(c.certs) == 0 {
		return bundle
	}
	seen := map[string]bool{}
	for rest := bundle; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		seen[string(block.Bytes)] = true
	}
	out := bundle
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	for _, der := range c.certs {
		if !seen[string(der)] {
			seen[string(der)] = true
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
		}
	}
	return out
}
