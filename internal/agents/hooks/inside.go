package hooks

import (
	"fmt"
	"path/filepath"
	"strings"
)

// File is a settings file that a run puts into the view.
type File struct {
	Path    string // absolute, inside
	Content []byte
}

// Additions are what makes an agent inside a run report.
type Additions struct {
	Files []File   // in view, read-only
	Args  []string // to insert after the agent's name
}

// Inside returns what a run adds so that an agent reports its tool calls by
// executing hook, and whether program is an agent that supports this. existing
// reads a file of the host that one of the Files would hide; an error means that
// there is none.
//
// If an agent has machine-wide settings they are used: neither the project nor
// the agent itself can override them.
func Inside(program, hook string, existing func(path string) ([]byte, error)) (agent string, add Additions, ok bool) {
	name := filepath.Base(program)
	a, known := agents()[name]
	if !known {
		return "", Additions{}, false
	}
	switch name {
	case "claude":
		add.Files, ok = a.mergedSettings("/etc/claude-code/managed-settings.json", hook, existing)
	case "qwen":
		add.Files, ok = a.mergedSettings("/etc/qwen-code/settings.json", hook, existing)
	case "codex":
		add.Files, ok = []File{{"/etc/codex/requirements.toml", codexRequirements(hook)}}, true
		if _, err := existing(add.Files[0].Path); err == nil {
			ok = false // the machine's requirements are not ours to edit: they stay in force
		}
	default:
		// These agents obey machine-wide settings only if root owns them, or have
		// none: hooks that the user installed are in the copy of the user's
		// settings.
		ok = true
	}
	return name, add, ok
}

// mergedSettings is a settings file with our hooks added.
func (a agent) mergedSettings(path, hook string, existing func(path string) ([]byte, error)) ([]File, bool) {
	have, err := existing(path)
	if err != nil {
		have = nil
	}
	content, err := a.editSettings(have, hook, true)
	return []File{{path, content}}, err == nil
}

// codexRequirements are machine-wide settings; Codex executes their hooks without
// asking its user.
func codexRequirements(hook string) []byte {
	var b strings.Builder
	b.WriteString("[hooks]\nmanaged_dir = " + jsonText(filepath.Dir(hook)) + "\n")
	for _, m := range agents()["codex"].events {
		fmt.Fprintf(&b, "\n[[hooks.%s]]\nmatcher = \"*\"\n\n[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
			m.name, m.name, jsonText(command(hook, "codex", m.kind)), m.kind.seconds())
	}
	return []byte(b.String())
}
