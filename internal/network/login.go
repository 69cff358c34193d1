package network

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const (
	renewalBytes = 64 << 10         // of a request to a token endpoint
	renewalTime  = 30 * time.Second // for it to come, and for its answer
)

// logins are the token endpoints at the host of a request: a renewal with the placeholder
// is answered outside, and a login from inside, whose token would come inside, is refused.
func (x *exchange) logins() []policy.Login {
	to := policy.HostPort{Host: x.to.Name, Port: x.to.Port}
	return slices.DeleteFunc(slices.Clone(x.engine.config.Logins), func(l policy.Login) bool { return !x.secure || l.Host != to })
}

// nearLogins are those of the token endpoints in whose directory a path is.
func nearLogins(all []policy.Login, at string) []policy.Login {
	return slices.DeleteFunc(slices.Clone(all), func(l policy.Login) bool {
		return !strings.HasPrefix(plainPath(at)+"/", strings.TrimSuffix(path.Dir(l.Path), "/")+"/")
	})
}

// loginsAt are those of the token endpoints that a path leads to.
func loginsAt(all []policy.Login, at string) []policy.Login {
	return slices.DeleteFunc(slices.Clone(all), func(l policy.Login) bool { return plainPath(at) != path.Clean(l.Path) })
}

// plainPath is a path as any server may read it: without escapes, dots and empty segments.
func plainPath(sent string) string {
	for range pathLayers {
		plain, err := url.PathUnescape(sent)
		if err != nil {
			break
		}
		sent = plain
	}
	return path.Clean("/" + strings.ReplaceAll(sent, `\`, "/"))
}

// noLogin says to a program that tries to log in how that is done.
func noLogin(all []policy.Login) string {
	return "there is no login from inside, for its token would be there; for " + all[0].Title + ": " + all[0].Text
}

// renew answers a request that is for a token endpoint, and reports whether it was. A
// denial is the answer to any but a renewal, and but one of another client where a rule
// of the user's own permits it.
func (x *exchange) renew(r *http.Request, all []policy.Login) (bool, *denial) {
	at := loginsAt(all, x.path)
	if len(at) == 0 {
		return false, nil
	}
	if x.body == nil {
		return true, deny(http.StatusForbidden, noLogin(at), unflagged)
	}
	ctx, cancel := context.WithTimeout(r.Context(), renewalTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { x.body.Close() })()
	data, err := io.ReadAll(io.LimitReader(x.body.ReadCloser, renewalBytes+1))
	if err != nil || len(data) > renewalBytes {
		return true, deny(http.StatusBadRequest, "the request to a token endpoint is not whole, or too large", unflagged)
	}
	start := time.Now()
	for _, l := range at {
		if l.Credential == "" || x.engine.config.Credentials == nil {
			continue
		}
		if status, answer := x.engine.config.Credentials.Renew(ctx, l.Credential, data); answer != nil {
			return true, x.answerRenewal(r, status, answer, start)
		}
	}
	if found := x.body.leakIn(data); found != nil {
		return true, x.denyLeak(found)
	}
	if _, permitted := x.permit.withoutLogins().Request(r.Method, x.path); permitted && ofAnother(at, r, data) {
		x.observe(r)
		x.body.ReadCloser = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(data), x.body.ReadCloser}
		return false, nil
	}
	return true, deny(http.StatusForbidden, noLogin(at), unflagged)
}

// ofAnother reports whether a request to a token endpoint is of none of the programs that
// log in there: a form (RFC 6749) that is without the identifiers of their clients. Those
// could also be in the query or a header.
func ofAnother(at []policy.Login, r *http.Request, data []byte) bool {
	form, err := url.ParseQuery(string(data))
	kind := strings.ToLower(strings.ReplaceAll(strings.Join(r.Header["Content-Type"], ","), " ", ""))
	if kind = strings.TrimSuffix(kind, ";charset=utf-8"); err != nil || kind != "application/x-www-form-urlencoded" {
		return false
	}
	if strings.Contains(r.RequestURI, "?") || len(r.Header["Authorization"])+len(r.Header["Content-Encoding"]) > 0 {
		return false
	}
	return !slices.ContainsFunc(at, func(l policy.Login) bool {
		return l.Client == "" || strings.Contains(form.Encode(), url.QueryEscape(l.Client))
	})
}

// answerRenewal sends the answer to a renewal, which is recorded first.
func (x *exchange) answerRenewal(r *http.Request, status int, answer []byte, start time.Time) *denial {
	if x.record(r, map[string]string{"status": strconv.Itoa(status), "ms": strconv.FormatInt(time.Since(start).Milliseconds(), 10)}) != nil {
		return deny(http.StatusServiceUnavailable, errUnrecorded.Error(), unflagged)
	}
	h := x.answer.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(answer)))
	h.Set("Cache-Control", "no-store")
	x.answer.WriteHeader(status)
	x.answer.Write(answer)
	return nil
}
