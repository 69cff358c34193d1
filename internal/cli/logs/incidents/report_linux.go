package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/incident"
)

// matrixRows are the rows of the escape matrix with what must be seen of each, as
// the examiner lists them; nil where it is not installed.
func matrixRows(ctx context.Context) ([]incident.Row, error) {
	path, err := command.Beside(command.Examiner)
	if err != nil {
		return nil, nil
	}
	printed, err := exec.CommandContext(ctx, path, "rows", "--record").Output()
	if err != nil {
		return nil, fmt.Errorf("getting the rows of %s: %w", path, err)
	}
	var listed []struct {
		ID, Class string
		Core      bool
		Rules     []string
		Denied    []incident.Attempt
	}
	if err := json.Unmarshal(printed, &listed); err != nil {
		return nil, fmt.Errorf("reading the rows of %s: %w", path, err)
	}
	rows := make([]incident.Row, len(listed))
	for i, r := range listed {
		rows[i] = incident.Row{ID: r.ID, Class: r.Class, Core: r.Core, Rules: r.Rules, Attempts: r.Denied}
	}
	return rows, nil
}

// executesHere says why a host executes a file, by the list of names that a run
// protects and lists by. Git's own files that are judged by their content are held back
// if they can do harm, and are ordinary otherwise.
func executesHere() func(string) string {
	rules := workspace.DefaultRules()
	return func(name string) string {
		rule := rules.Find(name)
		if rule == nil || rule.Judged || rule.Tier != workspace.Deny && rule.Tier != workspace.Flag {
			return ""
		}
		return rule.Reason
	}
}
