//go:build linux

package workspace

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSettingsAreLookedForElsewhere(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "/x")
	t.Setenv("CLAUDE_CONFIG_DIR", "/c")
	t.Setenv("CODEX_HOME", "not/absolute")
	for name, want := range map[string][]string{
		".config/git/config":    {"/h/.config/git/config", "/x/git/config"},
		".claude/settings.json": {"/h/.claude/settings.json", "/c/settings.json"},
		".claude.json":          {"/h/.claude.json", "/c/.claude.json"},
		".codex/config.toml":    {"/h/.codex/config.toml"},
		".gemini/settings.json": {"/h/.gemini/settings.json"},
	} {
		if got := places("/h", name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A pipe is not waited for.
func TestSettingsThatAreNoFile(t *testing.T) {
	home := userWorld(t, map[string]string{".claude/settings.json": "{}"})
	if err := errors.Join(unix.Mkfifo(home+"/.gitconfig", 0o600), unix.Mkfifo(home+"/.claude.json", 0o600)); err != nil {
		t.Fatal(err)
	}
	HostSettings(home)
	ReadUserGit(home, nil)
}
