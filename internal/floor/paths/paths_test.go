package paths

import (
	"path"
	"strings"
	"testing"
)

func TestRelation(t *testing.T) {
	for _, tt := range []struct {
		dir, path     string
		rel           string // "" is not below
		below, within bool
	}{
		{"/a", "/a/b", "b", true, true},
		{"/a", "/a/b/c", "b/c", true, true},
		{"/a", "/a", "", false, true},
		{"/a", "/ab", "", false, false},
		{"/a", "/", "", false, false},
		{"/a/b", "/a", "", false, false},
		{"/a", "/b/a/c", "", false, false},
		{"/", "/", "", false, true},
		{"/", "/a", "a", true, true},
		{"/", "/a/b", "a/b", true, true},
		{"/", "a", "", false, false},
		// A slash at the end says nothing, and dots are resolved in the text.
		{"/a/", "/a/b/", "b", true, true},
		{"/a/", "/a", "", false, true},
		{"/a", "/a/", "", false, true},
		{"/a", "/a/.", "", false, true},
		{"/a", "/a//b", "b", true, true},
		{"/a", "/a/../b", "", false, false},
		{"/a", "/a/../a/b", "b", true, true},
		{"/a/../b", "/b/c", "c", true, true},
		{"/..", "/a", "a", true, true},
		// Names that look like dots are names.
		{"/a", "/a/..b", "..b", true, true},
		{"/a", "/a/...", "...", true, true},
		// Relative paths are compared among themselves.
		{"a", "a/b", "b", true, true},
		{"a", "ab", "", false, false},
		{"a", "/a/b", "", false, false},
		{"/a", "a/b", "", false, false},
		{".", "a", "a", true, true},
		{".", ".", "", false, true},
		{".", "..", "", false, false},
		{".", "../a", "", false, false},
		{".", "..a", "..a", true, true},
		{".", "/a", "", false, false},
		{"..", "../a", "a", true, true},
		{"..", "a", "", false, false},
		// A directory that is not known holds nothing.
		{"", "/a", "", false, false},
		{"", "a", "", false, false},
		{"", "", "", false, false},
		{"/", "", "", false, false},
		{".", "", "", false, false},
		// Bytes, not letters.
		{"/A", "/a/b", "", false, false},
		{"/a\xff", "/a\xff/b", "b", true, true},
	} {
		if got := Below(tt.dir, tt.path); got != tt.below {
			t.Errorf("Below(%q, %q) is %v", tt.dir, tt.path, got)
		}
		if got := Within(tt.dir, tt.path); got != tt.within {
			t.Errorf("Within(%q, %q) is %v", tt.dir, tt.path, got)
		}
		if rel, ok := Rel(tt.dir, tt.path); rel != tt.rel || ok != tt.below {
			t.Errorf("Rel(%q, %q) is %q, %v", tt.dir, tt.path, rel, ok)
		}
	}
}

// Whatever is below a directory is what one gets by joining, and never both ways.
func FuzzBelow(f *testing.F) {
	f.Add("/a", "b/../../c")
	f.Add("/", "..")
	f.Add(".", "a//b")
	f.Fuzz(func(t *testing.T, dir, name string) {
		whole := path.Join(dir, name)
		if rel, ok := Rel(dir, whole); ok && (path.Join(dir, rel) != whole || rel == "" || strings.HasPrefix(rel, "../")) {
			t.Errorf("%q is %q below %q", whole, rel, dir)
		}
		if Below(dir, whole) && Within(whole, dir) {
			t.Errorf("%q and %q are below each other", dir, whole)
		}
	})
}

func TestNoAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Within("/home/you/project", "/home/you/project/src/main.go") }); n > 0 {
		t.Errorf("%v allocations for clean paths", n)
	}
}
