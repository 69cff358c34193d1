package summary

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/story"
	"holdfast.dev/holdfast/internal/run"
)

// fewFiles is how many refused files the end of a run names.
const fewFiles = 5

// files says after a run which files programs inside were refused, and why, a line each.
func (a *app) files(plan policy.Plan, r run.Result) {
	if len(r.Files) == 0 {
		return
	}
	rules, err := workspace.RulesOf(plan)
	if err != nil {
		rules = workspace.DefaultRules()
	}
	for _, one := range r.Files[:min(fewFiles, len(r.Files))] {
		a.Note(command.Yellow, "refused", "%s", refusedFile(plan, rules, one))
	}
	if more := uint64(len(r.Files)-min(fewFiles, len(r.Files))) + r.FilesMore; more > 0 {
		a.Note(command.Yellow, "refused", "and %d more: holdfast log show %s", more, r.Session)
	}
	a.Note(command.Cyan, "hint", "what would allow it: holdfast policy explain %s", text.Word(at(rules, plan, r.Files[0])))
}

// at is the path that a refusal is about: of a rename, the name that has a rule.
func at(rules workspace.Rules, plan policy.Plan, f story.FileRefusal) string {
	if f.To != "" && ruleOf(rules, plan, f.Path) == nil && ruleOf(rules, plan, f.To) != nil {
		return f.To
	}
	return f.Path
}

func ruleOf(rules workspace.Rules, plan policy.Plan, path string) *workspace.Rule {
	rel, inside := strings.CutPrefix(path, plan.Workspace+"/")
	if !inside {
		return nil
	}
	return rules.Find(rel)
}

// refusedFile is a line about one file.
func refusedFile(plan policy.Plan, rules workspace.Rules, f story.FileRefusal) string {
	path := at(rules, plan, f)
	name := path
	if rel, inside := strings.CutPrefix(path, plan.Workspace+"/"); inside {
		name = rel
	}
	why := map[string]string{event.LayerProtected: "cannot be changed inside", event.LayerHidden: "is hidden as a secret", event.LayerReadonly: "is read-only inside"}[f.Layer]
	if rule := ruleOf(rules, plan, path); rule != nil && f.Layer == event.LayerProtected {
		why += ": " + rule.Reason
	}
	line := text.Word(words.Tilde(plan.Identity.Home, name)) + " " + why
	var about []string
	if f.Rule != "" {
		about = append(about, "rule "+f.Rule)
	}
	if f.Count > 1 {
		about = append(about, fmt.Sprintf("%d times", f.Count))
	}
	if len(about) > 0 {
		line += " (" + strings.Join(about, ", ") + ")"
	}
	return text.Line(line)
}
