package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestCurl has a program that is not ours make requests, in each way it knows.
func TestCurl(t *testing.T) {
	testenv.Need(t, testenv.Curl, nil)
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Method, " ", r.RequestURI, " ", n, " ", err)
	}), shopConfig{secure: true})
	dir := t.TempDir()
	bundle, large := filepath.Join(dir, "bundle.pem"), filepath.Join(dir, "large")
	if err := os.WriteFile(bundle, s.config.Authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(s.at)
	if err != nil {
		t.Fatal(err)
	}
	const name = "https://" + apiName
	rows := []struct {
		args string
		want string
	}{
		{"--http1.1 " + name + "/a?b", "GET /a?b 0 <nil>"},
		{"--http2 " + name + "/a?b", "GET /a?b 0 <nil>"},
		{"--http1.0 " + name + "/a", "GET /a 0 <nil>"},
		{"--http1.1 -T LARGE " + name + "/up", "PUT /up 5242880 <nil>"},
		{"--http2 -T LARGE " + name + "/up", "PUT /up 5242880 <nil>"},
		{"--http1.1 --data-binary @LARGE " + name + "/up", "POST /up 5242880 <nil>"},
		{"--http1.1 -H Transfer-Encoding:chunked -T LARGE " + name + "/up", "PUT /up 5242880 <nil>"},
		{"--http2 --path-as-is " + name + "/a/../b/%2e%2e/c " + name + "/two", "GET /a/../b/%2e%2e/c 0 <nil>GET /two 0 <nil>"},
		{"--http1.1 " + name + "/one " + name + "/two", "GET /one 0 <nil>GET /two 0 <nil>"},
	}
	for _, r := range rows {
		t.Run(r.args, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			args := []string{"--silent", "--show-error", "--cacert", bundle, "--connect-to", "::127.0.0.1:" + port}
			args = append(args, strings.Fields(strings.ReplaceAll(r.args, "LARGE", large))...)
			out, err := exec.CommandContext(ctx, "curl", args...).CombinedOutput()
			if err != nil || string(out) != r.want {
				t.Errorf("curl says %q (%v), want %q", out, err, r.want)
			}
		})
	}
}
