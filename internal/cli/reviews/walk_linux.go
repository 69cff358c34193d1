package reviews

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
)

// shownLines is how much of a hunk is shown before a question.
const shownLines = 200

// errQuit ends going through the changes; what was decided is kept.
var errQuit = errors.New("quit")

// walk is going through the changes of a review, one question after the other.
type walk struct {
	*openedReview
	in  *os.File
	out *bufio.Writer
	i   int // which change
	all int
}

// interact asks about each change that is not decided.
func (v *openedReview) interact(ctx context.Context) error {
	in, inOK := v.a.Stdin.(*os.File)
	out, outOK := v.a.Stdout.(*os.File)
	if !inOK || !outOK || !screen.IsTerminal(in) || !screen.IsTerminal(out) {
		return command.Usage(errors.New("-i needs a terminal"), "decide with: holdfast review accept PATH, and reject PATH")
	}
	if err := v.begin(); err != nil {
		return err
	}
	w := &walk{openedReview: v, in: in, out: bufio.NewWriter(out)}
	var list []*review.Change
	for _, c := range v.set.Changes {
		if isOpen(c) {
			list = append(list, c)
		}
	}
	w.all = len(list)
	err := w.askAll(ctx, list)
	if err != nil && !errors.Is(err, errQuit) && !errors.Is(err, io.EOF) {
		return err
	}
	return w.end(ctx)
}

func (w *walk) askAll(ctx context.Context, list []*review.Change) error {
	for i, c := range list {
		if err := ctx.Err(); err != nil {
			return errQuit
		}
		w.i = i
		if c.Decision != review.Undecided { // decided with its directory
			continue
		}
		if err := w.askChange(c); err != nil {
			return err
		}
	}
	return nil
}

// end prints what is left, and offers to apply what was accepted.
func (w *walk) end(ctx context.Context) error {
	n := w.set.Counts()
	fmt.Fprintf(w.out, "\n%s\n", w.countsText(n))
	if n.Accepted == 0 {
		w.out.Flush()
		if !w.needsDecision() {
			return nil
		}
		return command.Exit(command.ExitFailed)
	}
	answer, err := w.ask(fmt.Sprintf("apply %s now? [y/n]", words.Plural(n.Accepted, "accepted change", "accepted changes")))
	if err == nil && (answer == "y" || answer == "yes") {
		return w.apply(ctx, review.Options{})
	}
	fmt.Fprintf(w.out, "%s\n", w.a.Tint(command.Grey, "later: holdfast review apply"))
	w.out.Flush()
	return command.Exit(command.ExitFailed)
}

// ask asks after all that was printed so far.
func (w *walk) ask(question string) (string, error) {
	if err := w.out.Flush(); err != nil {
		return "", err
	}
	return screen.Ask(w.in, w.a.Stdout, w.a.Tint(command.Bold+";"+command.Cyan, question))
}

const help = `y  accept
n  reject
s  go through the hunks of this file one by one
v  show all of it
d  reject this and everything else in its directory
a  accept this and everything else in its directory that has no flag
k  skip: leave it undecided
q  quit; what was decided is kept
?  this help
`

// askChange asks about one change.
func (w *walk) askChange(c *review.Change) error {
	d, err := w.set.Diff(c)
	if err != nil {
		fmt.Fprintf(w.out, "\n%s\n%s\n", w.line(c, string(c.Path)), w.a.Tint(command.Red, "it cannot be shown: "+text.Line(err.Error())))
		d = nil
	}
	w.print(c, d, shownLines)
	for {
		answer, err := w.ask(w.question(c, d))
		if err != nil {
			return err
		}
		switch answer {
		case "y", "yes":
			if d == nil {
				fmt.Fprintln(w.out, "what cannot be shown is not accepted here")
				continue
			}
			if c.Flagged() && answer != "yes" {
				fmt.Fprintf(w.out, "%s\n", w.a.Tint(command.Yellow, "it is flagged: type the whole word yes to accept it"))
				continue
			}
			return w.decideAll([]*review.Change{c}, review.Accept)
		case "n":
			return w.decideAll([]*review.Change{c}, review.Reject)
		case "a":
			return w.decideDirectory(c, review.Accept)
		case "d":
			return w.decideDirectory(c, review.Reject)
		case "s":
			if d == nil || len(d.Hunks) < 2 {
				fmt.Fprintln(w.out, "it has no hunks to choose from")
				continue
			}
			return w.askHunks(c, d)
		case "v":
			w.print(c, d, 0)
		case "k":
			return nil
		case "q":
			return errQuit
		default:
			io.WriteString(w.out, help)
		}
	}
}

func (w *walk) question(c *review.Change, d *review.Diff) string {
	keys := "y,n,a,d,k,q,v,?"
	if d != nil && len(d.Hunks) > 1 {
		keys = "y,n,s,a,d,k,q,v,?"
	}
	what := "accept"
	if c.Flagged() {
		what, keys = "FLAGGED: accept", strings.Replace(keys, "y", "yes", 1)
	}
	return fmt.Sprintf("(%d/%d) %s %s? [%s]", w.i+1, w.all, what, fileName(string(c.Path)), keys)
}

// print shows a change. A hunk above limit lines is cut, with a note; 0 means no limit.
func (w *walk) print(c *review.Change, d *review.Diff, limit int) {
	if d == nil {
		return
	}
	fmt.Fprintf(w.out, "\n%s\n", w.line(c, string(c.Path)))
	whole := *d
	whole.Hunks = nil
	w.writeDiff(w.out, c, &whole)
	for i := range d.Hunks {
		w.writeHunk(w.out, d, i, limit)
	}
}

// decideDirectory decides the rest of a change's directory, as far as it is undecided.
// What is flagged is never accepted with others.
func (w *walk) decideDirectory(c *review.Change, d review.Decision) error {
	dir := parentDir(string(c.Path))
	var list []*review.Change
	for _, other := range w.set.Changes {
		in := dir == "" || paths.Below(dir, string(other.Path))
		if in && isOpen(other) && (d != review.Accept || !other.Flagged()) {
			list = append(list, other)
		}
	}
	if dir == "" {
		dir = "."
	}
	answer, err := w.ask(fmt.Sprintf("%s %s in %s? [y/n]", d, words.Plural(len(list), "change", "changes"), fileName(dir+"/")))
	if err != nil {
		return err
	}
	if answer != "y" && answer != "yes" {
		return w.askChange(c)
	}
	if err := w.decideAll(list, d); err != nil {
		return err
	}
	if c.Decision == review.Undecided && !c.Applied { // it is flagged
		return w.askChange(c)
	}
	return nil
}

// askHunks asks about the hunks of a file one by one.
func (w *walk) askHunks(c *review.Change, d *review.Diff) error {
	for i := range d.Hunks {
		w.writeHunk(w.out, d, i, shownLines)
		for asked := true; asked; {
			asked = false
			what, keys := "accept", "y,n,k,q,v"
			if c.Flagged() {
				what, keys = "FLAGGED: accept", "yes,n,k,q,v"
			}
			answer, err := w.ask(fmt.Sprintf("%s hunk %d of %d of %s? [%s]", what, i+1, len(d.Hunks), fileName(string(c.Path)), keys))
			if err != nil {
				return err
			}
			decision := review.Reject
			switch {
			case answer == "yes", answer == "y" && !c.Flagged():
				decision = review.Accept
			case answer == "n":
			case answer == "k":
				continue
			case answer == "q":
				return errQuit
			default:
				if answer == "v" {
					w.writeHunk(w.out, d, i, 0)
				}
				asked = true
				continue
			}
			if err := w.decideHunks(pickedHunks{c, d, []int{i}}, decision); err != nil {
				return err
			}
		}
	}
	return nil
}
