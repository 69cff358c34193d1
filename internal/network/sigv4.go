package network

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// Words of AWS Signature Version 4 (AWS General Reference, "Create a signed AWS
// API request").
const (
	v4Algorithm        = "AWS4-HMAC-SHA256"
	v4Terminator       = "aws4_request"
	v4TimeFormat       = "20060102T150405Z"
	v4Unsigned         = "UNSIGNED-PAYLOAD"
	v4UnsignedTrailer  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	v4Streaming        = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	v4StreamingTrailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
)

// The headers of it.
const (
	v4DateHeader  = "X-Amz-Date"
	v4HashHeader  = "X-Amz-Content-Sha256"
	v4TokenHeader = "X-Amz-Security-Token"
)

// v4Presigned are the parameters of an address that carries its own signature.
var v4Presigned = []string{"x-amz-algorithm", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-amz-signedheaders"}

// v4Authorization is what an Authorization header of version 4 says.
type v4Authorization struct {
	keyID   string
	day     string // 20060102
	region  string
	service string   // of the service
	signed  []string // names of headers, in lower case
}

func (c v4Authorization) scope() string {
	return strings.Join([]string{c.day, c.region, c.service, v4Terminator}, "/")
}

// resignV4 re-signs a request that was signed with a placeholder. It must be the last
// change of the request before it is sent. The region, the service and which headers
// are signed stay as the client set them; headers that are no longer there are left
// out. A body without a hash is read up to bodyLimit bytes.
func resignV4(r *http.Request, placeholderKeyID string, s Secret, bodyLimit int64) error {
	auth, err := v4Parse(r)
	if err != nil {
		return err
	}
	id, secret, token := s.Fields[policy.KeyID], s.Fields[policy.SecretKey], s.Fields[policy.SessionToken]
	switch {
	case placeholderKeyID == "" || !hmac.Equal([]byte(auth.keyID), []byte(placeholderKeyID)):
		return errors.New("the request is signed with a key id that is not the placeholder")
	case id == "" || secret == "":
		return errors.New("the credential holds no AWS keys")
	}
	at, err := v4Date(r, auth)
	if err != nil {
		return err
	}
	r.Header.Del(v4TokenHeader)
	if token != "" {
		r.Header.Set(v4TokenHeader, token)
		auth.signed = append(auth.signed, strings.ToLower(v4TokenHeader))
	}
	// What comes back is searched for secrets, and this header may be signed.
	r.Header.Set("Accept-Encoding", "identity")
	payload, err := v4PayloadHash(r, bodyLimit)
	if err != nil {
		return err
	}
	canonical, signed, err := v4CanonicalRequest(r, auth, payload)
	if err != nil {
		return err
	}
	toSign := strings.Join([]string{v4Algorithm, at, auth.scope(), v4Hash([]byte(canonical))}, "\n")
	signature := hex.EncodeToString(v4MAC(v4SigningKey(secret, auth), toSign))
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%s", v4Algorithm, id, auth.scope(), strings.Join(signed, ";"), signature))
	return nil
}

// v4Parse reads the key, scope and signed headers of a request. Nothing is guessed:
// what is unusual is refused.
func v4Parse(r *http.Request) (v4Authorization, error) {
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(name)
		if err != nil || slices.Contains(v4Presigned, strings.ToLower(name)) {
			return v4Authorization{}, errors.New("the address is signed (a presigned URL); only requests that are signed in the Authorization header are re-signed")
		}
	}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return v4Authorization{}, fmt.Errorf("the request has %d Authorization headers; one is needed to re-sign it", len(values))
	}
	algorithm, rest, _ := strings.Cut(values[0], " ")
	if algorithm != v4Algorithm {
		return v4Authorization{}, fmt.Errorf("the request is not signed with %s; no other algorithm can be re-signed", v4Algorithm)
	}
	fields := map[string]string{}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if _, twice := fields[name]; !ok || twice {
			return v4Authorization{}, errors.New("the Authorization header is malformed")
		}
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	signature, err := hex.DecodeString(fields["Signature"])
	if len(fields) != 3 || len(scope) != 5 || scope[4] != v4Terminator || err != nil || len(signature) != sha256.Size {
		return v4Authorization{}, errors.New("the Authorization header is malformed")
	}
	c := v4Authorization{keyID: scope[0], day: scope[1], region: scope[2], service: scope[3]}
	for _, word := range scope[1:4] {
		if word == "" || len(word) > 64 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			return v4Authorization{}, errors.New("the scope of the signature is malformed")
		}
	}
	c.signed = strings.Split(fields["SignedHeaders"], ";")
	if !slices.Contains(c.signed, "host") {
		return v4Authorization{}, errors.New("the Host header is not signed")
	}
	for _, name := range c.signed {
		if name != strings.ToLower(name) || !isToken(name) {
			return v4Authorization{}, errors.New("the list of signed headers is malformed")
		}
	}
	return c, nil
}

// v4Date is the time of the request as it is signed. The scope has to be of the
// same day.
func v4Date(r *http.Request, c v4Authorization) (string, error) {
	name := v4DateHeader
	if len(r.Header.Values(name)) == 0 {
		name = "Date"
	}
	values := r.Header.Values(name)
	if len(values) != 1 {
		return "", fmt.Errorf("the request has %d headers %s; one is needed to re-sign it", len(values), name)
	}
	at, err := time.Parse(v4TimeFormat, values[0])
	if err != nil && name == "Date" {
		at, err = http.ParseTime(values[0])
	}
	if err != nil {
		return "", fmt.Errorf("the header %s of a signed request is not a time", name)
	}
	text := at.UTC().Format(v4TimeFormat)
	if text[:8] != c.day {
		return "", errors.New("the signature is of another day than the request")
	}
	return text, nil
}

// v4NeedsBody reports whether signing the request afresh holds its body in memory.
func v4NeedsBody(r *http.Request) bool { return r.Header.Get(v4HashHeader) == "" }

// v4PayloadHash represents the body in the signature.
func v4PayloadHash(r *http.Request, limit int64) (string, error) {
	values := r.Header.Values(v4HashHeader)
	if len(values) > 1 {
		return "", fmt.Errorf("the request has %d headers %s", len(values), v4HashHeader)
	}
	if len(values) == 1 {
		sum, err := hex.DecodeString(values[0])
		switch {
		case values[0] == v4Unsigned || values[0] == v4UnsignedTrailer:
			return values[0], nil
		case values[0] == v4Streaming || values[0] == v4StreamingTrailer:
			return "", fmt.Errorf("the body is signed chunk by chunk (%s), and chunks are not re-signed: let the client send it unsigned, with %s (.NET: DisablePayloadSigning = true; Java: payload signing off)", values[0], v4Unsigned)
		case err == nil && len(sum) == sha256.Size:
			return values[0], nil
		}
		return "", fmt.Errorf("the body is signed in a way that cannot be re-signed: %.60q", values[0])
	}
	if r.Body == nil || r.Body == http.NoBody {
		return v4Hash(nil), nil
	}
	if r.ContentLength > limit {
		return "", fmt.Errorf("the body has %d bytes and no hash beside it; up to %d are read to re-sign it", r.ContentLength, limit)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	r.Body.Close()
	if err != nil {
		return "", fmt.Errorf("reading the body to re-sign it: %w", err)
	}
	if int64(len(body)) > limit {
		return "", fmt.Errorf("the body has more than %d bytes and no hash beside it; up to so many are read to re-sign it", limit)
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return v4Hash(body), nil
}

// v4SigningKey derives the key of a day, a region and a service.
func v4SigningKey(secret string, c v4Authorization) []byte {
	key := []byte("AWS4" + secret)
	for _, word := range []string{c.day, c.region, c.service, v4Terminator} {
		key = v4MAC(key, word)
	}
	return key
}

func v4MAC(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	io.WriteString(h, text)
	return h.Sum(nil)
}

func v4Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
