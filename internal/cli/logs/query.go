package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

// errEnough ends a scan at --limit.
var errEnough = errors.New("enough was found")

func newLogQuery(a *app) *cobra.Command {
	var q query
	c := &cobra.Command{
		Use:   "query CONDITION [SESSION]",
		Short: "Show the events for which a condition is true",
		Long: `Show the events for which CONDITION is true, one a line. It is written in the Common
Expression Language: ==, <, &&, ||, !, in, startsWith, endsWith, contains, matches,
size, argv.exists(a, …), has(detail.x); besides path.under("/dir"), path.base() and
text.lowerAscii(). Fields:

` + fieldList(),
		Example: `  holdfast log query 'verdict == "denied" && object.under("/home")'
  holdfast log query 'action == "proc.exec" && argv.exists(a, a == "-c")' --all
  holdfast log query 'action == "net.request" && detail.status != "200"' --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("no condition was given"), `for example: holdfast log query 'verdict == "denied"'`)
			}
			return cobra.MaximumNArgs(2)(nil, args)
		},
		ValidArgsFunction: archive.CompleteSessions(a.App, 1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.query(ctx, q, args[0], args[1:])
		},
	}
	c.Flags().BoolVar(&q.all, "all", false, "look at the records of all runs")
	c.Flags().BoolVar(&q.json, "json", false, "show the lines of the record unchanged")
	c.Flags().BoolVar(&q.count, "count", false, "show only how many there are")
	c.Flags().Var((*command.CountFlag)(&q.limit), "limit", "stop after N")
	return c
}

// query is the flags of log query.
type query struct {
	all, json, count bool
	limit            int // 0 for none
}

// fieldList is the fields of an event for the help.
func fieldList() string {
	var b strings.Builder
	line := " "
	for _, f := range expr.Vocabulary() {
		if f.Name == "marks" { // only detection knows them
			continue
		}
		word := " " + f.Name
		switch f.Type {
		case "string":
		case "list(string)":
			word += " (list)"
		case "map(string, string)":
			word += " (map)"
		default:
			word += " (" + f.Type + ")"
		}
		if len(line)+len(word) > 84 {
			b.WriteString(line + "\n")
			line = " "
		}
		line += word
	}
	return b.String() + line
}

// condition compiles the condition of a user.
func condition(written string) (*expr.Program, error) {
	p, err := expr.Compile(written)
	var wrong *expr.Error
	if errors.As(err, &wrong) {
		return nil, command.Usage(errors.New(text.Line(wrong.Error())), "the fields and functions are in: holdfast log query --help")
	}
	return p, err
}

func (a *app) query(ctx context.Context, q query, written string, args []string) error {
	program, err := condition(written)
	if err != nil {
		return err
	}
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	infos, err := r.FindAll(args, q.all)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	s := &search{query: q, program: program, out: out, decoder: audit.NewDecoder()}
	bad := false
	for _, info := range infos {
		s.lines = lines.New(a.App)
		s.lines.Session = q.all
		err = archive.WarnDamaged(a.App, info, s.log(ctx, info.Path), &bad)
		if err != nil {
			break
		}
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if q.count {
		fmt.Fprintln(out, s.found)
	}
	if s.failures > 0 {
		a.Note(command.Yellow, "warning", "the condition could not be evaluated for %s, such as record %d: %s", words.Plural(s.failures, "event", "events"), s.failedAt, text.Line(s.failure.Error()))
	}
	if err == nil && s.found == 0 && !q.count {
		a.Note(command.Cyan, "note", "no event matches")
	}
	if err = errors.Join(err, out.Flush()); err == nil && bad {
		err = command.Exit(command.ExitFailed)
	}
	return err
}

// search is the state of a query.
type search struct {
	query
	program *expr.Program
	out     *bufio.Writer
	lines   *lines.Formatter
	decoder *audit.Decoder
	found   int

	mu       sync.Mutex // guards what follows
	failures uint64
	failure  error
	failedAt uint64
}

// matches evaluates the condition. What cannot be evaluated does not match, and
// is counted: an event from inside must not be able to end a query.
func (s *search) matches(r *audit.Record) bool {
	ok, err := s.program.Matches(r)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failures == 0 || r.Seq() < s.failedAt {
			s.failure, s.failedAt = err, r.Seq()
		}
		s.failures++
	}
	return ok
}

// log searches one log. Lines for people name programs, for which it reads all events of
// processes.
func (s *search) log(ctx context.Context, path string) error {
	people := !s.json && !s.count
	return audit.Scan(ctx, path, runtime.GOMAXPROCS(0), func(r *audit.Record) (bool, error) {
		return people && isProcessEvent(r) || s.matches(r), nil
	}, func(r *audit.Record) error {
		if !people || !isProcessEvent(r) {
			return s.show(r)
		}
		err := s.decoder.Decode(r)
		if err != nil {
			return err
		}
		s.lines.Learn(s.decoder.Event)
		if ok, _ := s.program.Matches(r); ok { // an error is counted where it came first
			err = s.show(r)
		}
		s.lines.Forget(s.decoder.Event)
		return err
	})
}

// isProcessEvent reports whether an event says which program a process runs.
func isProcessEvent(r *audit.Record) bool {
	return r.IsAction(event.ProcExec, event.ProcSeen, event.ProcExit)
}

func (s *search) show(r *audit.Record) error {
	s.found++
	switch {
	case s.count:
	case s.json:
		s.out.Write(r.Raw())
		s.out.WriteByte('\n')
	default:
		if err := s.decoder.Decode(r); err != nil {
			return err
		}
		s.out.WriteString(s.lines.Line(s.decoder.Event))
	}
	if s.limit > 0 && s.found >= s.limit {
		return errEnough
	}
	// If the pipe has no reader any more, the search ends here.
	_, err := s.out.Write(nil)
	return err
}

func newLogFollow(a *app) *cobra.Command {
	var asJSON bool
	var where string
	c := &cobra.Command{
		Use:   "follow [SESSION]",
		Short: "Show the events of a run as they come",
		Long: `Show the events of a run, one a line, from its beginning and as they come, until the
run or you (Ctrl-C) end it.`,
		Example:           "  holdfast log follow\n  holdfast log follow --where 'verdict == \"denied\"'",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			err := a.follow(ctx, args, where, asJSON)
			if ctx.Err() != nil { // that is how it is ended
				return nil
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show the lines of the record unchanged")
	c.Flags().Var((*command.TextFlag)(&where), "where", "only the events for which this condition is true; see log query")
	return c
}

func (a *app) follow(ctx context.Context, args []string, where string, asJSON bool) error {
	s := &search{query: query{json: asJSON}, lines: lines.New(a.App), decoder: audit.NewDecoder()}
	var err error
	if where == "" {
		where = "true"
	}
	if s.program, err = condition(where); err != nil {
		return err
	}
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	info, err := r.Find(args)
	if err != nil {
		return err
	}
	s.out = bufio.NewWriter(a.Stdout)
	return audit.Follow(ctx, info.Path, func(r *audit.Record) error {
		if isProcessEvent(r) {
			if e, err := r.Event(); err == nil {
				defer s.lines.Forget(e)
				s.lines.Learn(e)
			}
		}
		if !s.matches(r) {
			return nil
		}
		if err := s.show(r); err != nil {
			return err
		}
		return s.out.Flush()
	})
}
