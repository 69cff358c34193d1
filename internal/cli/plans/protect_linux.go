package plans

import (
	"context"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
)

// Protect finds what run would protect and hide, and returns the names that are
// looked after when they appear.
func Protect(c *cobra.Command, plan *policy.Plan) ([]policy.Reserved, error) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	rules, err := workspace.RulesOf(*plan)
	if err != nil {
		return nil, err
	}
	if _, err := workspace.Inspect(ctx, plan); err != nil {
		return nil, err
	}
	var names []policy.Reserved
	for _, r := range rules.List() {
		var outcome string
		switch r.Tier {
		case workspace.Deny:
			outcome = "what appears here is held back at the end"
			if plan.Review {
				outcome = "a change is flagged in the review"
			}
		case workspace.Flag:
			outcome = "changes are made on the host, and listed at the end"
			if plan.Review {
				outcome = "a change is flagged in the review"
			}
		default:
			continue
		}
		names = append(names, policy.Reserved{
			Pattern: r.Pattern, Reason: r.Reason, Outcome: outcome,
			InGit: r.Where == workspace.InGit, AtRoot: r.Where == workspace.AtRoot,
		})
	}
	return names, nil
}
