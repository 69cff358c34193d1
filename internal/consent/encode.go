package consent

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// A text that is signed or digested begins with what it is, so that none can
// pass for another.
const (
	headAnswer  = "holdfast.dev/approve/answer/v1"
	headGrant   = "holdfast.dev/approve/grant/v1"
	headAttempt = "holdfast.dev/approve/attempt/v1"
	headText    = "holdfast.dev/approve/text/v1"
)

// fields are texts one after the other as netstrings, LENGTH:BYTES, so that
// each ends in one place only.
type fields []byte

func (f *fields) add(texts ...string) {
	for _, s := range texts {
		*f = strconv.AppendInt(*f, int64(len(s)), 10)
		*f = append(*f, ':')
		*f = append(*f, s...)
		*f = append(*f, ',')
	}
}

func (f *fields) list(texts []string) {
	f.add(strconv.Itoa(len(texts)))
	f.add(texts...)
}

// signedText is the text of an answer that is signed.
func (a Answer) signedText() []byte {
	var f fields
	f.add(headAnswer, a.Session, a.Request, a.Nonce, a.Digest, a.Grant,
		strconv.FormatBool(a.Allow), string(a.Scope), strconv.FormatInt(int64(a.For/time.Second), 10),
		strconv.FormatBool(a.Directory), strconv.Itoa(a.Uses), a.Reason, a.By, a.Via, stamp(a.At))
	return f
}

// Sign signs an answer with an approver's key.
func Sign(a Answer, key ed25519.PrivateKey) Signed {
	return Signed{Answer: a, Key: key.Public().(ed25519.PublicKey), Signature: ed25519.Sign(key, a.signedText())}
}

// signedText is the text of a grant that is signed.
func (g Grant) signedText() []byte {
	var f fields
	f.add(headGrant, g.ID, g.Session, g.Covers.text(), g.Rule, g.Request, string(g.Scope),
		stamp(g.Begun), stamp(g.Expires), strconv.Itoa(g.Uses), g.By, g.Via, g.Reason)
	return f
}

// text is the only spelling of c.
func (c Covers) text() string {
	var f fields
	f.add(string(c.Kind), c.Executable, c.SHA256, c.Cwd, c.Parent, c.Script, c.ScriptSHA256,
		c.Path, strconv.FormatBool(c.Directory), c.Operation, c.To,
		c.Host, strconv.Itoa(c.Port), c.Protocol, c.Method, c.URLPath, c.Name,
		c.Agent, c.Server, c.Tool, c.Arguments)
	f.list(c.Argv)
	f.list(c.Interpreted)
	f.list(c.Environment)
	return string(f)
}

// digest identifies exactly a: everything except which process asks.
func (q *Queue) digest(a event.Attempt) string {
	var f fields
	p := a.Process
	f.add(string(a.Kind), p.Executable, p.SHA256, p.Cwd, a.ParentExecutable, a.Path, a.Script, a.ScriptSHA256,
		a.Operation, a.To, a.Host, strconv.Itoa(a.Port), a.Protocol, a.Method, a.URLPath, strconv.FormatBool(a.Known), a.Name,
		a.Agent, a.Tool, a.Server, a.Arguments, strconv.FormatBool(a.Cut), strconv.FormatBool(a.EnvironmentUnknown), strconv.FormatBool(a.Command))
	f.list(p.Argv)
	f.list(a.Interpreted)
	f.list(a.Between)
	f.list(a.Environment)
	return q.sum(headAttempt, string(f))
}

// sum is the keyed hash of a text: a digest is in the record and may be of a
// short secret, which no reader of the record must be able to find by trying.
func (q *Queue) sum(what, text string) string {
	var f fields
	f.add(headText, what, text)
	h := hmac.New(sha256.New, q.key[:])
	h.Write(f)
	return hex.EncodeToString(h.Sum(nil))
}

// stamp is a time as it is signed and recorded; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// fingerprint is the name of a public key.
func fingerprint(key []byte) string {
	h := sha256.Sum256(key)
	return hex.EncodeToString(h[:8])
}

// amount is a number of uses and how many of them are left, in words.
func amount(uses, left int) string {
	if uses == 0 {
		return "unlimited"
	}
	return strconv.Itoa(max(left, 0))
}
