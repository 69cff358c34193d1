package network

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// authorityPEM is a certificate that plays a root.
func authorityPEM(t *testing.T) string {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return string(a.PEM())
}

// TestHostRoots takes over what variables of the environment name, and nothing else.
func TestHostRoots(t *testing.T) {
	system, company, other := authorityPEM(t), authorityPEM(t), authorityPEM(t)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret")}))
	odd := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("odd")}))
	for _, tt := range []struct {
		name    string
		env     map[string]string // {} is the directory of the files
		want    []string          // besides the distribution's
		warning string            // "" for none
		unset   string
	}{
		{name: "no variable"},
		{name: "a file", env: map[string]string{"NODE_EXTRA_CA_CERTS": "{}/company.pem"}, want: []string{company}},
		{name: "one file by several variables", env: map[string]string{"SSL_CERT_FILE": "{}/company.pem", "REQUESTS_CA_BUNDLE": "{}/company.pem"}, want: []string{company}},
		{name: "two files that overlap, with a key", env: map[string]string{"CURL_CA_BUNDLE": "{}/company.pem", "GIT_SSL_CAINFO": "{}/all.pem"}, want: []string{company, other}},
		{name: "files of single tools", env: map[string]string{"PIP_CERT": "{}/company.pem", "CARGO_HTTP_CAINFO": "{}/company.pem", "AWS_CA_BUNDLE": "{}/all.pem"}},
		{name: "a directory with what is none", env: map[string]string{"SSL_CERT_DIR": "{}/dir:{}/more"}, want: []string{company, other}},
		{name: "the bundle of this run, in a run within a run", env: map[string]string{"SSL_CERT_FILE": Bundle}},
		{name: "the bundle of the distribution, which is not read again", env: map[string]string{"SSL_CERT_FILE": "/etc/ssl/cert.pem", "REQUESTS_CA_BUNDLE": "/etc/pki/tls/certs/ca-bundle.crt", "SSL_CERT_DIR": "/etc/ssl/"}},
		{name: "another bundle of the distribution", env: map[string]string{"SSL_CERT_FILE": "/etc/ssl/ca-bundle.pem"}, warning: "read", unset: "SSL_CERT_FILE"},
		{name: "a path that depends on the directory", env: map[string]string{"NODE_EXTRA_CA_CERTS": "company.pem"}, warning: "not an absolute path"},
		{name: "no file", env: map[string]string{"SSL_CERT_FILE": "{}/gone.pem"}, warning: "what it names does not exist", unset: "SSL_CERT_FILE"},
		{name: "no certificate", env: map[string]string{"REQUESTS_CA_BUNDLE": "{}/key.pem"}, warning: "no certificate"},
		{name: "a file that the command can change", env: map[string]string{"SSL_CERT_FILE": "{}/changeable.pem", "CURL_CA_BUNDLE": "{}/company.pem"}, want: []string{company}, warning: "can change", unset: "SSL_CERT_FILE"},
		{name: "a directory with a link to such a file", env: map[string]string{"SSL_CERT_DIR": "{}/bad"}, warning: "can change", unset: "SSL_CERT_DIR"},
		{name: "more than anybody has", env: map[string]string{"NIX_SSL_CERT_FILE": "{}/many.pem"}, warning: "more than 4096"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{
				"root/etc/ssl/cert.pem": "# roots\n" + system, "company.pem": "The company\n" + key + company, "all.pem": other + odd + key + company + system,
				"key.pem": key, "changeable.pem": other, "dir/a.pem": company, "dir/README": "none", "dir/java/cacerts": "store", "more/b.0": other,
				"bad/changeable.pem": other, "many.pem": strings.Repeat(other, rootCerts+1),
			} {
				path := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.MkdirAll(filepath.Join(dir, "root/etc/pki/tls/certs"), 0o755), os.Symlink("../../../ssl/cert.pem", filepath.Join(dir, "root/etc/pki/tls/certs/ca-bundle.crt")), os.WriteFile(filepath.Join(dir, "root/etc/ssl/ca-bundle.pem"), []byte(other), 0o644)); err != nil {
				t.Fatal(err)
			}
			var unset []string
			roots, warnings, err := rootsAt(filepath.Join(dir, "root"), RootsConfig{
				Getenv: func(name string) string { return strings.ReplaceAll(tt.env[name], "{}", dir) },
				Read: func(path string, most int64) ([]byte, error) {
					if strings.HasPrefix(path, "/etc/") {
						return nil, errors.New("it is read")
					}
					if strings.HasSuffix(path, "changeable.pem") {
						return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("the command can change it")}
					}
					return os.ReadFile(path)
				},
				Unset: func(name string) error { unset = append(unset, name); return nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			if tt.warning == "" && len(warnings) > 0 || tt.warning != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], tt.warning)) {
				t.Errorf("the warnings are %q", warnings)
			}
			if strings.Contains(strings.Join(warnings, " "), dir) {
				t.Errorf("a value is shown: %q", warnings)
			}
			if got := strings.Join(unset, " "); got != tt.unset {
				t.Errorf("unset are %q", got)
			}
			if n := bytes.Count(roots.bundle, []byte("BEGIN CERTIFICATE")); n != 1+len(tt.want) || bytes.Contains(roots.bundle, []byte("PRIVATE")) {
				t.Errorf("the bundle has %d certificates: %s", n, roots.bundle)
			}
			pool, err := roots.pool()
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range append(tt.want, system) {
				if !bytes.Contains(roots.bundle, []byte(one)) {
					t.Errorf("the bundle lacks %s", one)
				}
			}
			wanted, err := rootsOf(t, []byte(strings.Join(append(tt.want, system), ""))).pool()
			if err != nil || !pool.Equal(wanted) {
				t.Errorf("the pool is another (%v)", err)
			}
		})
	}
}
