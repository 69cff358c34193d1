package policy

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSettingsOfTheMachine: they switch a credential on as the user's own do, before which
// they count; those of a project do not, and the run says so.
func TestSettingsOfTheMachine(t *testing.T) {
	const on, off = `{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}`, `{"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}`
	for _, row := range []struct{ name, user, machine, project, local, want string }{
		{"none", "", "", "", "", "anthropic"},
		{"the user's", on, "", "", "", "bedrock"},
		{"the machine's", "", on, "", "", "bedrock"},
		{"the machine's before the user's", on, off, "", "", "anthropic"},
		{"the project's", "", "", on, "", "anthropic said"},
		{"the project's, which are local", "", "", "", on, "anthropic said"},
		{"the project's and the user's", on, "", on, on, "bedrock"},
		{"the project's, with another value", "", "", off, "[]", "anthropic"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			machine := w.at("etc/claude-code/managed-settings.json")
			for path, text := range map[string]string{"home/u/.claude/settings.json": row.user, "etc/claude-code/managed-settings.json": row.machine,
				"home/u/ws/.claude/settings.json": row.project, "home/u/ws/.claude/settings.local.json": row.local} {
				if text != "" {
					w.write(path, text, 0o644)
				}
			}
			w.host.Env = []string{"ANTHROPIC_API_KEY=x", "AWS_BEARER_TOKEN_BEDROCK=x"}
			p, err := PresetNamed(Options{Host: w.host}, "claude")
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range p.settings {
				if s.path == "/etc/claude-code/managed-settings.json" {
					p.settings[i].path = machine
				}
			}
			a := &agentPlan{preset: p, host: w.host, dir: w.at("home/u/ws"), claimed: map[string]bool{}}
			a.readSettings()
			if err := a.brokered(); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, e := range a.entries {
				if e.Credential != nil && got == "" { // the first
					got += e.Credential.Name
				}
			}
			if strings.Contains(strings.Join(a.missing, "\n"), "sets CLAUDE_CODE_USE_BEDROCK, which chooses no credential") {
				got += " said"
			}
			if got != row.want {
				t.Errorf("got %s, want %s; said %q", got, row.want, a.missing)
			}
		})
	}
}

// TestHelperOfSettings: a command that prints a key is named where it is what is missed.
func TestHelperOfSettings(t *testing.T) {
	w := newWorld(t)
	path := w.write("home/u/.claude/settings.json", `{"apiKeyHelper": "key.sh"}`, 0o600)
	o := Options{Host: w.host, Preset: "claude"}
	want := "Claude Code has no credential: apiKeyHelper in " + path + " is not executed, but what it prints can be lent; type 'claude' once outside"
	if got := w.plan(o).Agent.Missing; len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("said %q", got)
	}
	o.Host.Env = []string{"ANTHROPIC_API_KEY=x"}
	if got := w.plan(o).Agent.Missing; len(got) > 0 {
		t.Errorf("said %q", got)
	}
}

// TestSettingsDropTheSame: no secret that is left out of the user's settings comes inside
// with those of the machine.
func TestSettingsDropTheSame(t *testing.T) {
	p, err := PresetNamed(Options{Host: newWorld(t).host}, "claude")
	if err != nil {
		t.Fatal(err)
	}
	var user, machine [][]string
	for _, c := range p.copies {
		if filepath.Base(c.Path) == "settings.json" {
			user = c.Drop
		}
	}
	for _, f := range p.files {
		if filepath.Base(f.Path) == "managed-settings.json" {
			machine = f.Drop
		}
	}
	if len(user) == 0 || !reflect.DeepEqual(user, machine) {
		t.Errorf("left out are %q of the user's, %q of the machine's", user, machine)
	}
}
