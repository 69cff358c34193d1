package approvals

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

// byID finds what begins with a name. The whole name of one wins over others
// that begin with it.
func byID[T any](all []T, name string, id func(T) string, what, list string) (T, error) {
	var none T
	if name == "" {
		return none, command.Usage(fmt.Errorf("the name of the %s is empty", what), "list them with: "+list)
	}
	var found []T
	for _, one := range all {
		if id(one) == name {
			return one, nil
		}
		if strings.HasPrefix(id(one), name) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return none, command.Usage(fmt.Errorf("no %s has a name that begins with %q", what, text.Line(name)), "list them with: "+list)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, one := range found {
		names[i] = text.Line(id(one))
	}
	slices.Sort(names)
	return none, command.Usage(fmt.Errorf("the names of %d %ss begin with %q", len(found), what, text.Line(name)), "type more of it: "+strings.Join(names[:min(len(names), 8)], ", "))
}

// waitingRequests are those of all sessions.
func waitingRequests(all []consent.Waiting) []consent.Request {
	var out []consent.Request
	for _, w := range all {
		out = append(out, w.Requests...)
	}
	return out
}

// liveGrants are those of all sessions.
func liveGrants(all []consent.Waiting) []consent.Grant {
	var out []consent.Grant
	for _, w := range all {
		out = append(out, w.Grants...)
	}
	return out
}

func findRequest(ctx context.Context, state, name string) (consent.Request, error) {
	all, silent := consent.Waits(ctx, state)
	found, err := byID(waitingRequests(all), name, func(r consent.Request) string { return r.ID }, "request", "holdfast approve list")
	if err != nil && silent != nil {
		return found, silent
	}
	return found, err
}

func findGrant(ctx context.Context, state, name string) (consent.Grant, error) {
	all, silent := consent.Waits(ctx, state)
	found, err := byID(liveGrants(all), name, func(g consent.Grant) string { return g.ID }, "approval", "holdfast approve grants")
	if err != nil && silent != nil {
		return found, silent
	}
	return found, err
}

// oneName wants exactly one argument.
func oneName(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		err := fmt.Errorf("no %s given", what)
		if len(args) > 1 {
			err = fmt.Errorf("%d names given: name one %s at a time", len(args), what)
		}
		return command.Usage(err, "type '"+cmd.CommandPath()+" ID'")
	}
}

// completeRequests offers the names of what waits.
func (a *app) completeRequests(c *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
	p, err := a.approver("")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, stop := command.Interruptible(c)
	defer stop()
	all, err := consent.Waits(ctx, p.state)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, r := range waitingRequests(all) {
		if strings.HasPrefix(r.ID, begin) {
			out = append(out, cobra.CompletionWithDesc(r.ID, consent.Summary(r.Attempt)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
