package network

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestBodiesHeldToBeSigned sends bodies of requests that are signed, slowly and many at
// once: a few are held, the others get an error.
func TestBodiesHeldToBeSigned(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }),
		shopConfig{secure: true, rule: func(r *policy.HostRule) { r.Credentials = []string{"aws"} }, credentials: keyring{}})
	post := func(body io.Reader) int {
		r, err := http.NewRequest("POST", s.url("/"), body)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("X-Amz-Date", "20150830T123600Z")
		r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/20150830/us-east-1/sts/aws4_request, SignedHeaders=host;x-amz-date, Signature=%s", v4TestPlaceholder, strings.Repeat("0", 64)))
		resp, err := s.client.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	status, slow := make(chan int), make([]*io.PipeWriter, signedBodies)
	for i := range slow {
		var r *io.PipeReader
		r, slow[i] = io.Pipe()
		go func() { status <- post(r) }()
		io.WriteString(slow[i], "some")
	}
	until(t, "all places are taken", func() bool { return len(s.signing.free) == 0 })
	if got := post(strings.NewReader("one more")); got != http.StatusServiceUnavailable {
		t.Errorf("one more is answered %d", got)
	}
	for _, w := range slow {
		w.Close()
	}
	for range slow {
		if got := <-status; got != 200 {
			t.Errorf("a slow one is answered %d", got)
		}
	}
	until(t, "all places are free", func() bool { return len(s.signing.free) == signedBodies })
	if got := post(strings.NewReader("later")); got != 200 {
		t.Errorf("a later one is answered %d", got)
	}
}
