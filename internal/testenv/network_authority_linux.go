package testenv

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// networkAuthority is the variable that hands the key of the authority from the
// process that made the network to the test.
const networkAuthority = "TESTENV_NETWORK_AUTHORITY"

// makeAuthority makes an authority, and adds its certificate to those that the
// programs of this side trust. It returns key and certificate for the test.
func makeAuthority() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Authority of a private network"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	if err := overlayBundle(cert); err != nil {
		return "", err
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), certificatePEM(cert)...)
	return base64.StdEncoding.EncodeToString(both), nil
}

func certificatePEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// overlayBundle mounts the host's list of authorities with one more over it.
func overlayBundle(cert []byte) error {
	list, err := os.ReadFile(NetworkBundle)
	if errors.Is(err, os.ErrNotExist) {
		return nil // no program of this system reads it
	}
	if err != nil {
		return err
	}
	return overlay(map[string][]byte{NetworkBundle: bytes.Join([][]byte{list, certificatePEM(cert)}, nil)})
}

// Authority returns the certificate, as PEM, that everything in the network
// trusts where it reads [NetworkBundle].
func (n *Network) Authority(t testing.TB) []byte {
	t.Helper()
	return certificatePEM(n.issuer(t).Leaf.Raw)
}

// Certificate returns a certificate of the network's authority for a server of
// these names.
func (n *Network) Certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	issuer := n.issuer(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: names[0]},
		DNSNames:     names,
		NotBefore:    issuer.Leaf.NotBefore,
		NotAfter:     issuer.Leaf.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.Leaf, key.Public(), issuer.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (n *Network) issuer(t testing.TB) tls.Certificate {
	t.Helper()
	both, err := base64.StdEncoding.DecodeString(n.authority)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(both, both)
	if err != nil {
		t.Fatal(fmt.Errorf("authority of the network: %w", err))
	}
	return pair
}

// takeAuthority reads what makeAuthority returned, once.
func takeAuthority() string {
	defer os.Unsetenv(networkAuthority)
	return os.Getenv(networkAuthority)
}

// overlay mounts files of the test's own over others, by path.
func overlay(files map[string][]byte) error {
	dir, err := os.MkdirTemp("", "testenv-files-")
	if err != nil {
		return err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting tmpfs: %w", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH) // the files stay where they are bound
	for path, content := range files {
		own := dir + "/" + base64.URLEncoding.EncodeToString([]byte(path))
		if err := os.WriteFile(own, content, 0o644); err != nil {
			return err
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting over %s: %w", path, err)
		}
	}
	return nil
}
