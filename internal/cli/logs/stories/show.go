// Package stories is log show, tree, files and net: what happened in a run, by its
// record. [Read] makes a [Session] from a record, and a printer writes it for
// a person. How the story is made from events is record/story's; this package decides
// nothing.
package stories

import (
	"bufio"
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/story"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Session is a session as it is shown: its story, and how far the record can be
// trusted.
type Session struct {
	*story.Story
	archive.Trust
	Unreadable string `json:"unreadable,omitempty"` // which part of the record is not a record

	SettledAfter *archive.Settled `json:"settled_after,omitempty"` // the supervisor was killed
}

// Reading is what is asked of a record.
type Reading struct {
	Verify bool
	Files  bool // list the paths of the session
}

// Read reads the record of a session. What cannot be read is skipped, and reported.
func Read(ctx context.Context, r archive.Archive, info audit.Info, o Reading) (Session, error) {
	limits := story.Default
	if !o.Files {
		limits.Files = 0
	}
	b := story.New(limits)
	d := audit.NewDecoder()
	add := func(r *audit.Record) error {
		err := d.Decode(r)
		if err == nil {
			b.Add(d.Event)
		}
		return err
	}
	t := Session{Trust: archive.Trust{Running: info.Open}}
	var err error
	if o.Verify {
		t.Trust, err = r.ReadVerified(ctx, info, add)
	} else {
		err = audit.Scan(ctx, info.Path, runtime.GOMAXPROCS(0), nil, add)
	}
	t.Story = b.Story()
	if t.Session == "" {
		t.Session = info.Session
	}
	var damage *audit.DamageError
	switch {
	case ctx.Err() != nil:
		return t, ctx.Err()
	case err != nil && (t.Events == 0 || o.Verify && !errors.As(err, &damage)):
		return t, err
	case err != nil:
		t.Unreadable = err.Error()
	}
	return t, nil
}

// storyCommand is what show, tree, files and net share: one session, as JSON or as
// text. reading returns what each of these needs of the record.
func storyCommand(a *app, c *cobra.Command, reading func(json bool) Reading, asJSON func(Session) any, show func(io.Writer, Session)) *cobra.Command {
	var json bool
	c.Args = cobra.MaximumNArgs(1)
	c.ValidArgsFunction = archive.CompleteSessions(a.App, 0)
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := command.Interruptible(c)
		defer stop()
		r, err := archive.Open(a.App)
		if err != nil {
			return err
		}
		info, err := r.Find(args)
		if err != nil {
			return err
		}
		asked := reading(json)
		t, err := Read(ctx, r, info, asked)
		if err != nil {
			return err
		}
		t.SettledAfter = r.SettledAfter(info.Session)
		if json {
			return command.WriteJSON(a.Stdout, asJSON(t))
		}
		out := bufio.NewWriter(a.Stdout)
		show(out, t)
		if asked.Verify {
			archive.WriteSettled(out, t.SettledAfter)
		} else {
			a.warnIncomplete(t)
		}
		return out.Flush()
	}
	c.Flags().BoolVar(&json, "json", false, "show as JSON")
	return c
}

// warnIncomplete warns of a listing that is not all.
func (a *app) warnIncomplete(t Session) {
	if t.Unreadable != "" {
		a.Note(command.Yellow, "warning", "the record is damaged: %s", text.Line(t.Unreadable))
	}
	if len(t.Lost) > 0 {
		a.Note(command.Yellow, "warning", "events were not recorded one by one: see log show")
	}
	if t.Left.Listed() {
		a.Note(command.Yellow, "warning", "there is more than is listed here: use log query or log export")
	}
}

// Show makes the verb holdfast log show.
func Show(world *command.App) *cobra.Command {
	a := &app{world}
	long := false
	c := storyCommand(a, &cobra.Command{
		Use:   "show [SESSION]",
		Short: "Show what happened in a run",
		Long: `Show what happened in a run: alerts first; then which program started which, where,
and how it ended, with what it wrote, removed, reached and was refused; what came
back from where; what was refused and by which rule; and at the end what is not
known. An event on a file is shown as it was attempted, with the result that the
rules of the boundary give it; the kernel's own answer is not observed.`,
		Example: "  holdfast log show\n  holdfast log show --long 20261122",
	}, func(json bool) Reading { return Reading{Verify: true, Files: json} }, func(t Session) any { return t }, func(w io.Writer, t Session) { newPrinter(a, w, t, long).all() })
	c.Flags().BoolVar(&long, "long", false, "show every program and every object that is known")
	return c
}

// Tree makes the verb holdfast log tree.
func Tree(world *command.App) *cobra.Command {
	a := &app{world}
	return storyCommand(a, &cobra.Command{
		Use:     "tree [SESSION]",
		Short:   "Show which program started which, and how each ended",
		Example: "  holdfast log tree",
	}, func(bool) Reading { return Reading{} }, func(t Session) any { return t.Programs }, func(w io.Writer, t Session) {
		pr := newPrinter(a, w, t, true)
		pr.bare = true
		pr.programs()
	})
}

// Files makes the verb holdfast log files.
func Files(world *command.App) *cobra.Command {
	a := &app{world}
	var f fileFilter
	c := storyCommand(a, &cobra.Command{
		Use:   "files [SESSION]",
		Short: "List the paths of a run and what was done to each",
		Long: `List the paths of a run and what was done to each. Flags such as --written
list only the paths to which one of them applies; --null ends each with a NUL instead
of a newline and leaves its bytes as they are, for xargs -0. Opens for reading are
only recorded with --record full.`,
		Example: "  holdfast log files\n  holdfast log files --written\n  holdfast log files --written --null | xargs -0 ls -ld",
	}, func(bool) Reading { return Reading{Files: true} }, func(t Session) any { return f.pick(t.Files) }, func(w io.Writer, t Session) { f.show(a, w, t) })
	c.Flags().BoolVar(&f.written, "written", false, "paths of the host that were written or made, and were not removed again")
	c.Flags().BoolVar(&f.private, "private", false, "paths that were written or made in private directories, gone with the run")
	c.Flags().BoolVar(&f.read, "read", false, "paths that were opened for reading")
	c.Flags().BoolVar(&f.removed, "removed", false, "paths that were removed or renamed")
	c.Flags().BoolVar(&f.refused, "refused", false, "paths that were refused")
	c.Flags().BoolVar(&f.null, "null", false, "end each path with a NUL, and escape nothing")
	c.PreRunE = func(*cobra.Command, []string) error {
		if f.null && !f.any() {
			return command.Usage(errors.New("--null needs a choice of paths"), "for example: --null --written")
		}
		return nil
	}
	return c
}

// Net makes the verb holdfast log net.
func Net(world *command.App) *cobra.Command {
	a := &app{world}
	return storyCommand(a, &cobra.Command{
		Use:     "net [SESSION]",
		Short:   "Show where a run connected and what came back",
		Example: "  holdfast log net",
	}, func(bool) Reading { return Reading{} }, func(t Session) any {
		return struct {
			Destinations []*story.Destination `json:"destinations"`
			Sockets      []*story.Socket      `json:"sockets"`
		}{t.Destinations, t.Sockets}
	}, func(w io.Writer, t Session) {
		pr := newPrinter(a, w, t, true)
		pr.network()
		pr.sockets()
	})
}
