package network

import (
	"net/url"
	"strings"
	"testing"
)

func TestPathAllowed(t *testing.T) {
	for _, tt := range []struct {
		name, pattern, path string
		want                bool
	}{
		{"the same path", "/repo/x", "/repo/x", true},
		{"case matters", "/repo/x", "/Repo/x", false},
		{"a longer path", "/repo/x", "/repo/xy", false},
		{"a slash at the end is another path", "/repo/x", "/repo/x/", false},
		{"the top", "/", "/", true},
		{"the top is only the top", "/", "/x", false},
		{"a star is one segment", "/repo/*", "/repo/x", true},
		{"a star does not cross a slash", "/repo/*", "/repo/x/y", false},
		{"a star inside a segment", "/v*/users", "/v12/users", true},
		{"two stars in a segment", "/*-a-*", "/x-a-b-a-y", true},
		{"a bracket is a character", "/repo/[a]", "/repo/[a]", true},
		{"a bracket begins no class", "/repo/[ab]*", "/repo/ax", false},
		{"stars do not overlap", "/ab*ba", "/aba", false},
		{"everything below", "/repo/**", "/repo/a/b/c", true},
		{"what is below is not the thing itself", "/repo/**", "/repo", false},
		{"a sister is not below", "/repo/**", "/repository/x", false},
		{"a star and everything below", "/repos/*/issues/**", "/repos/o/issues/1/comments", true},
		{"all", "/**", "/a/b", true},
		{"an escaped space is a character", "/repo/*", "/repo/a%20b", true},
		{"escaped UTF-8 is characters", "/repo/*", "/repo/%c3%a9", true},
		{"a percent sign is a character", "/repo/*", "/repo/100%25", true},
		{"a dot inside a segment", "/repo/*", "/repo/.gitignore", true},
		{"sub-delimiters", "/repo/*", "/repo/a,b=c&d@e:f!", true},

		{"a dot segment", "/repo/**", "/repo/../admin", false},
		{"a dot segment at the end", "/repo/**", "/repo/x/..", false},
		{"a single dot", "/repo/**", "/repo/./x", false},
		{"three dots, which some take for two", "/repo/**", "/repo/.../x", false},
		{"dots and a space, which some trim", "/repo/**", "/repo/..%20/x", false},
		{"an escaped dot segment", "/repo/**", "/repo/%2e%2e/admin", false},
		{"half-escaped dots", "/repo/**", "/repo/.%2E/admin", false},
		{"an escaped dot anywhere", "/repo/**", "/repo/a%2ejs", false},
		{"an escaped slash", "/repo/**", "/repo/..%2f..%2fadmin", false},
		{"an escaped slash without dots", "/repo/*", "/repo/a%2Fb", false},
		{"an escaped slash that changes nothing", "/repo/**", "/repo/@a%2fb", true},
		{"an escaped slash below everything", "/**", "/@a%2fb", true},
		{"an escaped slash that leads below a tree", "/@a/**", "/@a%2fb", false},
		{"an escaped slash that leads to an empty segment", "/repo/**", "/repo/a%2f%2fb", false},
		{"a slash that is escaped twice", "/repo/**", "/repo/a%252fb", false},
		{"an escaped slash and an escaped dot", "/repo/**", "/repo/a%2f%2e%2e%2fb", false},
		{"an escaped backslash", "/repo/**", "/repo/..%5c..%5Cadmin", false},
		{"a backslash", "/repo/**", `/repo\..\admin`, false},
		{"a path parameter", "/repo/**", "/repo/..;/admin", false},
		{"an escaped semicolon", "/repo/**", "/repo/..%3b/admin", false},
		{"two slashes at the start", "/**", "//evil/x", false},
		{"two slashes in the middle", "/**", "/a//b", false},
		{"a NUL", "/**", "/a\x00b", false},
		{"an escaped NUL", "/**", "/a%00b", false},
		{"an escaped line feed", "/**", "/a%0d%0ab", false},
		{"a bad escape", "/**", "/a%zz", false},
		{"a cut escape", "/**", "/a%2", false},
		{"escaped twice", "/repo/**", "/repo/%252e%252e/admin", false},
		{"an escaped slash twice", "/repo/**", "/repo/..%252fadmin", false},
		{"escaped three times", "/repo/**", "/repo/%25252e%25252e/admin", false},
		{"escaped many times", "/repo/**", "/repo/%2525252525252e", false},
		{"an overlong dot", "/repo/**", "/repo/%c0%ae%c0%ae/admin", false},
		{"dots in full width", "/repo/**", "/repo/%ef%bc%8e%ef%bc%8e/admin", false},
		{"dots and a slash in full width", "/repo/**", "/repo/%ef%bc%8e.%ef%bc%8fadmin", false},
		{"an escape in full width", "/repo/**", "/repo/%ef%bc%85%ef%bc%92%ef%bd%85%ef%bc%852e/admin", false},
		{"a leader of two dots", "/repo/**", "/repo/%e2%80%a5/admin", false},
		{"a fraction slash", "/repo/**", "/repo/..%e2%81%84admin", false},
		{"a backslash in full width", "/repo/**", "/repo/..%ef%bc%bcadmin", false},
		{"a semicolon in full width", "/repo/**", "/repo/..%ef%bc%9bx/admin", false},
		{"dots of which one byte is left", "/repo/**", "/repo/%c4%ae%c4%ae%c4%afadmin", false},
		{"something without a width between dots", "/repo/**", "/repo/.%e2%80%8b./admin", false},
		{"a blank after dots", "/repo/**", "/repo/..%c2%a0/admin", false},
		{"a plus after dots", "/repo/**", "/repo/..+/admin", false},
		{"such a look-alike twice escaped", "/repo/**", "/repo/%25ef%25bc%258e./admin", false},
		{"full width in a word", "/repo/**", "/repo/%e4%b8%ad%ef%bc%8f%e6%96%87%ef%bc%8ejs", true},
		{"an ellipsis in a word", "/repo/**", "/repo/more%e2%80%a6", true},
		{"a language with such letters", "/repo/**", "/repo/k%c4%85%c4%af/%c5%ae", true},
		{"signs", "/repo/**", "/repo/c++/a+b/+", true},
		{"raw bytes outside ASCII", "/repo/**", "/repo/\u00e9", false},
		{"a query that was not cut off", "/repo/**", "/repo/x?y", false},
		{"a fragment", "/repo/**", "/repo/x#y", false},
		{"no slash at the start", "/**", "x", false},
		{"absolute form", "/**", "http://denied.test/x", false},
		{"the asterisk of OPTIONS", "/**", "*", false},
		{"nothing", "/**", "", false},
		{"too long", "/**", "/" + strings.Repeat("a", pathBytes), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := checkPathPattern(tt.pattern); err != nil {
				t.Fatal(err)
			}
			if err := pathAllowed([]string{"/other", tt.pattern}, tt.path); (err == nil) != tt.want {
				t.Errorf("pathAllowed(%q, %q) = %v", tt.pattern, tt.path, err)
			}
		})
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/repo/x", "/repo/../x", "/repo/%2e%2e/x", "/repo/..;/x", "//x", `/repo\x`, "/repo/%252e%252e", "/repo/%c0%ae", "*", "", "/repo/a%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if pathAllowed([]string{"/repo/**"}, path) != nil {
			return
		}
		// However often it is unescaped, it stays below.
		for range 5 {
			if !strings.HasPrefix(path, "/repo/") || strings.Contains(path, "/../") || strings.HasSuffix(path, "/..") ||
				strings.ContainsAny(path, "\\;\x00\r\n") || strings.Contains(path, "//") {
				t.Fatalf("%q passed", path)
			}
			next, err := url.PathUnescape(path)
			if err != nil || next == path {
				return
			}
			path = next
		}
	})
}
