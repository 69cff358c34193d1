package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Binding is a credential as a request may use it.
type Binding struct {
	Credential  string
	Placeholder string
	Header      string   // canonical name
	Format      string   // with {} for the secret
	Always      bool     // set it also where no placeholder stands
	Sign        string   // "" or "aws-sigv4"
	Paths       []string // as policy.HostRule.Paths
}

// Use is one request that a secret is opened for.
type Use struct {
	Name         string
	Port         int
	Method, Path string
}

// Secret is what a source gave. No format verb and no encoder shows it.
type Secret struct {
	Value  string            // of header credentials
	Fields map[string]string // of aws-sigv4: access-key-id, secret-access-key, session-token
}

// The fields of an aws-sigv4 secret.
const (
	KeyID        = "access-key-id"
	SecretKey    = "secret-access-key"
	SessionToken = "session-token" // not there for a key that lasts
)

const hidden = "[secret]"

func (s Secret) String() string               { return hidden }
func (s Secret) GoString() string             { return hidden }
func (s Secret) Format(f fmt.State, _ rune)   { io.WriteString(f, hidden) }
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// sensitive lists the parts that nobody else may see. An access key id is a
// name, and stands in every signed request.
func (s Secret) sensitive() []string {
	var out []string
	if s.Value != "" {
		out = append(out, s.Value)
	}
	for _, field := range []string{SecretKey, SessionToken} {
		if v := s.Fields[field]; v != "" {
			out = append(out, v)
		}
	}
	return out
}

// hash is the beginning of SHA-256 over the secret: enough to see in records
// that two uses had the same secret, and no help in finding it.
func (s Secret) hash() string {
	h := sha256.New()
	io.WriteString(h, s.Value)
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		io.WriteString(h, "\x00"+field+"\x00"+s.Fields[field])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:4])
}

// The bounds of a secret, in bytes. A shorter one cannot be told from ordinary
// text when answers are searched for it.
const (
	shortest = 8
	longest  = 16 << 10
)

// problem says why a secret cannot be used; "" when it can. The words hold
// nothing of it.
func problem(value string) string {
	switch {
	case value == "":
		return "the source gave nothing"
	case len(value) < shortest:
		return fmt.Sprintf("the source gave %d bytes; a secret of less than %d cannot be kept out of answers", len(value), shortest)
	case len(value) > longest:
		return fmt.Sprintf("the source gave more than %d KiB", longest>>10)
	case value[0] == ' ' || value[len(value)-1] == ' ':
		return "what the source gave begins or ends with a blank"
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return "what the source gave is not one line of printable ASCII, so no header can hold it"
		}
	}
	return ""
}

// check says why a secret cannot be used for what the credential is for.
func (s Secret) check(sign string) string {
	if sign == "" {
		return problem(s.Value)
	}
	if id := s.Fields[KeyID]; len(id) < 16 || len(id) > 128 || problem(id) != "" {
		return "the source gave no access key id"
	}
	if why := problem(s.Fields[SecretKey]); why != "" {
		return "the secret access key: " + why
	}
	if token := s.Fields[SessionToken]; token != "" && problem(token) != "" {
		return "the session token: " + problem(token)
	}
	return ""
}
