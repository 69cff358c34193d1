//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// maxSettings bounds a file of settings, in bytes.
const maxSettings = 1 << 30

// HostSettings are the user's own configuration files of git and of agents, and the
// machine's, which may name hooks and programs in the workspace. What cannot be read
// there cannot be obeyed either.
func HostSettings(home string) []Option {
	var out []Option
	git := append([]string{"/etc/gitconfig"}, places(home, ".config/git/config")...)
	git = append(git, filepath.Join(home, ".gitconfig"))
	if global := os.Getenv("GIT_CONFIG_GLOBAL"); global != "" {
		git = append(git, global)
	}
	for _, path := range git {
		if data, _, ok := readOwn(path, maxSettings); ok {
			out = append(out, GitConfig(path, home, data))
		}
	}
	files := []string{"/etc/claude-code/managed-settings.json", "/etc/claude-code/managed-mcp.json", "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/gemini-cli/settings.json"}
	for _, name := range homeSettings() {
		files = append(files, places(home, name)...)
	}
	for _, path := range files {
		if data, _, ok := readOwn(path, maxSettings); ok {
			out = append(out, agentConfig(path, home, data))
		}
	}
	return out
}

// elsewhere are the variables by which programs look for settings in another
// directory than that of the home.
var elsewhere = map[string]string{".config/": "XDG_CONFIG_HOME", ".claude/": "CLAUDE_CONFIG_DIR", ".codex/": "CODEX_HOME"}

// places are where a file of the home is looked for.
func places(home, name string) []string {
	out := []string{filepath.Join(home, name)}
	for dir, variable := range elsewhere {
		rest, ok := strings.CutPrefix(name, dir)
		if at := os.Getenv(variable); ok && filepath.IsAbs(at) {
			out = append(out, filepath.Join(at, rest))
		}
	}
	if at := os.Getenv("CLAUDE_CONFIG_DIR"); name == ".claude.json" && filepath.IsAbs(at) {
		out = append(out, filepath.Join(at, name))
	}
	return out
}
