//go:build linux

package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// quietNames allows only the queries of the control: the row's names must not be
// queried.
func quietNames(n *internet) {
	n.reach = slices.DeleteFunc(slices.Clone(n.reach), func(r Reach) bool { return strings.HasPrefix(r.Host, "*") })
}

// namesOnly requires every handshake to name its server.
func namesOnly(n *internet) { n.namesOnly = true }

// otherCertificates gives one server a self-signed certificate, and another the certificate of a
// third.
func otherCertificates(n *internet) {
	good := n.certs
	n.choose = func(name string) tls.Certificate {
		switch name {
		case "allowed.test":
			return selfSigned(name)
		case "b.allowed.test":
			return n.w.outside.Certificate("denied.test")
		}
		return good
	}
}

// secondRun starts one run that may reach a host, and meanwhile another that may
// not.
func secondRun(s *Session) {
	there, until := filepath.Join(s.World.W, "there"), filepath.Join(s.World.W, "until")
	wait := s.Start(Command{Action: "net-wait", Args: []string{"ok=" + linesByDoor(allDoors, "http://allowed.test/first"), "there=" + there, "until=" + until, "resolve=allowed.test"}, Options: s.Row.Options})
	for end := time.Now().Add(20 * time.Second); !exists(there) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	s.World.net.reachOnly("/first")
	urls := []string{"http://allowed.test/second", "http://denied.test/"}
	found, err := os.ReadFile(there + ".found")
	if err != nil {
		s.Fail(err)
	}
	for _, a := range strings.Fields(string(found)) {
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		urls = append(urls, "http://"+a+"/second", "https://"+a+"/second")
	}
	for _, reach := range [][]Reach{{}, {{Host: "b.allowed.test", Ports: []int{80, 443}, Kind: "tcp"}}} {
		s.Run(Command{Action: "net-get", Args: []string{"ok=none", "try=" + linesByDoor(allDoors, urls...)}, Options: Options{Reach: reach}})
	}
	if err := s.World.File("W/until", ""); err != nil {
		s.Fail(err)
	}
	wait()
}

// reachOnly narrows what allowed hosts may be asked for.
func (n *internet) reachOnly(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.reach {
		n.reach[i].Paths = []string{target}
	}
}

// selfSigned is a certificate that no authority vouches for.
func selfSigned(name string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A secret for one host, and the hosts that it is not for.
var (
	lentSecret = Secret{Env: "PROBE_SECRET", Host: "allowed.test", Header: "Authorization: Bearer {}"}
)

const lentName = "the secret that is lent"

// lentLength is the length of a stand-in: that of the secret.
func (w *World) lentLength() int { return len(w.Token(lentName)) }

// borrowers starts two runs with a secret each; the second uses the stand-in of
// the first.
func borrowers(s *Session) {
	there, until := filepath.Join(s.World.W, "there"), filepath.Join(s.World.W, "until")
	wait := s.Start(Command{Action: "net-wait", Args: []string{"ok=" + linesByDoor(allDoors[:1], "https://allowed.test/first"), "there=" + there, "until=" + until, "env=" + lentSecret.Env}, Options: s.Row.Options})
	for end := time.Now().Add(20 * time.Second); !exists(there) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	s.World.Holds(there) // without a sandbox the secret itself is there
	ask := "GET /borrowed HTTP/1.1\r\nHost: allowed.test\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n"
	s.Run(Command{Action: "net-secret", Args: []string{"from=" + there, "ok=" + sayLine("direct allowed.test:443", "GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n"), "say=" + sayLine("direct allowed.test:443", ask)}, Options: s.Row.Options})
	if err := s.World.File("W/until", ""); err != nil {
		s.Fail(err)
	}
	wait()
}

// borrowed reports requests in which another run's stand-in was replaced by a
// secret.
func borrowed(w *World, _ Observation) []string {
	for _, v := range w.net.requests("/borrowed") {
		if strings.Contains(v.head, w.Token(lentName)) {
			return []string{"the stand-in of another run was taken for the secret"}
		}
	}
	return nil
}

// lend gives the launcher a secret and sets where it may arrive.
func lend(w *World) error {
	n, err := w.internet()
	if err != nil {
		return err
	}
	value := w.Token(lentName)
	w.Env = append(w.Env, lentSecret.Env+"="+value)
	right := "Authorization: Bearer " + value + "\r\n"
	n.lent = map[string]func(arrival) bool{value: func(v arrival) bool {
		return v.name == lentSecret.Host && v.to.Port() == 443 && strings.Count(v.head+v.target+v.body, value) == 1 && strings.Contains(v.head, right)
	}}
	return nil
}

// arrived reports requests for a path that no server may be asked for, with what
// they carried.
func arrived(path string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		var out []string
		for _, v := range w.net.requests("/parts") {
			if len(v.body) > 0 && len(v.body) == w.lentLength() {
				out = append(out, fmt.Sprintf("%s:%d was sent, in parts, what stands for a secret of another host", v.name, v.to.Port()))
			}
		}
		for _, v := range w.net.requests(path) {
			if v.method == "POST" && v.body == "" {
				continue // it was stopped when the body came
			}
			out = append(out, fmt.Sprintf("%s:%d got a request that it should not: %s %s", v.name, v.to.Port(), v.method, v.target))
		}
		return out
	}
}
