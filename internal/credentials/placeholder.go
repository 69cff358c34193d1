package credentials

import (
	"cmp"
	"crypto/rand"
	"math/big"
	"strings"

	"holdfast.dev/holdfast/internal/policy"
)

// Alphabets of tokens. All of their letters are unreserved in URLs (RFC 3986
// section 2.3) and need no quotes in a shell.
const (
	alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	urlSafe      = alphanumeric + "-_"
	base32       = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	digits       = "0123456789"
	hexadecimal  = "0123456789abcdef"
)

// part is a run of random letters with fixed text after it.
type part struct {
	length   int
	alphabet string
	then     string
}

// shapes says what tokens look like after their prefix. Programs check prefix,
// length and alphabet before they send anything. The longest prefix that fits
// counts. All have at least 128 random bits, even if the real ones have less.
var shapes = map[string][]part{
	"ghp_":        {{36, alphanumeric, ""}},
	"gho_":        {{36, alphanumeric, ""}},
	"ghu_":        {{36, alphanumeric, ""}},
	"ghs_":        {{36, alphanumeric, ""}},
	"ghr_":        {{76, alphanumeric, ""}},
	"github_pat_": {{22, alphanumeric, "_"}, {59, alphanumeric, ""}},
	"glpat-":      {{22, urlSafe, ""}},
	"sk-ant-":     {{93, urlSafe, "AA"}},
	"sk-":         {{48, alphanumeric, ""}},
	"npm_":        {{36, alphanumeric, ""}},
	"pypi-":       {{160, urlSafe, ""}},
	"xoxb-":       {{12, digits, "-"}, {13, digits, "-"}, {24, alphanumeric, ""}},
	"xoxp-":       {{12, digits, "-"}, {12, digits, "-"}, {13, digits, "-"}, {32, hexadecimal, ""}},
	"hf_":         {{40, alphanumeric, ""}},
	"hvs.":        {{90, urlSafe, ""}},
	"dop_v1_":     {{64, hexadecimal, ""}},
	"AIza":        {{35, urlSafe, ""}},
	"AKIA":        {{16, base32, ""}},
	"ASIA":        {{16, base32, ""}},
	"sk_live_":    {{99, alphanumeric, ""}},
	"sk_test_":    {{99, alphanumeric, ""}},
}

// genericPrefix begins a placeholder without a given shape.
const genericPrefix = "hf_"

// placeholder makes a value that looks like a token of the kind that begins
// with prefix.
func placeholder(prefix string) string {
	prefix = cmp.Or(prefix, genericPrefix)
	best := ""
	for p := range shapes {
		if strings.HasPrefix(prefix, p) && len(p) > len(best) {
			best = p
		}
	}
	var b strings.Builder
	b.WriteString(prefix)
	for _, p := range shapes[cmp.Or(best, genericPrefix)] {
		b.WriteString(random(p.length, p.alphabet))
		b.WriteString(p.then)
	}
	return b.String()
}

// random draws n letters, each equally likely.
func random(n int, alphabet string) string {
	out := make([]byte, n)
	most := big.NewInt(int64(len(alphabet)))
	for i := range out {
		k, _ := rand.Int(rand.Reader, most) // rand.Reader does not fail (Go 1.24 ends the process instead)
		out[i] = alphabet[k.Int64()]
	}
	return string(out)
}

// placeholders are what programs inside get instead of a secret.
type placeholders struct {
	value  string // of aws-sigv4: the key id
	secret string // of aws-sigv4: the secret key, which is never sent

	refresh, id string // of a login that is renewed, where the program has a file
}

func newPlaceholders(c policy.Credential) placeholders {
	if c.Sign == "" {
		return placeholders{value: placeholder(c.Shape)}
	}
	// A permanent key, whatever the real one is: with AKIA no program expects a
	// session token too.
	return placeholders{value: placeholder("AKIA"), secret: random(40, alphanumeric)}
}

// needles are the texts that are searched for, also in lower case: names of
// headers, and of hosts, come in no other.
func (s placeholders) needles(credential string) []needle {
	var out []needle
	for _, value := range []string{s.value, s.secret, s.refresh, s.id} {
		if value == "" {
			continue
		}
		if jwtClaims(value) != nil { // what comes before the signature is not only its own
			value = value[len(value)-jwtNeedle:]
		}
		for _, form := range append(forms(value), forms(strings.ToLower(value))...) {
			out = append(out, needle{form, credential})
		}
	}
	return out
}

// variables are the variables for a program inside. Both variables of a pair are
// set, under the names that the credential gives or those of the AWS programs.
func (h *holder) variables() []policy.Env {
	var out []policy.Env
	set := func(name, value string) {
		out = append(out, policy.Env{Name: name, Value: value, Origin: h.cred.Origin})
	}
	if h.cred.Sign != "" {
		set("AWS_ACCESS_KEY_ID", h.placeholders.value)
		set("AWS_SECRET_ACCESS_KEY", h.placeholders.secret)
		return out
	}
	for _, name := range h.cred.Env {
		set(name, h.placeholders.value)
	}
	return out
}
