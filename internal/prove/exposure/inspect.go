package exposure

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/redact"
)

// inspection is what an inspector found in a file.
type inspection struct {
	secret bool  // it contains a secret
	level  Level // "" for the store's
	detail []string
}

// lines is an inspector that looks for secrets with this expression.
func lines(expression string) func([]byte) inspection {
	re := pattern(expression)
	return func(content []byte) inspection { return inspection{secret: re().Match(content)} }
}

// pattern compiles an expression at its first use, because every start of the
// program initialises this package.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

var sshKind = pattern(`^[a-z0-9@.-]{1,64}$`)

// A placeholder of package redact: the kind of a token and its first characters.
var markShape = pattern(`\[redacted:([A-Za-z0-9./_-]{1,64}):([^\s:…]{0,4})…:[0-9a-f]{8}\]`)

// tokens lists the kinds of tokens in a text, with their first characters if
// these only show the kind. Nothing is shown of a text that a person may have
// chosen.
func tokens(text string) []string {
	var out []string
	for _, m := range markShape().FindAllStringSubmatch(redact.New().String(text), -1) {
		kind := m[1]
		switch kind {
		case "password", "token", "secret":
		default:
			kind += " " + m[2] + "…"
		}
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
		if len(out) == 8 {
			break
		}
	}
	return out
}

// sshKey determines whether a file is an unprotected private key. The formats:
// PROTOCOL.key of OpenSSH, RFC 1421 and RFC 5958 for PEM, and PuTTY's.
func sshKey(content []byte) inspection {
	head := string(content[:min(len(content), 16<<10)])
	switch {
	case strings.HasPrefix(head, "PuTTY-User-Key-File-"):
		return keyed(!strings.Contains(head, "Encryption: none"), "PuTTY")
	case strings.Contains(head, "-----BEGIN OPENSSH PRIVATE KEY-----"):
		return opensshKey(head)
	case strings.Contains(head, "-----BEGIN ENCRYPTED PRIVATE KEY-----"):
		return keyed(true, "PKCS #8")
	case strings.Contains(head, "PRIVATE KEY-----"):
		return keyed(strings.Contains(head, "Proc-Type: 4,ENCRYPTED"), "PEM")
	}
	return inspection{}
}

func keyed(passphrase bool, kind string) inspection {
	if passphrase {
		return inspection{secret: true, level: Low, detail: []string{kind, "with a passphrase"}}
	}
	return inspection{secret: true, level: High, detail: []string{kind, "without a passphrase"}}
}

// opensshKey reads the beginning of an OpenSSH key: magic, name of the cipher,
// name and options of the key derivation, number of keys, first public key.
func opensshKey(text string) inspection {
	_, text, _ = strings.Cut(text, "-----BEGIN OPENSSH PRIVATE KEY-----")
	text, _, _ = strings.Cut(text, "-----END")
	raw, _ := base64.StdEncoding.DecodeString(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' {
			return -1
		}
		return r
	}, text))
	rest, ok := bytes.CutPrefix(raw, []byte("openssh-key-v1\x00"))
	if !ok {
		return inspection{secret: true, detail: []string{"a key that could not be read"}}
	}
	cipher, rest := sshString(rest)
	_, rest = sshString(rest)
	_, rest = sshString(rest)
	if len(rest) < 4 || cipher == "" {
		return inspection{secret: true, detail: []string{"a key that could not be read"}}
	}
	public, _ := sshString(rest[4:])
	kind, _ := sshString([]byte(public))
	if !sshKind().MatchString(kind) {
		kind = "OpenSSH"
	}
	out := keyed(cipher != "none", kind)
	if strings.HasPrefix(kind, "sk-") {
		out.level, out.detail = Low, append(out.detail, "on a security key")
	}
	return out
}

// sshString reads a string in SSH's encoding (RFC 4251, section 5); "" if there
// is none.
func sshString(b []byte) (string, []byte) {
	if len(b) < 4 {
		return "", nil
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return "", nil
	}
	return string(b[4 : 4+n]), b[4+n:]
}

// gpgKey determines whether a passphrase protects a file of private-keys-v1.d: an
// S-expression, or lines with one under Key (agent/keyformat.txt of GnuPG).
func gpgKey(content []byte) inspection {
	switch {
	case bytes.Contains(content, []byte("shadowed-private-key")):
		return inspection{} // on a card
	case bytes.Contains(content, []byte("protected-private-key")):
		return keyed(true, "OpenPGP")
	case bytes.Contains(content, []byte("private-key")):
		return keyed(false, "OpenPGP")
	}
	return inspection{secret: true, detail: []string{"a key that could not be read"}}
}

// dockerConfig looks for logins in a config.json, or for the helper that stores
// them. An unreadable file counts as a login.
func dockerConfig(content []byte) inspection {
	var c struct {
		Auths       map[string]struct{ Auth, IdentityToken, RegistryToken, Password string }
		CredsStore  string
		CredHelpers map[string]string
	}
	if err := json.Unmarshal(content, &c); err != nil {
		return inspection{secret: true, detail: []string{"it could not be read as JSON"}}
	}
	logins := 0
	for _, a := range c.Auths {
		if a.Auth+a.IdentityToken+a.RegistryToken+a.Password != "" {
			logins++
		}
	}
	switch {
	case logins > 0:
		return inspection{secret: true, detail: []string{plural(logins, "login", "logins")}}
	case c.CredsStore != "" || len(c.CredHelpers) > 0:
		return inspection{secret: true, level: Medium, detail: []string{"in a credential helper, which every program of the account can ask"}}
	}
	return inspection{}
}

// history counts the lines with something that looks like a secret.
func history(content []byte) inspection {
	if bytes.HasPrefix(content, []byte("SQLite format")) {
		return inspection{secret: true, detail: []string{"a database"}}
	}
	n, bad := 0, 0
	r := redact.New()
	for line := range strings.Lines(string(content)) {
		n++
		if clean := r.String(line); clean != line {
			bad++
		}
	}
	out := inspection{secret: n > 0, detail: []string{plural(n, "line", "lines")}}
	if bad > 0 {
		out.level = Medium
		out.detail = append(out.detail, fmt.Sprintf("%d with what looks like a secret", bad))
	}
	return out
}

// variable determines whether a variable is a secret. A value that is something
// else (a switch, a path) is none.
func variable(name, value string) (level Level, detail []string) {
	known := tokens(name + "=" + value)
	shaped := slices.ContainsFunc(known, func(k string) bool { return strings.Contains(k, " ") })
	pattern := secretVariable(name)
	if value == "" || pattern == "" && !shaped {
		return "", nil
	}
	detail = append([]string{plural(len(value), "character", "characters")}, known...)
	switch {
	case shaped:
		return High, detail
	case strings.HasPrefix(value, "/"), len(value) < 6, strings.EqualFold(value, "false"):
		return Info, nil
	case strings.HasPrefix(pattern, "*") || !strings.Contains(pattern, "*"):
		if len(known) == 0 && (strings.HasPrefix(value, "http") || strings.Trim(value, "0123456789.") == "") {
			return Info, nil // an address, a number
		}
		return High, detail
	}
	return Info, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
