package policy

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// toolchains is toolchains.yaml.
type toolchains struct {
	Toolchains      []toolchain `yaml:"toolchains"`
	CredentialNames []string    `yaml:"credential_names"`
	Secret          []string    `yaml:"secret"`
	Executed        []string    `yaml:"executed"`
}

// toolchain is where one tool keeps what is needed to run it.
type toolchain struct {
	Name   string            `yaml:"name"`
	Reason string            `yaml:"reason"`
	Root   []string          `yaml:"root"`
	Show   map[string]string `yaml:"show"`
	Set    map[string]string `yaml:"set"`
	Always map[string]string `yaml:"always"`
	Never  []string          `yaml:"never"`
}

var embeddedToolchains = sync.OnceValue(toolchainTable)

// discover adds what the user's own tools need: what toolchains.yaml knows,
// then what PATH leads to. Nothing of it is an error: what is missing, or
// would show too much, is passed over and noted.
func (v *view) discover() {
	for _, t := range embeddedToolchains().Toolchains {
		v.toolchain(t)
	}
	v.path()
}

func (v *view) toolchain(t toolchain) {
	root, moved := t.locate(v.host)
	if root == "" {
		return
	}
	shown := false
	for _, sub := range slices.Sorted(maps.Keys(t.Show)) {
		access := map[string]Access{"read": Read, "copy": Copy}[t.Show[sub]]
		shown = v.show(filepath.Join(root, sub), access, "toolchain "+t.Name) || shown
	}
	if !shown {
		return
	}
	for _, pattern := range t.Never {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(root), pattern))
		for _, path := range found {
			v.hide(path, "toolchain "+t.Name)
		}
	}
	v.setVariables(t, t.Always, root)
	if moved {
		v.setVariables(t, t.Set, root)
	}
}

func (v *view) setVariables(t toolchain, values map[string]string, root string) {
	for name, value := range values {
		v.env = append(v.env, Env{name, strings.ReplaceAll(value, "$ROOT", root), Origin{File: "toolchain " + t.Name}})
	}
}

// locate returns the root of t on this host, "" for none, and whether a
// variable of the caller moved it.
func (t toolchain) locate(h Host) (root string, moved bool) {
	for _, candidate := range t.Root {
		name, rest, _ := strings.Cut(candidate, "/")
		variable, fromEnv := strings.CutPrefix(name, "$")
		path := expand(candidate, h.Home, h.Home)
		if fromEnv {
			value, _, _ := strings.Cut(h.lookup(variable), ":") // GOPATH is a list
			if !filepath.IsAbs(value) {
				continue
			}
			path = filepath.Join(value, rest)
		}
		if _, err := os.Stat(path); err == nil {
			return path, fromEnv && filepath.Join(h.Home, "/") != path
		}
		if fromEnv {
			return "", false // moved to where nothing is: the default place is not used either
		}
	}
	return "", false
}

// show adds a discovered path unless it is missing or would show or risk more
// than a toolchain.
func (v *view) show(path string, access Access, why string) bool {
	at, err := v.locate(path)
	if err != nil {
		return false
	}
	if within(at.path, v.workspace) {
		return false // in view already, and writable
	}
	if bad := v.host.findUntrustedLink(at, v.writable); bad != nil {
		v.notes = append(v.notes, why+": "+path+" is left out: "+bad.String())
		return false
	}
	if bad := v.unfit(at, access); bad != "" {
		v.notes = append(v.notes, why+": "+at.path+" is left out: "+bad)
		return false
	}
	rule := PathRule{Path: at.path, Access: access, Origin: Origin{File: why}, File: at.id}
	if clean := filepath.Clean(path); clean != at.path {
		rule.At = clean
	}
	v.rules = append(v.rules, ranked{rule, 0})
	return true
}

func (v *view) unfit(at located, access Access) string {
	if err := v.host.showable(at, access); err != nil {
		return err.Error()
	}
	if within(v.workspace, at.path) && access == Copy {
		return "it contains the workspace"
	}
	if part := credentialPart(at.path); part != "" {
		return part + " holds credentials"
	}
	const otherWrite = 0o002
	if at.mode&otherWrite != 0 {
		return "every user can write to it"
	}
	if at.owner != 0 && at.owner != v.host.UID {
		return "it belongs to another user"
	}
	return ""
}

// hide takes a file below a shown root out of view.
func (v *view) hide(path, why string) {
	at, err := v.locate(path)
	if err != nil {
		return
	}
	v.rules = append(v.rules, ranked{PathRule{Path: at.path, Access: Hidden, Origin: Origin{File: why}}, 0})
}
