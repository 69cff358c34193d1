//go:build linux

package task

import (
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/workspace"
)

// HostSettings are the user's own configuration files of git and of agents, and the
// machine's, which may name hooks and programs in the workspace. What cannot be read
// there cannot be obeyed either.
func HostSettings(home string) []workspace.Option {
	var out []workspace.Option
	for _, path := range []string{"/etc/gitconfig", filepath.Join(home, ".config/git/config"), filepath.Join(home, ".gitconfig")} {
		if data, err := os.ReadFile(path); err == nil {
			out = append(out, workspace.GitConfig(path, home, data))
		}
	}
	files := []string{"/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-mcp.json", "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/gemini-cli/settings.json"}
	for _, name := range workspace.HomeSettings() {
		files = append(files, filepath.Join(home, name))
	}
	for _, path := range files {
		if data, err := os.ReadFile(path); err == nil {
			out = append(out, workspace.AgentSettings(path, home, data))
		}
	}
	return out
}
