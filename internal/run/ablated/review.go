//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/review"
)

// runReview is `holdfast review` as far as rows call it: it accepts and applies, in
// the workspace that is the working directory. The judge of what a host executes or
// obeys can be switched off.
func runReview(dir string, words []string) error {
	var omit []string
	if list, given := strings.CutPrefix(words[0], "--omit="); given {
		omit, words = strings.Split(list, "+"), words[1:]
	}
	host, err := policy.ThisHost(os.Environ(), dir)
	if err != nil {
		return err
	}
	all, err := review.Reviews(host.State)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(r review.Reviewed) bool { return r.Waits() && string(r.Workspace) == dir })
	if i < 0 {
		return errors.New("nothing waits for review")
	}
	source := review.Source{Workspace: dir, Dir: all[i].Dir, Mode: review.Mode(all[i].Mode)}
	if !slices.Contains(omit, "protected") {
		if source.Rules, err = rulesOf(host, dir); err != nil {
			return err
		}
		source.Obey = workspace.HostSettings(host.Home)
	}
	set, err := review.Collect(context.Background(), source)
	if err != nil {
		return err
	}
	defer set.Close()
	switch words[0] {
	case "accept":
		return set.DecideAll(slices.DeleteFunc(slices.Clone(set.Changes), func(c *review.Change) bool {
			return c.Cannot != "" || !slices.Contains(words, ".") && !slices.Contains(words, string(c.Path))
		}), review.Accept)
	case "apply", "--apply-all-safe":
	default:
		return fmt.Errorf("%q is not a command that rows give to a review without some of its controls", words[0])
	}
	done, err := set.Apply(context.Background(), review.Options{Safe: words[0] == "--apply-all-safe"})
	for _, path := range done.Applied {
		fmt.Fprintln(os.Stdout, "applied", path)
	}
	return err
}

// rulesOf are the names that the policy of a workspace protects.
func rulesOf(host policy.Host, dir string) (workspace.Rules, error) {
	effective, err := policy.Load(policy.Options{Host: host, Workspace: dir})
	if err != nil {
		return workspace.Rules{}, err
	}
	plan, err := policy.Compile(effective, host)
	if err != nil {
		return workspace.Rules{}, err
	}
	return workspace.RulesOf(plan)
}
