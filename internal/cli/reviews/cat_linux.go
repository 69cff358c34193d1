package reviews

import (
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
			ctx, stop := command.Interruptible(c)
			defer stop()
			if out, ok := a.Stdout.(*os.File); ok && screen.IsTerminal(out) && !force {
				return command.Usage(errors.New("the bytes of a run can act on a terminal"), "redirect them to a file, or see them with: holdfast review diff "+fileName(args[0]))
			}
			v, err := a.openReview(ctx, session)
			if err != nil {
				return err
			}
			defer v.close()
			p, err := v.fromWorkspace(args[0])
			if err != nil {
				return err
			}
			change := v.set.Find(p)
			switch {
			case change == nil:
				return command.Usage(fmt.Errorf("nothing changed at %s", text.Word(args[0])), "see what did with: holdfast review "+v.Session)
			case v.Direct():
				return command.Usage(errDirect, "the file is in the workspace")
			}
			f, err := v.set.Content(change, base)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := io.Copy(a.Stdout, f); err != nil {
				return fmt.Errorf("printing %s: %w", text.Word(args[0]), err)
			}
			return nil
		},
	}
	bindSession(c, &session)
	c.Flags().BoolVar(&base, "base", false, "as it was when the run began")
	c.Flags().BoolVar(&force, "force", false, "on a terminal too")
	return c
}
