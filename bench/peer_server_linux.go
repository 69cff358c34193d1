package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// stepBytes is the size of one read or write at both ends.
const stepBytes = 128 << 10

// peerServe is the outer end. It prints where it listens and serves until
// standard input ends.
func peerServe() error {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	authority, leaf, err := certificates()
	if err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bytes", serveBytes)
	mux.HandleFunc("GET /events", serveEvents)
	web := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{leaf}}}
	failed := make(chan error, 2)
	go func() { failed <- web.ServeTLS(secure, "", "") }()
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				failed <- err
				return
			}
			go servePlain(c)
		}
	}()
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		failed <- err
	}()
	at := ports{plain.Addr().(*net.TCPAddr).Port, secure.Addr().(*net.TCPAddr).Port, string(authority)}
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return fmt.Errorf("printing the address of the server: %w", err)
	}
	return <-failed
}

// servePlain answers requests of nine bytes: `d` and a number for that many
// bytes, or `e` and eight bytes that are echoed.
func servePlain(c net.Conn) {
	defer c.Close()
	step := make([]byte, 9) // an idle connection must not include a large buffer
	for {
		if _, err := io.ReadFull(c, step[:9]); err != nil {
			return
		}
		if step[0] == 'e' {
			if _, err := c.Write(step[1:9]); err != nil {
				return
			}
			continue
		}
		rest := int64(binary.BigEndian.Uint64(step[1:9]))
		if len(step) < stepBytes {
			step = make([]byte, stepBytes)
		}
		for rest > 0 {
			n, err := c.Write(step[:min(rest, stepBytes)])
			if err != nil {
				return
			}
			rest -= int64(n)
		}
	}
}

func serveBytes(w http.ResponseWriter, r *http.Request) {
	rest, err := strconv.ParseInt(r.FormValue("n"), 10, 64)
	if err != nil {
		http.Error(w, "n is no number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(rest, 10))
	step := make([]byte, stepBytes)
	for rest > 0 {
		n, err := w.Write(step[:min(rest, stepBytes)])
		if err != nil {
			return
		}
		rest -= int64(n)
	}
}

// serveEvents streams events that contain their sending time.
func serveEvents(w http.ResponseWriter, r *http.Request) {
	count, err := strconv.Atoi(r.FormValue("n"))
	if err != nil {
		http.Error(w, "n is no number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	for range count {
		<-tick.C
		if _, err := fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano()); err != nil || flush.Flush() != nil {
			return
		}
	}
}

// certificates are an authority and the certificate that it signed for the
// server.
func certificates() (authority []byte, leaf tls.Certificate, err error) {
	sign := func(c, by *x509.Certificate, with *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, nil, err
		}
		if with == nil {
			with = key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), with)
		return der, key, err
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, rootKey, err := sign(root, root, nil)
	if err != nil {
		return nil, leaf, err
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	mine, key, err := sign(own, root, rootKey)
	if err != nil {
		return nil, leaf, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{mine}, PrivateKey: key}, nil
}
