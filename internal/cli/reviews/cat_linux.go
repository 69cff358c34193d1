package reviews

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

func newReviewCat(a *app) *cobra.Command {
	var session string
	var base, force bool
	c := &cobra.Command{
		Use:     "cat [flags] PATH",
		Short:   "Print a file as the run left it, or as it was before",
		Long:    "Print the bytes of one file as they are, to be merged by hand. They come from the\nrun: on a terminal they are only printed with --force.",
		Example: "  holdfast review cat src/main.go > main.go.theirs\n  holdfast review cat --base src/main.go > main.go.base",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if out, ok := a.Stdout.(*os.File); ok && screen.IsTerminal(out) && !force {
				return command.Usage(errors.New("the bytes of a run can act on a terminal"), "redirect them to a file, or see them with: holdfast review diff "+fileName(args[0]))
			}
			return a.withReview(c, session, func(_ context.Context, v *openedReview) error { return v.cat(args[0], base) })
		},
	}
	bindSession(c, &session)
	c.Flags().BoolVar(&base, "base", false, "as it was when the run began")
	c.Flags().BoolVar(&force, "force", false, "print on a terminal too")
	return c
}

// cat prints one side of a file.
func (v *openedReview) cat(arg string, base bool) error {
	change, err := v.findChange(arg)
	if err != nil {
		return err
	}
	if v.listOnly() {
		return command.Usage(errDirect, "the file is in the workspace")
	}
	f, err := v.set.Content(change, base)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(v.a.Stdout, f); err != nil {
		return fmt.Errorf("printing %s: %w", text.Word(arg), err)
	}
	return nil
}
