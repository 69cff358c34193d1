package network

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"testing"
)

// BenchmarkTLS is bulk over one connection: direct, passed through, and with TLS
// terminated in between.
func BenchmarkTLS(b *testing.B) {
	const size = 64 << 20
	block := make([]byte, 1<<20)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "PUT" {
			io.Copy(io.Discard, r.Body)
			return
		}
		for range size / len(block) {
			w.Write(block)
		}
	})
	down := func(b *testing.B, c *http.Client, url string) {
		b.SetBytes(size)
		for b.Loop() {
			resp, err := c.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); n != size {
				b.Fatal(n, err)
			}
			resp.Body.Close()
		}
	}
	for _, old := range []bool{true, false} {
		name := map[bool]string{true: "HTTP1", false: "HTTP2"}[old]
		o := newOrigin(b, h, apiName)
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(o.pem)
		direct := &http.Client{Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: apiName},
			ForceAttemptHTTP2: !old,
		}}
		s := newShop(b, h, shopConfig{secure: true, old: old})
		s.client.Timeout = 0
		b.Run(name+"/direct", func(b *testing.B) { down(b, direct, o.URL) })
		b.Run(name+"/terminated", func(b *testing.B) { down(b, s.client, s.url("/")) })
	}
}

// BenchmarkRequest is one small request after the other on a connection that is
// kept.
func BenchmarkRequest(b *testing.B) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	one := func(b *testing.B, c *http.Client, url string) {
		b.ReportAllocs()
		for b.Loop() {
			resp, err := c.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	o := newOrigin(b, h, apiName)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(o.pem)
	direct := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: apiName}}}
	b.Run("direct", func(b *testing.B) { one(b, direct, o.URL) })
	for _, w := range ways {
		s := newShop(b, h, w.shopConfig)
		b.Run(w.name, func(b *testing.B) { one(b, s.client, s.url("/")) })
	}
}
