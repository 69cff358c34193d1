//go:build linux

package workspace

import "testing"

// TestOrdinaryWorkIsNotHeldBack has names that agents make in ordinary projects: an
// entry of the deny tier that takes them, or that takes source code because its
// pattern is too wide, breaks honest work.
func TestOrdinaryWorkIsNotHeldBack(t *testing.T) {
	for _, name := range []string{
		"docs/conf.py", "a.targets", "Directory.Build.props", "default.nix", "package.json", "Cargo.toml", "go.mod", "pyproject.toml", "Makefile",
		"Dockerfile", "build.gradle", "mix.exs", "conftest.py", "launchSettings.json", "tsconfig.json", ".github/CODEOWNERS", "cmd/cloudbuild.go",
		"lefthook.go", "docs/jupyter_server_config.rst", ".bloop/root.json", ".gnupg/pubring.kbx", ".crush/crush.db", "renv/activate.R", ".projectile",
		"claudeignore", "src/direnv.go", "docs/envrc.md",
	} {
		if r := DefaultRules().Find(name); r != nil && r.Tier == Deny {
			t.Errorf("%s is held back by %q: %s", name, r.Pattern, r.Reason)
		}
	}
}

// TestTreesHaveNoOtherNames keeps directories that people edit from being listed as
// one tree: names of the deny tier count below them.
func TestTreesHaveNoOtherNames(t *testing.T) {
	rules := DefaultRules()
	for _, name := range []string{"renv/.envrc", ".ddev/.vscode/tasks.json", "config/.git/hooks/pre-commit", ".storybook/.envrc", "docs/.mcp.json"} {
		if !deniedBelow(rules.Look(), name) {
			t.Errorf("%s is not protected", name)
		}
	}
}

// deniedBelow reports whether name or a directory above it is of the deny tier.
func deniedBelow(look Look, path string) bool {
	for at := 0; ; {
		end := at
		for end < len(path) && path[end] != '/' {
			end++
		}
		var rule *Rule
		if rule, look = look.Match(path[:end], path[at:end], end < len(path), false); rule != nil && rule.Tier == Deny {
			return true
		}
		if end == len(path) {
			return false
		}
		at = end + 1
	}
}
