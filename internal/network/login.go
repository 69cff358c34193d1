package network

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const (
	renewalBytes = 64 << 10         // of a request to a token endpoint
	renewalTime  = 30 * time.Second // for it to come, and for its answer
)

// logins are the token endpoints at the host of a request. Nothing that is sent to one
// from inside leaves: a renewal with the placeholder is answered outside, and a login
// from inside, whose token would come inside, is refused.
func (x *exchange) logins() []policy.Login {
	to := policy.HostPort{Host: x.to.Name, Port: x.to.Port}
	return slices.DeleteFunc(slices.Clone(x.engine.config.Logins), func(l policy.Login) bool { return !x.secure || l.Host != to })
}

// noLogin says to a program that tries to log in how that is done.
func noLogin(all []policy.Login) string {
	return "there is no login from inside, for its token would be there; for " + all[0].Title + ": " + all[0].Text
}

// renew answers a request that is for a token endpoint, and reports whether it was. A
// denial is the answer to any but a renewal.
func (x *exchange) renew(r *http.Request, all []policy.Login) (bool, *denial) {
	at := slices.DeleteFunc(all, func(l policy.Login) bool { return pathAllowed([]string{l.Path}, x.path) != nil })
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
	return true, deny(http.StatusForbidden, noLogin(at), unflagged)
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
