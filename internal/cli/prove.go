package cli

import (
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

// examinerVerbs are those of the examiner that this program passes on.
func examinerVerbs() []verb {
	return []verb{
		examinerVerb("prove", "Run the escape matrix against Holdfast, or against another sandbox"),
		examinerVerb("model", "Serve a scripted model to try agents with", "model"),
	}
}

// examinerVerb starts the examiner with the arguments of before, and then its own.
func examinerVerb(name, short string, before ...string) verb {
	return verb{name, func(a *command.App) *cobra.Command {
		c := &cobra.Command{
			Use:                name,
			Short:              short,
			Long:               short + ". This starts holdfast-prove, which is a program of its own.",
			DisableFlagParsing: true,
			RunE:               func(_ *cobra.Command, args []string) error { return examine(a, append(before, args...)) },
			ValidArgsFunction: func(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return completeExaminer(slices.Concat(before, args, []string{begun}))
			},
		}
		c.SetHelpFunc(func(*cobra.Command, []string) { _ = examine(a, append(before, "--help")) })
		return c
	}}
}

// completeExaminer asks the examiner what the shell can offer at the end of a line.
func completeExaminer(line []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	path, err := command.Beside(command.Examiner)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	printed, err := exec.Command(path, append([]string{cobra.ShellCompRequestCmd}, line...)...).Output()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(string(printed)), "\n")
	last := len(lines) - 1
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
