package network

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	pkcs12 "software.sslmate.com/src/go-pkcs12"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// Bundle is the path of the roots that are trusted inside: those of the host, and the
// session's own.
const Bundle = "/etc/holdfast/ca-bundle.pem"

// hostBundles is where distributions keep their roots: Debian, Fedora and its
// kin before and after 2013, Alpine and the BSDs, openSUSE.
var hostBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem",
	"/etc/ssl/ca-bundle.pem",
}

// javaStores is where the trust stores of Java are; JDKs lead there by links.
var javaStores = []string{
	"/etc/ssl/certs/java/cacerts",
	"/etc/pki/ca-trust/extracted/java/cacerts",
	"/etc/pki/java/cacerts",
	"/var/lib/ca-certificates/java-cacerts",
	"/usr/lib/jvm/*/lib/security/cacerts",
	"/usr/lib/jvm/*/jre/lib/security/cacerts",
	"/opt/java/*/lib/security/cacerts",
}

// Trust returns what makes programs inside trust the authority in addition to the
// host's roots: files to lay over the host's, and variables. The store of Java takes
// longer to make than all the rest, and java says whether it is.
func (r *Roots) Trust(a *Authority, java bool) ([]boundary.File, []policy.Env, error) {
	return r.trustAt("/", a, java)
}

// trustAt is Trust for a host whose files are below root.
func (r *Roots) trustAt(root string, a *Authority, java bool) ([]boundary.File, []policy.Env, error) {
	bundle := append(bytes.TrimRight(r.bundle, "\n"), '\n')
	bundle = append(bytes.TrimLeft(bundle, "\n"), a.PEM()...)
	files := []boundary.File{{Path: Bundle, Content: bundle}}
	for _, path := range r.found {
		files = append(files, boundary.File{Path: path, Content: bundle})
	}
	if java {
		stores, err := javaFiles(root, bundle)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, stores...)
	}
	var env []policy.Env
	for _, name := range policy.TrustVariables {
		env = append(env, policy.Env{Name: name, Value: Bundle, Origin: policy.Origin{File: "certificates"}})
	}
	return files, env, nil
}

// readBundles returns the first bundle of the host, and where all are.
func readBundles(root string) (bundle []byte, found []string, err error) {
	found = resolveAll(root, hostBundles)
	if len(found) == 0 {
		return nil, nil, nil // a host without roots: then the session's is the only one
	}
	bundle, err = os.ReadFile(filepath.Join(root, found[0]))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the host's root certificates: %w", err)
	}
	return bundle, found, nil
}

// javaFiles are the stores of a host's Java, which hold the bundle.
func javaFiles(root string, bundle []byte) (files []boundary.File, err error) {
	stores := resolveAll(root, javaStores)
	if len(stores) == 0 {
		return nil, nil
	}
	store, err := javaStore(bundle)
	for _, path := range stores {
		files = append(files, boundary.File{Path: path, Content: store})
	}
	return files, err
}

// resolveAll returns the files that patterns lead to below root, each once, as
// paths without a link: a file cannot be laid over a link.
func resolveAll(root string, patterns []string) []string {
	var all []string
	for _, pattern := range patterns {
		// The only error is a malformed pattern, and the patterns are ours.
		matches, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, path := range matches {
			real, err := filepath.EvalSymlinks(path)
			if err != nil {
				continue // a dangling link is never read
			}
			if info, err := os.Stat(real); err != nil || info.Mode().Type() != 0 {
				continue
			}
			inside, err := filepath.Rel(root, real)
			if err != nil || !fs.ValidPath(inside) {
				continue
			}
			if inside = "/" + inside; !slices.Contains(all, inside) {
				all = append(all, inside)
			}
		}
	}
	return all
}

// javaStore makes a trust store of the certificates of a PEM bundle. It has no
// password: Java opens its own store with none, and passes over what is
// encrypted then; and it takes one without a password where one is given.
func javaStore(bundle []byte) ([]byte, error) {
	var entries []pkcs12.TrustStoreEntry
	for len(bundle) > 0 {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue // Java would not read it either: distributions ship a few that are odd
		}
		entries = append(entries, pkcs12.TrustStoreEntry{
			Cert:         cert,
			FriendlyName: fmt.Sprintf("root-%03d", len(entries)),
		})
	}
	store, err := pkcs12.Passwordless.EncodeTrustStoreEntries(entries, "")
	if err != nil {
		return nil, fmt.Errorf("making a trust store for Java: %w", err)
	}
	return store, nil
}
