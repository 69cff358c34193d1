package network

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tt := range []struct{ name, in, want string }{ // want "" means refused
		{"a name in normal form stays", "packages.example.org", "packages.example.org"},
		{"upper case becomes lower case", "API.Example.ORG", "api.example.org"},
		{"one final dot goes", "example.org.", "example.org"},
		{"a single label is a name", "db", "db"},
		{"an underscore may stand anywhere", "_dmarc.a_b.example.org", "_dmarc.a_b.example.org"},
		{"a label may begin with a digit", "3com.example", "3com.example"},
		{"a number may be a label before the last", "127.0.0.1.nip.example", "127.0.0.1.nip.example"},
		{"hexadecimal words may be the last label", "cafe", "cafe"},
		{"0x with another letter is no number", "0xyz", "0xyz"},
		{"an international name is taken as ASCII", "XN--MNCHEN-3YA.example", "xn--mnchen-3ya.example"},
		{"a label of 63 bytes is allowed", long + ".example", long + ".example"},
		{"a name of 253 bytes is allowed", strings.Repeat(long+".", 3) + strings.Repeat("b", 61), strings.Repeat(long+".", 3) + strings.Repeat("b", 61)},
		{"253 bytes and the final dot are allowed", strings.Repeat(long+".", 3) + strings.Repeat("b", 61) + ".", strings.Repeat(long+".", 3) + strings.Repeat("b", 61)},

		{"nothing is no name", "", ""},
		{"the root is no host", ".", ""},
		{"two final dots are an empty label", "example.org..", ""},
		{"a leading dot is an empty label", ".example.org", ""},
		{"an empty label in the middle", "a..b", ""},
		{"a label of 64 bytes", long + "a.example", ""},
		{"a name of 254 bytes", strings.Repeat(long+".", 3) + strings.Repeat("b", 62), ""},
		{"a hyphen at the start of a label", "-a.example", ""},
		{"a hyphen at the end of a label", "a-.example", ""},
		{"xn-- with nothing after it", "xn--.example", ""},
		{"a NUL that a C program stops at", "denied.test\x00.allowed.test", ""},
		{"a line feed", "a\n.example", ""},
		{"a space", "a b.example", ""},
		{"a tab at the end", "a.example\t", ""},
		{"raw UTF-8 that looks like Latin", "ex\u0430mple.test", ""},
		{"a full-width dot", "a\uff0eexample", ""},
		{"a soft hyphen that IDNA drops", "exam\u00adple.test", ""},
		{"the Kelvin sign, which lower-cases to k", "\u212a.example", ""},
		{"user information", "allowed.test@169.254.169.254", ""},
		{"a fragment", "169.254.169.254#allowed.test", ""},
		{"a port", "example.org:443", ""},
		{"a path", "example.org/x", ""},
		{"a backslash", "example.org\\x", ""},
		{"a percent escape", "ex%61mple.org", ""},
		{"brackets", "[example.org]", ""},
		{"a wildcard is no name", "*.example.org", ""},
		{"dotted IPv4 is an address, not a name", "1.2.3.4", ""},
		{"dotted IPv4 with a final dot", "127.0.0.1.", ""},
		{"short IPv4 of two parts", "127.1", ""},
		{"short IPv4 of three parts", "127.0.1", ""},
		{"zero", "0", ""},
		{"a whole address in decimal", "2852039166", ""},
		{"a whole address in hexadecimal", "0xA9FEA9FE", ""},
		{"hexadecimal parts", "0x7f.1", ""},
		{"hexadecimal in the last part only", "127.0.0.0x1", ""},
		{"octal parts", "0251.0376.0251.0376", ""},
		{"two parts, the second of 16 bits", "169.254.43518", ""},
		{"0x alone, which some read as zero", "0x", ""},
		{"five numbers", "1.2.3.4.5", ""},
		{"a number too large for a part", "999.999.999.999", ""},
		{"a name whose last label is a number", "example.123", ""},
		{"an IPv6 address", "::1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Normalize(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("Normalize(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
			}
			if err != nil && len(err.Error()) > 4*nameBytes+200 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestNormalizeHost(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"a name", "Example.org.", "example.org"},
		{"IPv4", "192.0.2.1", "192.0.2.1"},
		{"IPv6", "2001:DB8:0::1", "2001:db8::1"},
		{"IPv6 in brackets", "[2001:db8::1]", "2001:db8::1"},
		{"IPv4 inside IPv6", "[::ffff:169.254.169.254]", "169.254.169.254"},
		{"IPv4 inside IPv6 in hexadecimal", "::ffff:a9fe:a9fe", "169.254.169.254"},
		{"IPv4 in brackets", "[192.0.2.1]", ""},
		{"a zone", "fe80::1%eth0", ""},
		{"a zone in brackets", "[fe80::1%25eth0]", ""},
		{"half a bracket", "[::1", ""},
		{"a bracket at the end", "::1]", ""},
		{"IPv4 with leading zeros", "127.0.0.01", ""},
		{"IPv4 with a final dot", "127.0.0.1.", ""},
		{"a port after the bracket", "[::1]:80", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := normalizeHost(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("normalizeHost(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{
		"example.org", "EXAMPLE.org.", "127.1", "0x7f.1", "0", "0251.0376.0251.0376", "2852039166", "1.2.3.4.",
		"a..b", "-a", "a-", "xn--a", "ex\u0430mple", "a\x00b", "[::1]", "u@h", "a%2eb", "_x.y", strings.Repeat("a.", 127),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Normalize(s)
		if err != nil {
			if got != "" {
				t.Fatalf("refused, but gave %q", got)
			}
			return
		}
		again, err := Normalize(got)
		if err != nil || again != got {
			t.Fatalf("Normalize(%q) = %q, but of that it is %q, %v", s, got, again, err)
		}
		if !strings.EqualFold(strings.TrimSuffix(s, "."), got) {
			t.Fatalf("%q became %q", s, got)
		}
		if len(got) > nameBytes || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Fatalf("%q is not in normal form", got)
		}
		if _, err := netip.ParseAddr(got); err == nil {
			t.Fatalf("%q is an address", got)
		}
		if host, err := normalizeHost(s); err != nil || host != got {
			t.Fatalf("normalizeHost(%q) = %q, %v", s, host, err)
		}
	})
}
