package alert

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/syslog"
	"holdfast.dev/holdfast/internal/policy"
)

// Question is what a webhook is asked: something waits until a human says
// whether it may happen.
type Question struct {
	Version int            `json:"version"` // 1
	Type    string         `json:"type"`    // approval
	ID      string         `json:"id"`      // of the request
	Nonce   string         `json:"nonce"`   // of this request alone; the answer repeats it
	Digest  string         `json:"digest"`  // of what would happen; the answer repeats it
	Session string         `json:"session"`
	Host    string         `json:"host,omitempty"`
	Kind    string         `json:"kind"`
	Asked   time.Time      `json:"asked"`
	Expires time.Time      `json:"expires"`
	Rule    string         `json:"rule,omitempty"`
	Reason  string         `json:"reason,omitempty"` // of the rule, in words
	Count   int            `json:"count"`            // identical ones that wait together
	What    []QuestionLine `json:"what"`             // what exactly would happen, as it is shown everywhere
}

// QuestionLine is one line of what would happen.
type QuestionLine struct {
	Name string `json:"name,omitempty"` // "" continues the line before
	Text string `json:"text"`
	Warn bool   `json:"warn,omitempty"` // it is unusual
}

// Reply is the answer of a webhook.
type Reply struct {
	Nonce    string `json:"nonce"`
	Digest   string `json:"digest"`
	Decision string `json:"decision"` // allow or deny
	Scope    string `json:"scope"`    // once, session or for; "" is once
	For      string `json:"for"`      // of scope for: a time span such as 10m
	Uses     int    `json:"uses"`     // how often at most; 0 for what the scope says
	Reason   string `json:"reason"`
	By       string `json:"by"`
}

// Pauses between two requests to a webhook that has no answer yet.
const (
	askPause     = 2 * time.Second
	askPauseMost = time.Minute
	askAttempt   = 10 * time.Second // limit of one request, by default: the server may hold it until it knows
	askIgnored   = 5                // invalid answers after which a webhook is not asked any more
)

// Asker asks one webhook. It can be used by several goroutines at once.
type Asker struct {
	poster  *poster
	name    string
	key     []byte
	attempt time.Duration
	pause   time.Duration
	now     func() time.Time
}

// NewAsker prepares a webhook that may answer. It needs a secret: an unsigned
// answer does not count.
func NewAsker(s policy.AlertSink, version string) (*Asker, error) {
	w, err := newWebhook(s, Options{Version: version})
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", name(s), err)
	}
	hook := w.(*webhook)
	if hook.key == nil {
		return nil, fmt.Errorf("preparing %s: without a secret, forged answers could not be recognised", name(s))
	}
	return &Asker{poster: hook.poster, name: name(s), key: hook.key, attempt: cmp.Or(s.Timeout, askAttempt), pause: askPause, now: time.Now}, nil
}

// Name is the webhook in messages, without its secrets.
func (a *Asker) Name() string { return a.name }

// Close closes the connections that are kept for further requests.
func (a *Asker) Close() { a.poster.close() }

// Ask asks until there is a valid answer or the context ends. It calls ignored
// for each invalid answer, which does not count.
func (a *Asker) Ask(ctx context.Context, q Question, ignored func(error)) (Reply, error) {
	q.Version, q.Type = 1, "approval"
	body, err := canonical.Marshal(q)
	if err != nil {
		return Reply{}, fmt.Errorf("asking %s: %w", a.name, err)
	}
	for bad, pause := 0, a.pause; ; {
		reply, wait, err := a.askOnce(ctx, q, body)
		var final *refusal
		var invalid *invalidReply
		switch {
		case err == nil && wait < 0:
			return reply, nil
		case ctx.Err() != nil:
			return Reply{}, fmt.Errorf("asking %s: %w", a.name, ctx.Err())
		case errors.As(err, &invalid):
			ignored(err)
			if bad++; bad == askIgnored {
				return Reply{}, fmt.Errorf("asking %s: %d answers were not valid, the last: %w", a.name, bad, err)
			}
		case errors.As(err, &final):
			return Reply{}, fmt.Errorf("asking %s: %w", a.name, err)
		case err != nil:
			pause = min(2*pause, askPauseMost)
		default:
			pause = a.pause
		}
		select {
		case <-ctx.Done():
			return Reply{}, fmt.Errorf("asking %s: %w", a.name, ctx.Err())
		case <-time.After(min(cmp.Or(wait, pause), askPauseMost)):
		}
	}
}

// invalidReply is an answer that does not count: its sender may not give it.
type invalidReply struct{ cause error }

func (i *invalidReply) Error() string { return i.cause.Error() }
func (i *invalidReply) Unwrap() error { return i.cause }

// askOnce asks once. A wait of 0 or more means that there is no answer yet.
func (a *Asker) askOnce(ctx context.Context, q Question, body []byte) (Reply, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, a.attempt)
	defer cancel()
	extra := signatureHeaders(a.key, a.now(), body)
	extra.Set("Holdfast-Request-Id", syslog.Field(q.ID, 128))
	answer, err := a.poster.do(ctx, body, extra)
	if err != nil {
		return Reply{}, 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes+1))
	switch code := answer.StatusCode; {
	case code == http.StatusAccepted:
		return Reply{}, retryAfter(answer), nil
	case code == http.StatusOK && err != nil:
		return Reply{}, 0, fmt.Errorf("reading the answer: %w", err)
	case code == http.StatusOK && len(text) > answerBytes:
		return Reply{}, 0, &invalidReply{fmt.Errorf("the answer has more than %d bytes", answerBytes)}
	case code == http.StatusOK:
		reply, err := a.check(q, answer.Header.Get("Holdfast-Signature"), text)
		return reply, -1, err
	case code == http.StatusNoContent:
		return Reply{}, 0, &refusal{errors.New("it accepts the request but gives no answer")}
	case code/100 == 5, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return Reply{}, retryAfter(answer), fmt.Errorf("the server answered %d %s", code, http.StatusText(code))
	case code/100 == 3:
		return Reply{}, 0, &refusal{fmt.Errorf("the server answered %d: it points elsewhere, and redirects are not followed", code)}
	default:
		return Reply{}, 0, &refusal{fmt.Errorf("the server answered %d %s", code, http.StatusText(code))}
	}
}

// check reports whether an answer is to this question, from a holder of the key. It is
// signed together with the word answer and the nonce of the question: the signature of
// a question is not valid for an answer, and that of one answer not for another.
func (a *Asker) check(q Question, signature string, text []byte) (Reply, error) {
	mac, err := hex.DecodeString(strings.TrimPrefix(signature, "v1="))
	if signature == "" {
		return Reply{}, &invalidReply{errors.New("the answer is not signed")}
	}
	if err != nil || !hmac.Equal(mac, sign(a.key, "answer."+q.Nonce, text)) {
		return Reply{}, &invalidReply{errors.New("the signature of the answer is wrong")}
	}
	var r Reply
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Reply{}, &invalidReply{fmt.Errorf("the answer was not understood: %w", err)}
	}
	switch {
	case r.Nonce != q.Nonce:
		return Reply{}, &invalidReply{errors.New("the answer is to another request")}
	case r.Digest != q.Digest:
		return Reply{}, &invalidReply{errors.New("the answer is about another action than the one asked about")}
	case r.Decision != "allow" && r.Decision != "deny":
		return Reply{}, &invalidReply{errors.New("the answer neither allows nor denies")}
	}
	return r, nil
}
