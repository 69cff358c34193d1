package network

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"sort"
	"strings"
	"testing"
)

const (
	v4TestPlaceholder = "AKIAPLACEHOLDER23456"
	v4TestSecret      = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" // of AWS's published examples
	v4TestS3Secret    = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" // of those of S3
)

// v4Request reads a request as it comes from a client that signed it with the
// placeholder; {AUTH:names} is replaced by its Authorization header.
func v4Request(t *testing.T, head, body, scope string) *http.Request {
	t.Helper()
	head = regexp.MustCompile(`\{AUTH:([^}]*)\}`).ReplaceAllString(head,
		"Authorization: AWS4-HMAC-SHA256 Credential="+v4TestPlaceholder+"/"+scope+", SignedHeaders=$1, Signature="+strings.Repeat("0", 64))
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.ReplaceAll(head, "\n", "\r\n") + "\r\n\r\n" + body)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func v4TestKeys(secret, token string) Secret {
	f := map[string]string{"access-key-id": "AKIDEXAMPLE", "secret-access-key": secret}
	if token != "" {
		f["session-token"] = token
	}
	return Secret{Fields: f}
}

func v4SignatureOf(r *http.Request) string {
	_, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	return signature
}

// TestResignMatchesPublishedSignatures has the signatures that AWS publishes
// for these requests (AWS General Reference, "Signature Version 4 test suite",
// and Amazon S3 API Reference, "Authenticating requests").
func TestResignMatchesPublishedSignatures(t *testing.T) {
	t.Parallel()
	const (
		vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
		general = "20150830/us-east-1/service/aws4_request"
		s3      = "20130524/us-east-1/s3/aws4_request"
		end     = " HTTP/1.1\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\n{AUTH:host;x-amz-date}"
		empty   = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	)
	for _, c := range []struct{ name, head, body, scope, secret, want string }{
		{"nothing but the least", "GET /" + end, "", general, v4TestSecret, vanilla},
		{"a path that goes up and down", "GET /example/.." + end, "", general, v4TestSecret, vanilla},
		{"a path of slashes", "GET //" + end, "", general, v4TestSecret, vanilla},
		{"a path of a dot", "GET /./" + end, "", general, v4TestSecret, vanilla},
		{"a query out of order", "GET /?Param2=value2&Param1=value1" + end, "", general, v4TestSecret, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"a query of one pair", "GET /?Param1=value1" + end, "", general, v4TestSecret, "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
		{"a post", "POST /" + end, "", general, v4TestSecret, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"a header several times", "GET / HTTP/1.1\nHost: example.amazonaws.com\nMy-Header1: value2\nMy-Header1: value2\nMy-Header1: value1\nX-Amz-Date: 20150830T123600Z\n{AUTH:host;my-header1;x-amz-date}", "", general, v4TestSecret, "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
		{"headers with blanks around and within", "GET / HTTP/1.1\nHost: example.amazonaws.com\nMy-Header1:  value1\nMy-Header2:  \"a   b   c\"\nX-Amz-Date: 20150830T123600Z\n{AUTH:host;my-header1;my-header2;x-amz-date}", "", general, v4TestSecret, "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"a form", "POST / HTTP/1.1\nHost: example.amazonaws.com\nContent-Type: application/x-www-form-urlencoded\nContent-Length: 13\nX-Amz-Date: 20150830T123600Z\n{AUTH:content-type;host;x-amz-date}", "Param1=value1", general, v4TestSecret, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		{"part of an object of S3", "GET /test.txt HTTP/1.1\nHost: examplebucket.s3.amazonaws.com\nRange: bytes=0-9\nX-Amz-Content-Sha256: " + empty + "\nX-Amz-Date: 20130524T000000Z\n{AUTH:host;range;x-amz-content-sha256;x-amz-date}", "", s3, v4TestS3Secret, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"an object of S3 with a name that needs encoding, put with a date", "PUT /test%24file.text HTTP/1.1\nHost: examplebucket.s3.amazonaws.com\nDate: Fri, 24 May 2013 00:00:00 GMT\nX-Amz-Date: 20130524T000000Z\nX-Amz-Storage-Class: REDUCED_REDUNDANCY\nX-Amz-Content-Sha256: 44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\nContent-Length: 0\n{AUTH:date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class}", "", s3, v4TestS3Secret, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		{"a query of S3 with a name alone", "GET /?lifecycle HTTP/1.1\nHost: examplebucket.s3.amazonaws.com\nX-Amz-Date: 20130524T000000Z\nX-Amz-Content-Sha256: " + empty + "\n{AUTH:host;x-amz-content-sha256;x-amz-date}", "", s3, v4TestS3Secret, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := v4Request(t, c.head, c.body, c.scope)
			if err := resignV4(r, v4TestPlaceholder, v4TestKeys(c.secret, ""), 1<<20); err != nil {
				t.Fatal(err)
			}
			if got := v4SignatureOf(r); got != c.want {
				t.Errorf("signature %s, want %s", got, c.want)
			}
			if strings.Contains(r.Header.Get("Authorization"), v4TestPlaceholder) {
				t.Error("the placeholder is still there")
			}
			if body, err := io.ReadAll(r.Body); err != nil || string(body) != c.body {
				t.Errorf("body %q, %v", body, err)
			}
		})
	}
}

func TestResignRefuses(t *testing.T) {
	t.Parallel()
	const scope = "20150830/us-east-1/service/aws4_request"
	good := "GET / HTTP/1.1\nHost: example.amazonaws.com\nX-Amz-Date: 20150830T123600Z\n{AUTH:host;x-amz-date}"
	change := func(old, to string) string { return strings.Replace(good, old, to, 1) }
	for _, c := range []struct{ name, head, body, scope, want string }{
		{"a presigned address", change("GET /", "GET /?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=x&X-Amz-Signature=y"), "", scope, "presigned"},
		{"a presigned address in other letters", change("GET /", "GET /?x-amz-%73ignature=y"), "", scope, "presigned"},
		{"no signature", change("{AUTH:host;x-amz-date}", "Accept: x"), "", scope, "0 Authorization headers"},
		{"two signatures", good + "\n{AUTH:host}", "", scope, "2 Authorization headers"},
		{"a token instead", change("{AUTH:host;x-amz-date}", "Authorization: Bearer x"), "", scope, "not signed with"},
		{"the algorithm of version 4A", change("{AUTH:host;x-amz-date}", "Authorization: AWS4-ECDSA-P256-SHA256 Credential=x"), "", scope, "not signed with"},
		{"the host not signed", change("{AUTH:host;x-amz-date}", "{AUTH:x-amz-date}"), "", scope, "Host header is not signed"},
		{"names of headers in capitals", change("{AUTH:host", "{AUTH:X-Evil;host"), "", scope, "malformed"},
		{"an empty name of a header", change("{AUTH:host;", "{AUTH:host;;"), "", scope, "malformed"},
		{"another key id", change("{AUTH:host;x-amz-date}", "Authorization: AWS4-HMAC-SHA256 Credential=AKIAOTHER/"+scope+", SignedHeaders=host, Signature="+strings.Repeat("0", 64)), "", scope, "not the placeholder"},
		{"a scope of another form", good, "", "20150830/us-east-1/aws4_request", "malformed"},
		{"a scope with a line break's likes", good, "", "20150830/us%0aeast/service/aws4_request", "scope"},
		{"a signature of another length", change("{AUTH:host;x-amz-date}", "Authorization: AWS4-HMAC-SHA256 Credential="+v4TestPlaceholder+"/"+scope+", SignedHeaders=host, Signature=00"), "", scope, "malformed"},
		{"no time", change("X-Amz-Date: 20150830T123600Z\n", ""), "", scope, "0 headers Date"},
		{"two times", change("X-Amz-Date:", "X-Amz-Date: 20150830T123601Z\nX-Amz-Date:"), "", scope, "2 headers X-Amz-Date"},
		{"a time that is none", change("20150830T123600Z", "yesterday"), "", scope, "not a time"},
		{"another day", change("20150830T123600Z", "20150831T123600Z"), "", scope, "another day"},
		{"a body that is hashed in an unknown way", change("{AUTH", "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-EVENTS\n{AUTH"), "", scope, "cannot be re-signed"},
		{"a body in signed chunks", change("{AUTH", "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\n{AUTH"), "", scope, "(STREAMING-AWS4-HMAC-SHA256-PAYLOAD), and chunks are not re-signed: let the client send it unsigned"},
		{"a body in signed chunks with trailers", change("{AUTH", "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER\n{AUTH"), "", scope, "DisablePayloadSigning = true"},
		{"a body too long to be read", change("{AUTH", "Content-Length: 2000\n{AUTH"), strings.Repeat("x", 2000), scope, "2000 bytes"},
		{"a body too long that does not say so", change("{AUTH", "Transfer-Encoding: chunked\n{AUTH"), "7d0\r\n" + strings.Repeat("x", 2000) + "\r\n0\r\n\r\n", scope, "more than 1000 bytes"},
		{"a query that cannot be decoded", change("GET /", "GET /?a=%zz"), "", scope, "escape"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := v4Request(t, c.head, c.body, c.scope)
			err := resignV4(r, v4TestPlaceholder, v4TestKeys(v4TestSecret, ""), 1000)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), v4TestSecret) {
				t.Error("the error holds the secret")
			}
		})
	}
	r := v4Request(t, good, "", scope)
	if err := resignV4(r, v4TestPlaceholder, Secret{Value: "x"}, 1000); err == nil {
		t.Error("a secret without keys signs")
	}
}

// v4Checker is a server that verifies signatures independently, from what arrived.
func v4Checker(t *testing.T, secret, token string) http.Handler {
	mac := func(key, text string) string {
		h := hmac.New(sha256.New, []byte(key))
		h.Write([]byte(text))
		return string(h.Sum(nil))
	}
	head := regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/(\d+)/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$`)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := head.FindStringSubmatch(r.Header.Get("Authorization"))
		if m == nil || r.Header.Get("X-Amz-Security-Token") != token || token != "" && !strings.Contains(m[4], "x-amz-security-token") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, query, _ := strings.Cut(r.RequestURI, "?")
		if m[3] != "s3" {
			path = strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
		}
		pairs := strings.Split(query, "&")
		for i, p := range pairs {
			if !strings.Contains(p, "=") && p != "" {
				pairs[i] += "="
			}
		}
		sort.Strings(pairs)
		headers := ""
		for _, name := range strings.Split(m[4], ";") {
			value := strings.Join(r.Header.Values(name), ",")
			switch name {
			case "host":
				value = r.Host
			case "content-length":
				value = fmt.Sprint(r.ContentLength)
			}
			headers += name + ":" + value + "\n"
		}
		hash := r.Header.Get("X-Amz-Content-Sha256")
		if hash == "" {
			hash = fmt.Sprintf("%x", sha256.Sum256(body))
		}
		canonical := r.Method + "\n" + path + "\n" + strings.Join(pairs, "&") + "\n" + headers + "\n" + m[4] + "\n" + hash
		key := mac(mac(mac(mac("AWS4"+secret, m[1]), m[2]), m[3]), "aws4_request")
		text := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + m[1] + "/" + m[2] + "/" + m[3] + "/aws4_request\n" + fmt.Sprintf("%x", sha256.Sum256([]byte(canonical)))
		if fmt.Sprintf("%x", mac(key, text)) != m[5] {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Write(body)
	})
}

func TestAServerTakesWhatIsSignedAfresh(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, method, target, scope, hash, signed, token, body string }{
		{"a call with a body", "POST", "/", "20150830/us-east-1/sts/aws4_request", "", "content-type;host;x-amz-date", "", "Action=GetCallerIdentity"},
		{"with a session token", "POST", "/", "20150830/us-east-1/sts/aws4_request", "", "content-type;host;x-amz-date", "a-session-token", "x"},
		{"a token of the client's own is dropped", "GET", "/", "20150830/us-east-1/sts/aws4_request", "", "host;x-amz-date;x-amz-security-token", "", ""},
		{"an object with an encoded name", "PUT", "/bucket/a%20b%2Bc", "20150830/us-east-1/s3/aws4_request", "UNSIGNED-PAYLOAD", "host;x-amz-content-sha256;x-amz-date", "t", "data"},
		{"a length that is signed", "PUT", "/x", "20150830/us-east-1/s3/aws4_request", "UNSIGNED-PAYLOAD", "content-length;host;x-amz-content-sha256;x-amz-date", "", "data"},
		{"an encoded path elsewhere", "GET", "/functions/arn%3Aaws/x", "20150830/eu-central-1/lambda/aws4_request", "", "host;x-amz-date", "", ""},
		{"a query", "GET", "/?b=2&a=1%2F&c", "20150830/us-east-1/s3/aws4_request", "UNSIGNED-PAYLOAD", "host;x-amz-content-sha256;x-amz-date", "", ""},
		{"headers that were taken away on the way", "GET", "/", "20150830/us-east-1/sts/aws4_request", "", "accept;connection;host;x-amz-date;x-forwarded-for", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(v4Checker(t, v4TestSecret, c.token))
			defer server.Close()
			r, err := http.NewRequest(c.method, server.URL+c.target, bytes.NewBufferString(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Amz-Date", "20150830T123600Z")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Amz-Security-Token", "of-the-client")
			if c.hash != "" {
				r.Header.Set("X-Amz-Content-Sha256", c.hash)
			}
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+v4TestPlaceholder+"/"+c.scope+", SignedHeaders="+c.signed+", Signature="+strings.Repeat("0", 64))
			if err := resignV4(r, v4TestPlaceholder, v4TestKeys(v4TestSecret, c.token), 1<<20); err != nil {
				t.Fatal(err)
			}
			answer, err := server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("the server answered %d", answer.StatusCode)
			}
		})
	}
}
