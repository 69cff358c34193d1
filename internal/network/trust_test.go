package network

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// rootsOf returns the certificates of a PEM bundle.
func rootsOf(t testing.TB, bundle []byte) *Roots {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		t.Fatal("no certificate in the bundle")
	}
	return &Roots{pool: func() (*x509.CertPool, error) { return pool, nil }}
}

func TestAuthority(t *testing.T) {
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	roots, _ := rootsOf(t, a.PEM()).pool()
	for _, name := range []string{"api.example.org", "192.0.2.7", "2001:db8::1", strings.Repeat("a.", 40) + "example.org"} {
		c, err := a.certificate(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("the certificate of %s: %v", name, err)
		}
		if again, _ := a.certificate(name); again != c {
			t.Errorf("the certificate of %s is made twice", name)
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "evil.example.net"}); err == nil {
			t.Errorf("the certificate of %s is good for another name", name)
		}
	}
	for i := range 2*maxLeaves + 10 {
		if _, err := a.certificate(fmt.Sprintf("n%d.example.org", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(a.leaves); n > maxLeaves {
		t.Errorf("%d certificates are kept", n)
	}
	if !a.cert.MaxPathLenZero || a.cert.MaxPathLen != 0 {
		t.Error("the authority may have authorities below it")
	}
	if shown := fmt.Sprintf("%v %+v %#v %s %d", a, a, a, a, a); shown != strings.TrimSpace(strings.Repeat("egress.Authority ", 5)) {
		t.Errorf("an Authority is printed as %s", shown)
	}
	if other, _ := NewAuthority(); other.cert.SerialNumber.Cmp(a.cert.SerialNumber) == 0 || other.key.Equal(a.key) {
		t.Error("two sessions share an authority")
	}
}

func TestTrust(t *testing.T) {
	host, err := NewAuthority() // plays a root of the host
	if err != nil {
		t.Fatal(err)
	}
	session, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(path string, content []byte) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", append([]byte("# roots\n"), bytes.TrimSpace(host.PEM())...))
	write("etc/pki/ca-trust/extracted/java/cacerts", []byte("store"))
	for link, to := range map[string]string{
		"etc/pki/tls/certs/ca-bundle.crt":           "../../ca-trust/extracted/pem/tls-ca-bundle.pem",
		"usr/lib/jvm/java-21/lib/security/cacerts":  "../../../../../../etc/pki/ca-trust/extracted/java/cacerts",
		"etc/ssl/certs/ca-certificates.crt":         "../../gone",
		"usr/lib/jvm/java-8/jre/lib/security/blank": "x",
	} {
		write(link, nil)
		os.Remove(filepath.Join(root, link))
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	trustAt := func(root string) ([]boundary.File, []policy.Env, error) {
		r, warnings, err := rootsAt(root, RootsConfig{Getenv: func(string) string { return "" }})
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		return r.trustAt(root, session, true)
	}
	files, env, err := trustAt(root)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
		if strings.HasSuffix(f.Path, "cacerts") {
			continue
		}
		if n := bytes.Count(f.Content, []byte("BEGIN CERTIFICATE")); n != 2 || !bytes.Contains(f.Content, session.PEM()) || !bytes.Contains(f.Content, host.PEM()) {
			t.Errorf("%s has %d certificates", f.Path, n)
		}
	}
	want := []string{Bundle, "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/pki/ca-trust/extracted/java/cacerts"}
	if !slices.Equal(paths, want) {
		t.Errorf("files are laid over %q, want %q: each once, none over a link", paths, want)
	}
	for _, e := range env {
		if e.Value != Bundle {
			t.Errorf("%s is %q", e.Name, e.Value)
		}
	}
	if len(env) < 14 || !slices.IsSortedFunc(env, func(a, b policy.Env) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("variables: %v", env)
	}
	if files, _, err := trustAt(t.TempDir()); err != nil || len(files) != 1 {
		t.Errorf("on a host without roots: %d files (%v)", len(files), err)
	}
}

// TestJavaTrust has the Java of this machine read the store that is made for it:
// as its own, with no password, and with the usual one.
func TestJavaTrust(t *testing.T) {
	testenv.Need(t, testenv.JDK, nil)
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	store, err := javaStore(a.PEM())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "cacerts")
	if err := os.WriteFile(path, store, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("keytool", "-list", "-keystore", path, "-storepass", "changeit").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("trustedCertEntry")) {
		t.Errorf("keytool with the usual password: %v\n%s", err, out)
	}
	source := filepath.Join(dir, "Trusted.java")
	if err := os.WriteFile(source, []byte(`
import javax.net.ssl.*;
public class Trusted {
	public static void main(String[] args) throws Exception {
		TrustManagerFactory f = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		f.init((java.security.KeyStore) null);
		for (TrustManager m : f.getTrustManagers())
			for (java.security.cert.X509Certificate c : ((X509TrustManager) m).getAcceptedIssuers())
				System.out.println(c.getSubjectX500Principal());
	}
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command("java", "-Djavax.net.ssl.trustStore="+path, source).CombinedOutput()
	if err != nil || !strings.Contains(string(out), a.cert.Subject.CommonName) {
		t.Errorf("java trusts, of its default store without a password: %v\n%s", err, out)
	}
}

func TestRoots(t *testing.T) {
	odd := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("odd")})
	if _, err := javaStore(odd); err != nil {
		t.Errorf("a certificate that cannot be read stops the store: %v", err)
	}
}
