package hooks

import (
	"fmt"
	"path/filepath"
	"strings"
)

// File is a settings file that a run puts into view.
type File struct {
	Path    string // absolute, inside
	Content []byte
}

// Additions are what makes an agent report, for one run inside.
type Additions struct {
	Files []File   // in view, read-only
	Args  []string // to put behind the agent's name
}

// Inside says what a run adds so that the agent that program is reports its tool
// calls by executing hook, and whether it is an agent that can. Existing reads a
// file of the host that one of the Files would hide; an error means there is none.
//
// Where an agent has settings for all users of a machine they are used: neither
// the project nor the agent itself can switch those off.
func Inside(program, hook string, existing func(path string) ([]byte, error)) (agent string, add Additions, ok bool) {
	name := filepath.Base(program)
	a, known := agents()[name]
	if !known {
		return "", Additions{}, false
	}
	switch name {
	case "claude":
		add.Files, ok = a.merged("/etc/claude-code/managed-settings.json", hook, existing)
	case "qwen":
		add.Files, ok = a.merged("/etc/qwen-code/settings.json", hook, existing)
	case "codex":
		add.Files, ok = []File{{"/etc/codex/requirements.toml", codexRequirements(hook)}}, true
		if _, err := existing(add.Files[0].Path); err == nil {
			ok = false // requirements of the machine are not ours to edit: they stay in force
		}
	default:
		// These obey settings of a machine only where root owns them, or have none:
		// what the user installed comes in with the copy of the user's settings.
		ok = true
	}
	return name, add, ok
}

// merged is a file of settings with ours in it.
func (a agent) merged(path, hook string, existing func(path string) ([]byte, error)) ([]File, bool) {
	have, err := existing(path)
	if err != nil {
		have = nil
	}
	content, err := a.edited(have, hook, true)
	return []File{{path, content}}, err == nil
}

// codexRequirements are settings that hold for every user of a machine, and whose
// hooks Codex executes without having asked its user.
func codexRequirements(hook string) []byte {
	var b strings.Builder
	b.WriteString("[hooks]\nmanaged_dir = " + jsonText(filepath.Dir(hook)) + "\n")
	for _, m := range agents()["codex"].events {
		fmt.Fprintf(&b, "\n[[hooks.%s]]\nmatcher = \"*\"\n\n[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
			m.name, m.name, jsonText(command(hook, "codex", m.kind)), m.kind.seconds())
	}
	return []byte(b.String())
}
