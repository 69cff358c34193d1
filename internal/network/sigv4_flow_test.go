package network

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// keyring is Credentials with keys of AWS for apiName.
type keyring struct{}

func (keyring) Bound(name string, _ int) []Binding {
	if name != apiName {
		return nil
	}
	return []Binding{{Credential: "aws", Placeholder: v4TestPlaceholder, Sign: "aws-sigv4"}}
}

func (keyring) Detect(b []byte) []string {
	if strings.Contains(string(b), v4TestPlaceholder) {
		return []string{"aws"}
	}
	return nil
}

func (keyring) Open(context.Context, string, Use) (Secret, error) {
	return v4TestKeys(v4TestSecret, "session"), nil
}

func (keyring) Renew(context.Context, string, []byte) (int, []byte) { return 0, nil }

func (keyring) Rejected(string) {}

func (keyring) Consent(ctx context.Context, _ string, _ Use) (context.Context, event.Ruling, error) {
	return ctx, event.Ruling{}, nil
}

func (keyring) Issued() [][]byte { return [][]byte{[]byte(v4TestSecret), []byte("session")} }

// TestRequestsToAWSArriveSigned sends requests that are signed with the
// placeholder through an engine, to a server that checks the signature.
func TestRequestsToAWSArriveSigned(t *testing.T) {
	t.Parallel()
	zero := strings.Repeat("0", 64)
	chunks := "4\r\ndata\r\n0\r\nx-amz-checksum-crc32:rfPzYw==\r\n\r\n"
	for _, w := range ways[1:] {
		for _, c := range []struct {
			name, method, path, scope, signed, body string
			header                                  []string
			status                                  int
		}{
			{"a call", "POST", "/", "us-east-1/sts", "content-type;host;x-amz-date", "Action=GetCallerIdentity", []string{"Content-Type", "application/x-www-form-urlencoded"}, 200},
			{"a call whose body has no length", "POST", "/", "us-east-1/sts", "host;x-amz-date", "stream", nil, 200},
			{"an object that is not hashed", "PUT", "/bucket/a%20b", "us-east-1/s3", "host;x-amz-content-sha256;x-amz-date", "data", []string{"X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"}, 200},
			{"an object in chunks", "PUT", "/bucket/a", "us-east-1/s3", "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length", chunks,
				[]string{"X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "Content-Encoding", "aws-chunked", "X-Amz-Decoded-Content-Length", "4"}, 200},
			{"an object in signed chunks", "PUT", "/bucket/a", "us-east-1/s3", "host;x-amz-content-sha256;x-amz-date", "0;chunk-signature=" + zero + "\r\n\r\n",
				[]string{"X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "Content-Encoding", "aws-chunked"}, 403},
			{"with a signed encoding of the answer", "GET", "/", "us-east-1/s3", "accept-encoding;host;x-amz-content-sha256;x-amz-date", "", []string{"Accept-Encoding", "gzip", "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD"}, 200},
			{"with a signed header that does not pass", "GET", "/", "us-east-1/sts", "host;x-amz-date;x-forwarded-for", "", []string{"X-Forwarded-For", "10.0.0.1"}, 200},
			{"a presigned address", "GET", "/?X-Amz-Signature=" + zero + "&X-Amz-Credential=x", "us-east-1/s3", "host;x-amz-date", "", nil, 403},
		} {
			t.Run(w.name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				shop := w.shopConfig
				shop.rule, shop.credentials = func(r *policy.HostRule) { r.Credentials = []string{"aws"} }, keyring{}
				s := newShop(t, v4Checker(t, v4TestSecret, "session"), shop)
				header := append(c.header, "X-Amz-Date", "20150830T123600Z",
					"Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/20150830/%s/aws4_request, SignedHeaders=%s, Signature=%s", v4TestPlaceholder, c.scope, c.signed, zero))
				var body io.Reader = strings.NewReader(c.body)
				if strings.Contains(c.name, "no length") {
					body = struct{ io.Reader }{body}
				}
				resp, got := s.ask(c.method, c.path, body, header...)
				if resp.StatusCode != c.status {
					t.Errorf("answered %d %q, want %d", resp.StatusCode, got, c.status)
				}
				if resp.StatusCode == 200 && len(got) != len(c.body) {
					t.Errorf("%d bytes arrived, want %d", len(got), len(c.body))
				}
			})
		}
	}
}
