package reviews

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
)

// show prints the changes of a review: what should be looked at first, then all others
// as a tree.
func (v *openedReview) show(all bool) error {
	var b strings.Builder
	what := "what it changed waits for you"
	switch {
	case v.listed != nil:
		what = "what was held back at its end waits for you, and the rest is there already"
	case v.Direct():
		what = "what changed in it in the meantime; it is there already"
	}
	fmt.Fprintf(&b, "%s  %s, until %s: %s\n", text.Line(v.Session), text.Word(string(v.Workspace)), words.Moment(v.Ended), what)
	v.showSet(&b, all)
	if v.listed != nil {
		list := *v
		list.set, list.listed = v.listed, nil
		b.WriteByte('\n')
		list.showSet(&b, all)
	}
	if err := v.showGit(&b); err != nil {
		return err
	}
	if v.others > 0 {
		fmt.Fprintf(&b, "\n%s\n", v.a.Tint(command.Grey, words.Plural(v.others, "other run waits", "other runs wait")+" in this workspace: holdfast review list"))
	}
	_, err := io.WriteString(v.a.Stdout, b.String())
	return err
}

// showSet prints the changes of one set.
func (v *openedReview) showSet(b *strings.Builder, all bool) {
	n := v.set.Counts()
	fmt.Fprintf(b, "%s\n", v.countsText(n))
	v.showNotes(b)
	rest := v.set.Changes
	if n.Flagged > 0 {
		fmt.Fprintf(b, "\n%s\n", v.a.Tint(command.Bold, "look at these first: this machine would execute or obey them, or they are not what they seem"))
		rest = nil
		for _, c := range v.set.Changes {
			if !c.Flagged() {
				rest = append(rest, c)
				continue
			}
			fmt.Fprintf(b, "  %s\n", v.line(c, string(c.Path)))
			for _, f := range c.Flags {
				fmt.Fprintf(b, "      %s\n", v.a.Tint(command.Yellow, text.Line(f.Reason)))
			}
		}
	}
	v.tree(b, rest, all)
	v.next(b, n)
}

// countsText returns the figures in one line.
func (v *openedReview) countsText(n review.Counts) string {
	parts := []string{words.Plural(n.Changes, "change", "changes") + ":"}
	for _, one := range []struct {
		n    int
		word string
	}{{n.Added, "added"}, {n.Modified, "modified"}, {n.Deleted, "deleted"}, {n.Renamed, "renamed"}, {n.Other, "of mode, type or history"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s,", one.n, one.word))
		}
	}
	s := strings.TrimRight(strings.Join(parts, " "), ",:")
	if v.set.Mode == review.Held {
		s = words.Plural(n.Changes, "file held back", "files held back")
	}
	if n.Flagged > 0 {
		s += "; " + v.a.Tint(command.Red, fmt.Sprintf("%d flagged", n.Flagged))
	}
	if v.listOnly() {
		return s
	}
	for _, one := range []struct {
		n    int
		word string
	}{{n.Applied, "applied"}, {n.Accepted, "accepted"}, {n.Rejected, "rejected"}, {n.Cannot, "cannot be applied"}} {
		if one.n > 0 {
			s += fmt.Sprintf("; %d %s", one.n, one.word)
		}
	}
	return s
}

// showNotes prints what the list does not show.
func (v *openedReview) showNotes(b *strings.Builder) {
	note := func(format string, args ...any) {
		fmt.Fprintf(b, "%s %s\n", v.a.Tint(command.Yellow, "note:"), text.Line(fmt.Sprintf(format, args...)))
	}
	if d := v.direct; d != nil && v.listOnly() {
		if d.Cut > 0 {
			note("%d more changes are not in the list", d.Cut)
		}
		if d.Unsure != "" {
			note("%s", d.Unsure)
		}
	}
	if v.Died {
		note("the supervisor of this run was killed; the run ended with it")
	}
	for _, dir := range v.Written {
		note("the run could write to %s directly, which is not part of this review", text.Word(string(dir)))
	}
	for _, what := range v.Left {
		note("not in the run's copy: %s", text.Word(string(what)))
	}
	for _, u := range v.set.Unseen {
		note("not examined, and never applied: %s: %s", text.Word(string(u.Path)), u.Reason)
	}
	for _, what := range v.set.Notes {
		note("%s", what)
	}
}

// line is a change in one line, under a name.
func (v *openedReview) line(c *review.Change, name string) string {
	mark, colour := " ", ""
	if c.Flagged() {
		mark = "!"
	}
	switch c.Kind {
	case review.Added:
		colour = command.Green
	case review.Deleted:
		colour = command.Red
	case review.Renamed, review.TypeChanged:
		colour = command.Cyan
	}
	line := fmt.Sprintf("%s %s %s", v.a.Tint(command.Red, mark), v.a.Tint(colour, fmt.Sprintf("%-8s", c.Kind)), fileName(name))
	if c.Kind == review.Renamed {
		line += " from " + fileName(string(c.From))
	}
	if about := aboutChange(c); len(about) > 0 {
		line += "  " + v.a.Tint(command.Grey, strings.Join(about, ", "))
	}
	if !v.listOnly() {
		switch {
		case c.Applied:
			line += "  [applied]"
		case c.Cannot != "":
			line += "  [cannot be applied: " + text.Line(c.Cannot) + "]"
		case c.Decision != review.Undecided:
			line += fmt.Sprintf("  [%sed]", c.Decision)
		}
	}
	return line
}

// fileName is a name in one line, which nothing takes for an option.
func fileName(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	return text.Word(s)
}

// aboutChange is what there is to know of a change other than its name.
func aboutChange(c *review.Change) []string {
	var out []string
	if c.Kind == review.TypeChanged {
		out = append(out, fmt.Sprintf("%s, was %s", typeName(c.Type), typeName(c.OldType)))
	} else if t := max(c.Type, c.OldType); t != review.File {
		out = append(out, typeName(t))
	}
	if c.Target != "" {
		out = append(out, "to "+text.Word(string(c.Target)))
	}
	if c.OldMode != c.Mode && c.Type != review.None && c.OldType != review.None && c.OldMode != 0 {
		out = append(out, fmt.Sprintf("mode %04o → %04o", c.OldMode, c.Mode))
	} else if c.Kind == review.Added && c.Mode&0o7111 != 0 && c.Type == review.File {
		out = append(out, fmt.Sprintf("mode %04o", c.Mode))
	}
	if c.Type == review.File {
		out = append(out, words.Size(c.Size))
	}
	if c.Binary {
		out = append(out, "binary")
	}
	if c.Huge {
		out = append(out, "huge")
	}
	for _, note := range c.Notes {
		out = append(out, text.Line(note))
	}
	if h := c.History; h != nil {
		out = append(out, words.Plural(len(h.Commits), "new commit", "new commits"))
	}
	return out
}

func typeName(t review.Type) string {
	if t == review.Dir {
		return "directory"
	}
	return t.String()
}

// next prints what can be done now.
func (v *openedReview) next(b *strings.Builder, n review.Counts) {
	if v.listOnly() {
		fmt.Fprintf(b, "\n%s\n", v.a.Tint(command.Grey, "what your other programs changed during the run is in the list too; who wrote what: holdfast log files "+text.Line(v.Session)+" --written"))
		return
	}
	var next []string
	if n.Undecided > 0 {
		next = append(next, "look: holdfast review diff [PATH]", "decide: holdfast review -i, or review accept PATH and review reject PATH")
		if n.Undecided > n.Flagged {
			next = append(next, "accept and apply all that has no flag: holdfast review --apply-all-safe")
		}
	}
	if n.Accepted > 0 {
		next = append(next, "apply what is accepted: holdfast review apply")
	}
	if !v.needsDecision() {
		next = append(next, "nothing is left to decide; forget it: holdfast review drop "+text.Line(v.Session))
	}
	if len(next) > 0 {
		fmt.Fprintf(b, "\n%s\n", v.a.Tint(command.Grey, strings.Join(next, "\n")))
	}
}

// shownReview is a review as --json shows it.
type shownReview struct {
	review.Reviewed
	Counts review.Counts `json:"counts"`
	Cut    int           `json:"cut,omitempty"`    // of a run in direct mode: changes that are not listed
	Unsure string        `json:"unsure,omitempty"` // of a run in direct mode: why something may be missing
	At     time.Time     `json:"at"`               // of this look

	Changes []*review.Change     `json:"changes"`          // flagged ones first, then by path
	Listed  []*review.Change     `json:"listed,omitempty"` // of a run in direct mode that held something back: the others, which are in the workspace
	Git     []review.GitSettings `json:"git,omitempty"`    // of a run in direct mode: settings of git that wait
	Unseen  []review.Unseen      `json:"unseen,omitempty"`
	Notes   []string             `json:"notes,omitempty"`
}

func (v *openedReview) asJSON() (shownReview, error) {
	git, _, err := v.waitingGit()
	s := shownReview{Reviewed: v.Reviewed, Counts: v.set.Counts(), At: time.Now().UTC(), Git: git, Unseen: v.set.Unseen, Notes: v.set.Notes,
		Changes: append([]*review.Change{}, v.set.Changes...)}
	if v.listed != nil {
		s.Listed = v.listed.Changes
	}
	if v.direct != nil {
		s.Cut, s.Unsure = v.direct.Cut, v.direct.Unsure
	}
	return s, err
}

var errDirect = errors.New("this run worked on the workspace itself: its changes are there already, and the list is all that is kept")
