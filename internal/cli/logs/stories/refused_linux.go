package stories

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// fewRefused is how many refused files are named.
const fewRefused = 5

// Refused names the first files that programs of a run were refused, a line each, and
// says how many refusals are not named. rules are those of the workspace at root, home is
// the user's. first is the path to ask about.
func Refused(all []story.FileRefusal, rules workspace.Rules, root, home string) (lines []string, first string, rest uint64) {
	for i, f := range all {
		if i == fewRefused {
			return lines, first, uint64(len(all) - i)
		}
		path, rule := f.Path, ruleOf(rules, root, f.Path)
		if to := ruleOf(rules, root, f.To); rule == nil && to != nil { // a rename to a name that has a rule
			path, rule = f.To, to
		}
		if first == "" {
			first = path
		}
		lines = append(lines, refusedLine(f, rule, words.Tilde(home, strings.TrimPrefix(path, root+"/"))))
	}
	return lines, first, 0
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
