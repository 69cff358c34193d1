package redact

import (
	"strings"
	"testing"
)

// A private key is masked whole, also as a string of JSON and with the headers of
// an encrypted key. What follows a key that has no end stays in view.
func TestPrivateKeyLines(t *testing.T) {
	const begin, end = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"
	line := strings.Repeat("b3Bl", 16)
	for _, tt := range []struct{ name, in, want string }{
		{"line breaks of JSON", `{"k":"` + begin + `\n` + line + `\nAAAE=\n` + end + `\n","x":1}`, `{"k":"<private-key>\n","x":1}`},
		{"of Windows in JSON", begin + `\r\n` + line + `\r\n` + end, "<private-key>"},
		{"of JSON in JSON", begin + `\\n` + line + `\\n` + end, "<private-key>"},
		{"another escape ends it", begin + `\n` + line + `\treboot`, `<private-key>\treboot`},
		{"a backslash at the end", begin + "\n" + line + `\`, `<private-key>\`},
		{"headers", begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + line + "\n" + end, "<private-key>"},
		{"a short line with others after it", begin + "\nreboot\nmore\n", "<private-key>\nreboot\nmore\n"},
		{"a header without an end", begin + "\nProc-Type: 4", "<private-key>\nProc-Type: 4"},
		{"a short last line without an end", begin + "\n" + line + "\nreboot", "<private-key>\nreboot"},
	} {
		if got := short(New().String(tt.in)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSkipBreaks: a key in a JSON text has its lines broken by two signs, and in a text
// within that by three.
func TestSkipBreaks(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "x": 0, " \t\r\nx": 4, `\n\r\nx`: 6, `\\nx`: 2, `\`: 0, `\tx`: 0, `\xn`: 0, "n": 0, `\n \`: 3,
	} {
		if got := skipBreaks(text, 0); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
