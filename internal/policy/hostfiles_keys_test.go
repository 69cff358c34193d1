package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// pathless are the kinds of keys that take no path of the host.
var pathless = map[*kind]bool{
	nil: true, &versions: true, &words: true, &toolRules: true, &consents: true, &patience: true, &patterns: true, &names: true, &variables: true,
	&hosts: true, &ports: true, &services: true, &losses: true, &sizes: true, &counts: true, &cores: true, &spans: true,
}

// byKey has, for every key that takes a path, the text of a policy with it. DIR and
// FILE are replaced by a directory and a file.
var byKey = map[string][]string{
	"extends":             {"extends: FILE"},
	"workspace.outputs":   {"workspace: {outputs: [DIR]}"},
	"workspace.readonly":  {"workspace: {readonly: [DIR]}"},
	"workspace.worktrees": {"workspace: {worktrees: [DIR]}"},
	"filesystem.read":     {"filesystem: {read: [DIR]}", "filesystem: {read: [FILE]}"},
	"filesystem.copy":     {"filesystem: {copy: [DIR]}"},
	"filesystem.write":    {"filesystem: {write: [DIR]}", "filesystem: {write: [FILE]}"},
	"record.anchor":       {"record: {anchor: [\"file:FILE\"]}"},
	"programs.allow":      {"programs: {allow: [FILE], else: refuse}", "programs: {allow: [DIR/*], else: report}"},
	"alerts.rules":        {"alerts: {rules: [FILE]}", "alerts: {rules: [DIR]}"},
	"alerts.sinks":        {"alerts: {sinks: [{file: FILE}]}", "alerts: {sinks: [{webhook: https://a.example.org, secret: FILE}]}", "alerts: {sinks: [{webhook: https://a.example.org, headers: FILE}]}", "alerts: {sinks: [{webhook: https://a.example.org, authority: FILE}]}"},
	"approvals.notify":    {"approvals: {notify: [{webhook: https://a.example.org, secret: FILE}]}", "approvals: {notify: [{webhook: https://a.example.org, secret: ROOT/outside/file, headers: FILE}]}"},
	"credentials": {
		"network: {allow: [a.example.org]}\ncredentials: [{name: a, source: {file: FILE}, hosts: [a.example.org], env: A}]",
		"network: {allow: [a.example.org]}\ncredentials: [{name: a, source: {command: [FILE]}, hosts: [a.example.org], env: A}]",
		"network: {allow: [a.example.org]}\ncredentials: [{name: a, source: {command: [/bin/sh, FILE]}, hosts: [a.example.org], env: A}]",
		"network: {allow: [a.example.org]}\ncredentials: [{name: a, source: {vault: {path: secret/data/a, field: f, address: https://v.example.org, token-file: FILE}}, hosts: [a.example.org], env: A}]",
		"network: {allow: [a.example.org]}\ncredentials: [{name: a, source: {github-app: {app-id: 1, installation-id: 2, key-file: FILE, repositories: [r], permissions: {contents: read}}}, hosts: [a.example.org], env: A}]",
	},
}

// byOption has the options of a run that take a path; the others say why not.
var byOption = map[string]string{"Workspace": "DIR", "Policy": "FILE", "Profile": "", "Preset": ""}

// TestEveryPathIsJudgedByItsLinks names, by every key and every option that takes a
// path, one that goes through a link which a run made, or makes. A new key or
// option without a case here fails.
func TestEveryPathIsJudgedByItsLinks(t *testing.T) {
	for _, k := range keys {
		if !pathless[k.kind] && byKey[k.name] == nil {
			t.Errorf("%s takes a path and has no case", k.name)
		}
		for i, text := range byKey[k.name] {
			for _, tree := range []string{"before", "rw"} {
				t.Run(fmt.Sprintf("%s %d in %s", k.name, i, tree), func(t *testing.T) {
					w := ledWorld(t)
					text := strings.NewReplacer("DIR", w.at(tree+"/dir"), "FILE", w.at(tree+"/file"), "ROOT", w.root).Replace(text)
					w.write(userFile, "version: 1\n"+text+"\n", 0o600)
					judgedByLink(t, w, w.options("filesystem.write", w.at("rw")))
				})
			}
		}
	}
	options := reflect.TypeFor[Options]()
	for i := range options.NumField() {
		name := options.Field(i).Name
		if options.Field(i).Type.Kind() != reflect.String {
			continue
		}
		what, known := byOption[name]
		if !known {
			t.Errorf("the option %s has no case", name)
		}
		for _, tree := range []string{"before", "rw"} {
			if what == "" || name == "Workspace" && tree == "rw" { // the option comes before what is writable
				continue
			}
			t.Run(name+" in "+tree, func(t *testing.T) {
				w := ledWorld(t)
				o := w.options("filesystem.write", w.at("rw"))
				path := w.at(tree + "/" + strings.ToLower(what))
				reflect.ValueOf(&o).Elem().FieldByName(name).SetString(path)
				judgedByLink(t, w, o)
			})
		}
	}
}

// ledWorld has a tree that an earlier run could write to, one that this run can,
// and in both links to a file and a directory outside.
func ledWorld(t *testing.T) *world {
	w := newWorld(t)
	w.mkdir("outside/dir")
	w.write("outside/file", "version: 1\n", 0o700)
	for _, tree := range []string{"before", "rw"} {
		w.mkdir(tree)
		w.link("/outside/dir", tree+"/dir")
		w.link("/outside/file", tree+"/file")
	}
	if err := RecordExposed(w.host.State, []string{w.at("before")}); err != nil {
		t.Fatal(err)
	}
	return w
}

func judgedByLink(t *testing.T, w *world, o Options) {
	t.Helper()
	_, err := w.compile(o)
	if err == nil || !strings.Contains(err.Error(), "the link ") && !strings.Contains(err.Error(), "could write to") && !strings.Contains(err.Error(), "what runs inside could change") &&
		!strings.Contains(err.Error(), "the command could") {
		t.Errorf("taken through the link: %v", err)
	}
}

// TestPoliciesInAWritableTree are refused whichever path makes them writable.
func TestPoliciesInAWritableTree(t *testing.T) {
	w := newWorld(t)
	w.write("rw/p.yaml", "version: 1\n", 0o600)
	w.write("data/q.yaml", "version: 1\nextends: "+w.at("rw/p.yaml")+"\n", 0o600)
	for _, key := range []string{"filesystem.write", "workspace.outputs", "workspace.worktrees"} {
		for _, policy := range []string{"rw/p.yaml", "data/q.yaml"} {
			o := w.options(key, w.at("rw"))
			o.Policy = w.at(policy)
			if _, err := w.compile(o); err == nil || !strings.Contains(err.Error(), "what runs inside could change the policy") {
				t.Errorf("--policy %s with %s: %v", policy, key, err)
			}
		}
	}
	o := w.options()
	o.Policy = w.at("data/q.yaml")
	if _, err := w.compile(o); err != nil {
		t.Errorf("where nothing can write: %v", err)
	}
}
