package realtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// companyAuthority makes an authority that no store has, as a proxy of a company signs
// with. file is how companies hand it out: its certificate, and here its key, too.
func companyAuthority(t *testing.T, server string) (file string, leaf tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(serial int64, c *x509.Certificate, parent *x509.Certificate) *x509.Certificate {
		c.SerialNumber, c.NotBefore, c.NotAfter, c.BasicConstraintsValid = big.NewInt(serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour), true
		if parent == nil {
			parent = c
		}
		der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	authority := certificate(1, &x509.Certificate{Subject: pkix.Name{CommonName: "Company"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	made := certificate(2, &x509.Certificate{Subject: pkix.Name{CommonName: server}, DNSNames: []string{server},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, authority)
	file = "The authority of the company.\n" + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}))
	return file, tls.Certificate{Certificate: [][]byte{made.Raw}, PrivateKey: key}
}

// companyTools go to a server behind the proxy of a company, and say a line each.
const companyTools = `
	curl -sS https://company.example.org/hello || echo curl failed $?
	node -e 'fetch("https://company.example.org/hello").then(async a => console.log("node", a.status), e => console.log("node failed", e.cause.code))'
	python3 -c 'import urllib.request as r; print("python", r.urlopen("https://company.example.org/hello").status)' 2>/dev/null || echo python failed
	git ls-remote -q https://company.example.org/passed.git HEAD >/dev/null 2>&1 && echo git || echo git failed
	(cd module && GOPROXY=https://company.example.org/proxy GONOSUMDB='*' GOFLAGS='-mod=mod -modcacherw' go mod download 2>/dev/null) && echo go || echo go failed
`

var (
	companyWorks = []string{"hello by HTTP/2.0\n", "\nnode 200\n", "\npython 200\n", "\ngit\n", "\ngo\n"}
	companyFails = []string{"\nnode failed UNABLE_TO_VERIFY_LEAF_SIGNATURE\n", "\npython failed\n", "\ngit failed\n", "\ngo failed\n"}
)

// TestCompanyAuthority has the tools of a user whose company intercepts TLS work inside:
// what one variable of the environment names is trusted by all of them, whether TLS is
// passed through or terminated.
func TestCompanyAuthority(t *testing.T) {
	testenv.WithNetwork(t, addresses, func(t *testing.T, n *testenv.Network) {
		testenv.Binary(t)
		root := t.TempDir()
		testenv.NoLeaks(t, root)
		w := newWorld(t, n, root)
		w.nameServer()
		file, leaf := companyAuthority(t, companyHost)
		w.serveCompany(leaf)
		tools := []testenv.Feature{testenv.Curl, testenv.Node, testenv.Python, testenv.Git, testenv.Go}
		company := func(t *testing.T, env ...string) *fixture {
			p := newFixture(t, root, tools...)
			p.write(map[string]string{
				"../home/certs/company.pem": file, "../home/certs/dir/company.crt": file, "../home/certs/dir/README": "no certificate\n", "ca.pem": file,
				"module/go.mod":  "module example.org/app\n\ngo 1.21\n\nrequire example.org/leftover v1.2.3\n",
				"../policy.yaml": "version: 1\nextends: local\nnetwork:\n  allow:\n    - {host: " + companyHost + ", inspect: true}\n",
			})
			for _, v := range env {
				p.env = append(p.env, strings.ReplaceAll(v, "~", p.home))
			}
			return p
		}
		ways := map[string]func(p *fixture) []string{
			"passed":    func(*fixture) []string { return []string{"--allow", companyHost} },
			"inspected": func(p *fixture) []string { return []string{"--policy", p.ws + "/../policy.yaml"} },
		}
		for name, flags := range ways {
			for _, v := range []string{"NODE_EXTRA_CA_CERTS=~/certs/company.pem", "SSL_CERT_FILE=~/certs/company.pem", "SSL_CERT_DIR=/nowhere:~/certs/dir",
				"REQUESTS_CA_BUNDLE=~/certs/company.pem", "CURL_CA_BUNDLE=~/certs/company.pem", "GIT_SSL_CAINFO=~/certs/company.pem"} {
				variable, _, _ := strings.Cut(v, "=")
				t.Run(name+" "+variable, func(t *testing.T) {
					p := company(t, v)
					out := p.inside(companyTools+`
						grep -c 'PRIVATE KEY' $NODE_EXTRA_CA_CERTS || true; cat ~/certs/company.pem 2>/dev/null || echo not here
						(echo >> $NODE_EXTRA_CA_CERTS) 2>/dev/null || echo read-only`, append(flags(p), "--env", p.env[len(p.env)-1])...)
					contains(t, out, append(companyWorks, "\n0\n", "\nnot here\n", "\nread-only\n")...)
				})
			}
			t.Run(name+" without a variable", func(t *testing.T) {
				p := company(t)
				want := companyFails
				if name == "inspected" { // which the server outside is not
					want = []string{"its certificate is not valid", "\nnode 502\n", "\npython failed\n"}
				}
				contains(t, p.inside(companyTools, flags(p)...), want...)
			})
			t.Run(name+" a file that the command can change", func(t *testing.T) {
				p := company(t)
				p.env = append(p.env, "SSL_CERT_FILE="+p.ws+"/ca.pem")
				out, end := p.both(testenv.Binary(t), append(append([]string{"run"}, flags(p)...), "--", "sh", "-c", companyTools)...)
				contains(t, out, "\ngo failed\n", "\ngit failed\n")
				contains(t, end, "SSL_CERT_FILE is not trusted: what it names lies in "+p.ws+", which the command inside can change")
			})
		}
	})
}

// serveCompany serves files, a repository and a module behind a certificate of the
// company.
func (w *world) serveCompany(leaf tls.Certificate) {
	mux := http.NewServeMux()
	mux.Handle("/proxy/", http.StripPrefix("/proxy", goProxy(w.t)))
	mux.Handle("/passed.git/", gitSite(w.files["repositories"]))
	mux.Handle("/", filesSite())
	server := &http.Server{Handler: mux, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{Certificates: []tls.Certificate{leaf}}}
	w.t.Cleanup(func() { server.Close() })
	w.serve(companyHost+":443", func(l net.Listener) error { return server.ServeTLS(l, "", "") })
}
