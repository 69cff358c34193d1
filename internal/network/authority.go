package network

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	authorityLife = 48 * time.Hour
	clockSkew     = time.Hour // inside and outside share a clock, but a program may see another time
	maxLeaves     = 1024      // certificates kept; a wildcard has any number of names
)

// Authority issues certificates for the names where TLS is terminated. Its keys
// are made for one session, live in memory only, and are trusted inside that
// session alone. It has no name constraints: the names may change with each
// reload, and nothing outside of the session trusts it anyway.
type Authority struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // one for all names: making it is the slow part, and it protects the same thing

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// Format hides the keys from every verb of fmt.
func (a *Authority) Format(f fmt.State, _ rune) { fmt.Fprint(f, "egress.Authority") }

// MarshalJSON hides the keys.
func (a *Authority) MarshalJSON() ([]byte, error) { return []byte(`"egress.Authority"`), nil }

// NewAuthority makes the authority of one session, good for 48 hours.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the session's authority: %w", err)
	}
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the session's certificates: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Holdfast session " + serial.Text(16)[:8]},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing the session's authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the session's authority: %w", err)
	}
	return &Authority{cert: cert, der: der, key: key, leaf: leaf, leaves: map[string]*tls.Certificate{}}, nil
}

// PEM is the authority's certificate, for programs inside to trust.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.der})
}

// certificate returns the certificate of a name in normal form, or of an address.
func (a *Authority) certificate(name string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[name]; c != nil {
		return c, nil
	}
	c, err := a.issue(name)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for %s: %w", name, err)
	}
	if len(a.leaves) >= maxLeaves {
		clear(a.leaves)
	}
	a.leaves[name] = c
	return c, nil
}

func (a *Authority) issue(name string) (*tls.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	if len(name) <= 64 { // RFC 5280, ub-common-name; some old clients want a subject
		template.Subject.CommonName = name
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.leaf, Leaf: leaf}, nil
}

func newSerial() (*big.Int, error) {
	low := new(big.Int).Lsh(big.NewInt(1), 126)
	n, err := rand.Int(rand.Reader, low)
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n.Add(n, low), nil // always 127 bits: never zero, never negative
}
