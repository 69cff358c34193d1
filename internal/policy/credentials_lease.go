package policy

import (
	"fmt"
	"io"
)

// Binding is a credential as a request may use it.
type Binding struct {
	Credential  string
	Placeholder string
	Header      string   // canonical name
	Format      string   // with {} for the secret
	Always      bool     // set it even without a placeholder
	Sign        string   // "" or "aws-sigv4"
	Paths       []string // as HostRule.Paths
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
	Fields map[string]string // of aws-sigv4, by the names below
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
