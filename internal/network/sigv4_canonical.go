package network

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// v4Canonical is the text that a signature stands for, and the names of the
// headers in it. The server makes the same text of what arrives there.
func v4Canonical(r *http.Request, c v4Claim, payload string) (text string, signed []string, err error) {
	path, err := v4Path(r.URL.EscapedPath(), c.name)
	if err != nil {
		return "", nil, err
	}
	query, err := v4Query(r.URL.RawQuery)
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
		values := v4Values(r, name)
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

// v4Values are the values of a header as they will be sent, also of those that
// net/http keeps elsewhere.
func v4Values(r *http.Request, name string) []string {
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

// v4Path is the path as it is signed: decoded and encoded once for S3, whose
// names may hold anything; elsewhere normalised (RFC 3986 section 5.2.4) and
// encoded on top of the encoding that it has.
func v4Path(escaped, service string) (string, error) {
	if escaped == "" {
		escaped = "/"
	}
	if service == "s3" || strings.HasPrefix(service, "s3-") || service == "s3express" {
		plain, err := v4Decode(escaped, false)
		if err != nil {
			return "", err
		}
		return v4Encode(plain, true), nil
	}
	var kept []string
	segments := strings.Split(escaped, "/")
	for _, s := range segments {
		switch s {
		case "", ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, s)
		}
	}
	path := "/" + strings.Join(kept, "/")
	if last := segments[len(segments)-1]; len(kept) > 0 && (last == "" || last == "." || last == "..") {
		path += "/"
	}
	return v4Encode(path, true), nil
}

// v4Query is the query as it is signed: sorted, and encoded in one way.
func v4Query(raw string) (string, error) {
	var pairs [][2]string
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, err := v4Decode(name, true)
		if err != nil {
			return "", err
		}
		if value, err = v4Decode(value, true); err != nil {
			return "", err
		}
		pairs = append(pairs, [2]string{v4Encode(name, false), v4Encode(value, false)})
	}
	slices.SortFunc(pairs, func(a, b [2]string) int {
		if c := strings.Compare(a[0], b[0]); c != 0 {
			return c
		}
		return strings.Compare(a[1], b[1])
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p[0] + "=" + p[1])
	}
	return b.String(), nil
}

// v4Encode encodes every byte that is not unreserved (RFC 3986 section 2.3), in
// upper case.
func v4Encode(text string, keepSlash bool) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlash:
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

// v4Decode decodes a text once. plus is whether + stands for a blank, as in a
// query.
func v4Decode(text string, plus bool) (string, error) {
	if !strings.ContainsAny(text, "%+") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '+' && plus:
			b.WriteByte(' ')
		case text[i] == '%':
			if i+2 >= len(text) {
				return "", errors.New("the address of a signed request has an escape that is not whole")
			}
			v, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
			if err != nil {
				return "", errors.New("the address of a signed request has an escape that is none")
			}
			b.WriteByte(byte(v))
			i += 2
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), nil
}
