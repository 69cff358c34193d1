//go:build linux

package redact

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestLongTextsTakeTheirLength masks what looks most like the beginning of
// something.
func TestLongTextsTakeTheirLength(t *testing.T) {
	const short = 1 << 17 // bytes
	r := New()
	r.Hold("held", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")
	for _, unit := range []string{
		"a", "=", "token=", "password:", "://", "://a", "://a:", "--", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "eyJ", "eyJ.", "eyJ-", "%3DeyJ", "\\neyJ", "%3Dsk-", "%25eyJ.a", ".eyJ", "sk-", "xoxb-",
		"AKIA", "[redacted:", "[redacted:a:", "token=/a/b/c/d/", "token: ", "Cookie: ", "cookie=a=", "curl -u ", "-u ", "--token ", "bearer ", "basic ", "Authorization: ", "\\", "token=\\", "token=\"", "%", "ghp_", "SG.", "pwd=x,", "token=x", " ", "\n", "d =", "token='",
		"password={{", "token={{a}}", `"--token", "{{`, "{{secret=", "re_aB3", "0123456789abcdef-us", "a1b2Q~", "http://a:", "Bearer {{", "token: x", "cookie: a={{;", "=live_",
	} {
		testenv.TakesItsLength(t, fmt.Sprintf("%q", unit), short, func(size int) func() {
			text := strings.Repeat(unit, size/len(unit))
			return func() { r.String(text); r.Argv([]string{"sh", "-c", text}) }
		})
	}
	testenv.TakesItsLength(t, "arguments", short, func(size int) func() {
		argv := slices.Repeat([]string{"docker", "-p"}, size/16)
		return func() { r.Argv(argv) }
	})
}
