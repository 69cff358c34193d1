package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFilesCanBeRead lets each shell parse its completions, and man(1) format the
// pages. Missing programs are skipped: tools/needs installs all.
func TestFilesCanBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, "1.2.3", "2026-11-27"); err != nil {
		t.Fatal(err)
	}
	for pattern, check := range map[string][]string{
		"bash-completion/completions/*":    {"bash", "-n"},
		"zsh/site-functions/_*":            {"zsh", "-n"},
		"fish/vendor_completions.d/*.fish": {"fish", "--no-execute"},
		"man/man1/holdfast*.1":             {"man", "--warnings", "--pager=cat", "--local-file"},
	} {
		if _, err := exec.LookPath(check[0]); err != nil {
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, "share", pattern))
		if err != nil || len(found) < 2 {
			t.Fatalf("%s matches %q, %v", pattern, found, err)
		}
		for _, path := range found {
			cmd := exec.Command(check[0], append(check[1:], path)...)
			var complaint strings.Builder
			cmd.Stderr, cmd.Env = &complaint, append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=100")
			if err := cmd.Run(); err != nil || complaint.Len() > 0 {
				t.Errorf("%s: %v\n%s", path, err, &complaint)
			}
		}
	}
}
