package stories

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/story"
)

// fewRefused is how many refused files are named.
const fewRefused = 5

// Refused names the first files that programs of a run were refused, a line each, and
// says how many refusals are not named. first is the path to ask about. That the system is
// read-only is left out: nothing would allow it, and programs try.
func Refused(all []story.FileRefusal, plan policy.Plan) (lines []string, first string, rest uint64) {
	rules, err := workspace.RulesOf(plan)
	if err != nil {
		rules = workspace.DefaultRules()
	}
	for _, f := range all {
		named := func(p policy.PathRule) bool { return paths.Within(p.Path, f.Path) || paths.Within(p.At, f.Path) }
		if f.Layer == event.LayerReadonly && !slices.ContainsFunc(plan.Paths, named) {
			continue
		}
		if len(lines) == fewRefused {
			rest++
			continue
		}
		path, rule := f.Path, ruleOf(rules, plan.Workspace, f.Path)
		if to := ruleOf(rules, plan.Workspace, f.To); rule == nil && to != nil { // a rename to a name that has a rule
			path, rule = f.To, to
		}
		if first == "" {
			first = path
		}
		lines = append(lines, refusedLine(f, rule, words.Tilde(plan.Identity.Home, strings.TrimPrefix(path, plan.Workspace+"/"))))
	}
	return lines, first, rest
}

func ruleOf(rules workspace.Rules, root, path string) *workspace.Rule {
	rel, inside := strings.CutPrefix(path, root+"/")
	if !inside {
		return nil
	}
	return rules.Find(rel)
}

// refusedLine is a line about one file. rule is why its name is protected, if it is.
func refusedLine(f story.FileRefusal, rule *workspace.Rule, name string) string {
	line := text.Word(name)
	switch f.Layer {
	case event.LayerProtected:
		line += " cannot be changed inside"
		if rule != nil {
			line += ": " + rule.Reason
		}
	case event.LayerHidden:
		line += " is hidden as a secret"
	case event.LayerConsent:
		line += " would be lost at the end, as a worktree of git: make it in the workspace, or begin with: holdfast run --worktrees DIR"
	default:
		line += " is read-only inside"
	}
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
