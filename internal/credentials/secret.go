package credentials

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"holdfast.dev/holdfast/internal/policy"
)

// Bindings, uses and secrets, in types that egress knows too.
type (
	Binding = policy.Binding
	Use     = policy.Use
	Secret  = policy.Secret
)

// sensitive lists the parts that no one else may see. An access key id is a
// name, and is in every signed request.
func sensitive(s Secret) []string {
	var out []string
	if s.Value != "" {
		out = append(out, s.Value)
	}
	for _, field := range []string{policy.SecretKey, policy.SessionToken} {
		if v := s.Fields[field]; v != "" {
			out = append(out, v)
		}
	}
	return out
}

// hashOf is the beginning of SHA-256 over the secret: enough to see in records
// that two uses had the same secret, but no help in finding it.
func hashOf(s Secret) string {
	h := sha256.New()
	io.WriteString(h, s.Value)
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		io.WriteString(h, "\x00"+field+"\x00"+s.Fields[field])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:4])
}

// The bounds of a secret, in bytes. A shorter one cannot be distinguished from
// ordinary text when answers are searched for it.
const (
	shortest = 8
	longest  = 16 << 10
)

// secretFault returns why a secret cannot be used; "" if it can. The text
// contains nothing of it.
func secretFault(value string) string {
	switch {
	case value == "":
		return "the source gave nothing"
	case len(value) < shortest:
		return fmt.Sprintf("the source gave %d bytes; a secret of less than %d cannot be masked in responses", len(value), shortest)
	case len(value) > longest:
		return fmt.Sprintf("the source gave more than %d KiB", longest>>10)
	case value[0] == ' ' || value[len(value)-1] == ' ':
		return "what the source gave begins or ends with a space"
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return "what the source gave is not one line of printable ASCII, so no header can hold it"
		}
	}
	return ""
}

// unusable returns why a secret cannot be used for the purpose of the credential.
func unusable(s Secret, sign string) string {
	if sign == "" {
		return secretFault(s.Value)
	}
	if id := s.Fields[policy.KeyID]; len(id) < 16 || len(id) > 128 || secretFault(id) != "" {
		return "the source gave no access key id"
	}
	if why := secretFault(s.Fields[policy.SecretKey]); why != "" {
		return "the secret access key: " + why
	}
	if token := s.Fields[policy.SessionToken]; token != "" && secretFault(token) != "" {
		return "the session token: " + secretFault(token)
	}
	return ""
}
