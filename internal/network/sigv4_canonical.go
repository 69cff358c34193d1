package network

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// v4CanonicalRequest is the text of a request that is signed, and the names of the
// headers in it. The server makes the same text of what arrives there.
func v4CanonicalRequest(r *http.Request, c v4Authorization, payload string) (text string, signed []string, err error) {
	path, err := v4CanonicalURI(r.URL.EscapedPath(), c.service)
	if err != nil {
		return "", nil, err
	}
	query, err := v4CanonicalQuery(r.URL.RawQuery)
	if err != nil {
		return "", nil, err
	}
	var headers strings.Builder
	names := slices.Clone(c.signed)
	for name := range r.Header { // AWS takes no x-amz- header that is not signed
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		values := v4HeaderValues(r, name)
		if len(values) == 0 || name == "authorization" {
			continue
		}
		for i, v := range values {
			values[i] = v4Trim(v)
		}
		signed = append(signed, name)
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(values, ","))
	}
	return strings.Join([]string{r.Method, path, query, headers.String(), strings.Join(signed, ";"), payload}, "\n"), signed, nil
}

// v4HeaderValues are the values of a header as they will be sent, also of those that
// net/http keeps elsewhere.
func v4HeaderValues(r *http.Request, name string) []string {
	switch name {
	case "host":
		if r.Host != "" {
			return []string{r.Host}
		}
		return []string{r.URL.Host}
	case "content-length":
		// net/http sends the length of nothing with these methods only.
		if r.ContentLength > 0 || r.ContentLength == 0 && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, r.Method) {
			return []string{strconv.FormatInt(r.ContentLength, 10)}
		}
		return nil
	case "transfer-encoding", "connection", "expect", "te", "trailer", "upgrade", "keep-alive", "via":
		return nil // of one hop, so the server may see another value
	}
	return slices.Clone(r.Header.Values(http.CanonicalHeaderKey(name)))
}

// v4Trim takes blanks from both ends, and leaves one of several within.
func v4Trim(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' }), " ")
}

// v4CanonicalURI is the path as it is signed: decoded and encoded once for S3, whose
// names may hold anything; elsewhere normalised (RFC 3986 section 5.2.4) and
// encoded on top of the encoding that it has.
func v4CanonicalURI(escaped, service string) (string, error) {
	if escaped == "" {
		escaped = "/"
	}
	if service == "s3" || strings.HasPrefix(service, "s3-") || service == "s3express" {
		plain, err := url.PathUnescape(escaped)
		if err != nil {
			return "", errV4Escape
		}
		return v4EncodePath(plain), nil
	}
	clean := path.Clean("/" + escaped)
	if last := escaped[strings.LastIndexByte(escaped, '/')+1:]; clean != "/" && (last == "" || last == "." || last == "..") {
		clean += "/"
	}
	return v4EncodePath(clean), nil
}

// v4CanonicalQuery is the query as it is signed: sorted, and encoded in one way.
func v4CanonicalQuery(raw string) (string, error) {
	var pairs [][2]string
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		plainName, err := url.QueryUnescape(name)
		plainValue, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil {
			return "", errV4Escape
		}
		pairs = append(pairs, [2]string{v4Encode(plainName), v4Encode(plainValue)})
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	parts := make([]string, len(pairs))
	for i, p := range pairs {
		parts[i] = p[0] + "=" + p[1]
	}
	return strings.Join(parts, "&"), nil
}

// v4Encode encodes every byte that is not unreserved (RFC 3986 section 2.3), in
// upper case.
func v4Encode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// v4EncodePath is v4Encode that keeps slashes.
func v4EncodePath(text string) string { return strings.ReplaceAll(v4Encode(text), "%2F", "/") }

var errV4Escape = errors.New("the address of a signed request has an escape that is not whole or not hexadecimal")
