package policy

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// pathlessOfPreset are the keys of a preset that name no path of the host.
var pathlessOfPreset = []string{"version", "extends", "title", "install", "sandbox", "variables", "trust", "endpoints", "logins", "network", "environment"}

// byPresetKey has, for every key of a preset that names a path, the text of a preset
// with it. HERE is replaced by a tree with the links dir and file.
var byPresetKey = map[string][]string{
	"moved":       {"moved: {~/.agent: $AGENT_HOME}\nkeep: [~/.agent/dir/history]", "moved: {~/.agent: $AGENT_HOME}\nread: [~/.agent/file]", "moved: {~/.agent: $AGENT_HOME}\ncopy: [~/.agent/file]"},
	"keep":        {"keep: [HERE/dir/history]", "keep: [HERE/dir]", "keep: [{path: ~/.agent/history, from: HERE/dir/history}]"},
	"read":        {"read: [HERE/dir]", "read: [HERE/file]", "read: [HERE/dir/inner]"},
	"copy":        {"copy: [HERE/dir]", "copy: [HERE/file]", "copy: [{path: HERE/dir/inner}]"},
	"files":       {"files: [{path: HERE/file, merge: true, content: '{}'}]", "files: [{path: HERE/dir/inner, merge: true, content: '{}'}]"},
	"filesystem":  {"filesystem: {read: [HERE/dir]}", "filesystem: {write: [HERE/dir]}", "filesystem: {copy: [HERE/dir]}"},
	"settings":    {"settings: [{file: HERE/file, key: env}]\ncredentials: [{name: a, source: {env: A_KEY}, hosts: [a.example.org], env: A}]"},
	"credentials": {"credentials: [{name: a, source: {file: HERE/file, key: token}, hosts: [a.example.org], env: A}]"},
}

// TestEveryPathOfAPresetIsJudgedByItsLinks is TestEveryPathIsJudgedByItsLinks for
// what a preset names. What an agent could do without is left out, the rest is
// refused: either way nothing of where the link leads to is in the plan.
func TestEveryPathOfAPresetIsJudgedByItsLinks(t *testing.T) {
	for _, f := range (&presetDecoder{preset: &Preset{}}).fields(map[string]bool{}, new(string)) {
		if byPresetKey[f.name] == nil && !slices.Contains(pathlessOfPreset, f.name) {
			t.Errorf("%s of a preset may name a path and has no case", f.name)
		}
		for i, text := range byPresetKey[f.name] {
			for _, tree := range []string{"before", "rw", "honest"} {
				t.Run(fmt.Sprintf("%s %d in %s", f.name, i, tree), func(t *testing.T) {
					w := ledWorld(t)
					w.host.Home = w.root // the trees with links are in it
					w.write("outside/file", `{"token": "secret", "env": {"A_KEY": "secret"}}`, 0o600)
					w.write("outside/dir/inner", "x", 0o600)
					w.mkdir("honest") // links of the user's own
					w.link("/outside/dir", "honest/dir")
					w.link("/outside/file", "honest/file")
					w.host.Env = append(w.host.Env, "AGENT_HOME="+w.at(tree))
					w.write("home/u/.config/holdfast/presets/x.yaml", "version: 1\n"+strings.ReplaceAll(text, "HERE", "~/"+tree)+"\n", 0o600)
					o := w.options("filesystem.write", w.at("rw"))
					o.Preset = "x"
					p, err := w.compile(o)
					changeableLink := err == nil && p.leadsTo(w.at("outside"))
					refused := err != nil || slices.ContainsFunc(p.Notes, func(n string) bool { return strings.Contains(n, "the link ") })
					switch {
					case tree != "honest" && (changeableLink || !refused):
						t.Errorf("taken through the link: %+v, notes %q, %v", p.Paths, p.Notes, err)
					case tree == "honest" && !changeableLink && !strings.Contains(text, "keep: [HERE/dir]"): // a link is never kept
						t.Errorf("a link of the user's own is not followed: notes %q, %v", p.Notes, err)
					}
				})
			}
		}
	}
}

// leadsTo reports whether p takes something of a tree of the host.
func (p Plan) leadsTo(tree string) bool {
	return slices.ContainsFunc(p.Paths, func(r PathRule) bool { return within(r.Path, tree) }) ||
		p.Agent != nil && slices.ContainsFunc(p.Agent.Copies, func(c AgentCopy) bool { return within(c.Source, tree) }) ||
		p.Agent != nil && slices.ContainsFunc(p.Agent.Files, func(f AgentFile) bool { return within(f.Source, tree) }) ||
		slices.ContainsFunc(p.Credentials, func(c Credential) bool { real, err := os.Stat(c.Source.Value); return err == nil && real != nil })
}

// TestTheTokenOfVaultIsJudgedByItsLinks: where neither the policy nor the
// environment says it, the token is a file of the home.
func TestTheTokenOfVaultIsJudgedByItsLinks(t *testing.T) {
	for _, tree := range []string{"before", "rw"} {
		w := ledWorld(t)
		w.link("/"+tree+"/file", "home/u/.vault-token")
		w.write(userFile, "version: 1\nnetwork: {allow: [a.example.org]}\ncredentials: [{name: a, source: {vault: {path: secret/data/a, field: f, address: https://v.example.org}}, hosts: [a.example.org], env: A}]\n", 0o600)
		o := w.options("filesystem.write", w.at("rw"))
		judgedByLink(t, w, o)
		o.Host.Env = append(slices.Clone(o.Host.Env), "VAULT_TOKEN=x")
		if _, err := w.compile(o); err != nil {
			t.Errorf("%s: the file is not read where the variable has the token: %v", tree, err)
		}
	}
}
