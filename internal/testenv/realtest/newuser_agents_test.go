package realtest

import (
	"strings"

	"holdfast.dev/holdfast/internal/prove/model"
)

// dialog is a screen of an agent program that waits for the user.
type dialog struct {
	shows string // a regular expression for what is visible
	keys  string // names of keys, for tmux
	kind  string
}

// newcomer is an agent program as somebody uses it who is logged in and has not
// used Holdfast before.
type newcomer struct {
	worker
	ready   string // a regular expression: it waits for a task
	dialogs []dialog
	leave   []string // what leaves it: texts, and names of keys that begin with "key "
}

// worked returns the worker of that name, with the home of somebody who has used
// the program in a terminal.
func worked(name string, home map[string]string) worker {
	for _, w := range workers {
		if w.name == name {
			w.home = home
			return w
		}
	}
	return worker{name: name, home: home}
}

// lacking is a worker without some tools, or with some that the scripted model
// does not know how to call: it uses the shell then.
func (w worker) lacking(ops ...model.Op) worker {
	w.lacks = ops
	return w
}

var newcomers = []newcomer{
	{
		worker: worked("claude", map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"lastOnboardingVersion":"2.1.330","theme":"dark","customApiKeyResponses":{"approved":["` + modelKey[len(modelKey)-20:] + `"],"rejected":[]}}`}),
		ready:  `(?m)^[│ ]*[>❯]`,
		dialogs: []dialog{
			{`Is this a project you created or one you trust`, "Down Enter", onboarding},
			{`Esc to cancel · Tab to amend`, "Enter", permission},
		},
		leave: []string{"/exit", "key Enter"},
	},
	{
		worker:  worked("codex", nil).lacking(model.Read),
		ready:   `(?m)^[│ ]*[›>]`,
		dialogs: []dialog{{`Trust this folder\?`, "Enter", onboarding}},
		leave:   []string{"/quit", "key Enter"},
	},
	{
		worker:  worked("gemini", map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`}),
		dialogs: []dialog{{`● 1\. Trust folder`, "Enter", onboarding}, {`● 1\. Allow once`, "Enter", permission}},
		ready:   `Type your message`,
		leave:   []string{"/quit", "key Enter"},
	},
	{
		worker:  worked("qwen", map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}}}`}),
		dialogs: []dialog{{`› 1\. Yes, allow once`, "Enter", permission}},
		ready:   `Type your message`,
		leave:   []string{"/quit", "key Enter"},
	},
	{
		worker: worked("opencode", map[string]string{".config/opencode/opencode.json": `{"model":"openai/gpt-4.1"}`}),
		ready:  `Ask anything`,
		leave:  []string{"key C-c"},
	},
	{
		worker:  worked("copilot", nil),
		dialogs: []dialog{{`Confirm folder trust`, "Enter", onboarding}, {`enter to select · esc to cancel`, "Enter", permission}},
		ready:   `(?m)^[│ ]*[>❯]`,
		leave:   []string{"/exit", "key Enter"},
	},
	{
		worker: worked("cline", map[string]string{".cline/data/settings/providers.json": `{"version":1,"lastUsedProvider":"anthropic","modes":{},"providers":{"anthropic":{"settings":{"provider":"anthropic","model":"claude-sonnet-4-5","apiKey":"` + modelKey + `"},"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual"}}}`}).lacking(model.Read),
		ready:  `(?m)^[│ ]*[>❯]`,
		leave:  []string{"key C-c"},
	},
	{
		worker: worker{
			name: "pi", host: "api.anthropic.com", key: "ANTHROPIC_API_KEY", dir: "pi@*/node_modules/.bin",
			lacks: []model.Op{model.Edit},
		},
		ready: `(?m)^─+$`,
		leave: []string{"/quit", "key Enter"},
	},
}

// keysOf takes a step of leaving a program apart.
func keysOf(step string) (key, text string) {
	if k, ok := strings.CutPrefix(step, "key "); ok {
		return k, ""
	}
	return "", step
}
