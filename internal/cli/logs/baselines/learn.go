package baselines

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

// learnFlags are the flags of log baseline learn.
type learnFlags struct{ all, anyway, dry bool }

// candidate is a run to learn from.
type candidate struct {
	run     baseline.Run
	trace   baseline.Trace
	refusal string   // why nothing can be learnt from it, even with --anyway; "" for nothing
	doubts  []string // why nothing is learnt without --anyway
}

func (a *app) learnNormal(ctx context.Context, w workspaceFlag, l learnFlags, args []string) error {
	b, err := a.openBaseline(w)
	if err != nil {
		return err
	}
	infos, err := b.candidates(l, args)
	if err != nil {
		return err
	}
	refused := false
	for _, info := range infos {
		one, err := b.read(ctx, info)
		if err != nil {
			return err
		}
		learnt, err := a.learn(b, one, l)
		if err != nil {
			return err
		}
		refused = refused || !learnt && !l.all
	}
	if !l.dry {
		if err := b.Write(b.file); err != nil {
			return err
		}
	}
	if refused {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// candidates are the records to learn from, the oldest first.
func (b openedBaseline) candidates(l learnFlags, args []string) ([]audit.Info, error) {
	var found []audit.Info
	if len(args) > 0 {
		if l.all {
			return nil, command.Usage(errors.New("both a session and --all are given"), "leave one of them out")
		}
		for _, name := range args {
			info, err := b.archive.Find([]string{name})
			if err != nil {
				return nil, err
			}
			found = append(found, info)
		}
		return found, nil
	}
	infos, err := audit.List(b.archive.Logs)
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		known := slices.ContainsFunc(b.Runs, func(r baseline.Run) bool { return r.Session == info.Session })
		if info.Open || l.all && known || archive.Summarize(info).Workspace != b.workspace {
			continue
		}
		if found = append(found, info); !l.all {
			break
		}
	}
	if len(found) == 0 && !(l.all && len(b.Runs) > 0) {
		return nil, command.Usage(fmt.Errorf("there is no record of a run in %s", text.Word(b.workspace)), "run something there, or name another directory with --workspace")
	}
	slices.Reverse(found)
	return found, nil
}

// read reads a record and says what is against learning from it. The gravity of its
// alerts was decided when it was made.
func (b openedBaseline) read(ctx context.Context, info audit.Info) (candidate, error) {
	one := candidate{run: baseline.Run{Session: info.Session, Start: info.Start.UTC(), Learnt: time.Now().UTC().Truncate(time.Second)}}
	r := b.archive
	workspace, boundary, grave := "", "", map[string]bool{}
	o := audit.VerifyOptions{Keys: r.Keys, Heads: r.Heads, Session: r.ExpectedSession(info)}
	report, err := audit.ReadVerified(ctx, info.Path, o, func(rec *audit.Record) error {
		e, err := rec.Event()
		if err != nil {
			return err
		}
		one.trace.Observe(&e)
		switch e.Action {
		case event.SessionStart:
			workspace, boundary = e.Object, e.Detail["boundary"]
		case event.AlertRaise:
			if s := detect.Severity(e.Detail["severity"]); s.Level() > detect.Low.Level() && !grave[e.Object] {
				grave[e.Object] = true
				one.doubts = append(one.doubts, fmt.Sprintf("it raised the alert %s (%s)", e.Object, s))
			}
		}
		return nil
	})
	var damage *audit.DamageError
	if err != nil && !errors.As(err, &damage) { // the verdict already reports damage
		return one, fmt.Errorf("verifying %s: %w", text.Word(info.Path), err)
	}
	one.run.Verdict = report.Verdict.String()
	if v := report.Verdict; v == audit.Tampered || v == audit.Unverifiable || v == audit.Gaps {
		why := ""
		if len(report.Problems) > 0 {
			why = ": " + report.Problems[0].String()
		}
		one.doubts = slices.Insert(one.doubts, 0, "its record is "+v.String()+why)
	}
	switch {
	case report.Open || info.Open:
		one.refusal = "it has not ended"
	case workspace == "":
		one.refusal = "nothing was executed in it"
	case workspace != b.workspace:
		one.refusal = "it was in another workspace, " + text.Word(workspace)
	case boundary == "none":
		one.refusal = "it was outside every boundary, where programs are not observed"
	}
	return one, nil
}

// learn learns from a run, or reports why not.
func (a *app) learn(b openedBaseline, one candidate, l learnFlags) (bool, error) {
	report := func(word, rest string) error {
		_, err := fmt.Fprintf(a.Stdout, "%-12s %s  %s\n", word, text.Line(one.run.Session), rest)
		return err
	}
	if one.refusal != "" {
		return false, report("not learnt", text.Line(one.refusal))
	}
	if len(one.doubts) > 0 && !l.anyway {
		err := report("not learnt", text.Line(strings.Join(one.doubts, "; ")))
		if !l.all {
			a.Note(command.Cyan, "hint", "look at it first: holdfast alerts %s; if it is as it should be, say so with --anyway", text.Line(one.run.Session))
		}
		return false, err
	}
	one.run.Anyway = one.doubts
	fresh, err := b.Learn(one.run, &one.trace)
	if errors.Is(err, baseline.ErrFull) {
		return false, report("not learnt", err.Error()+"; forget runs that are no longer normal: holdfast log baseline forget SESSION")
	}
	if err != nil {
		return false, err
	}
	b.Workspace = b.workspace
	word := "learnt"
	if l.dry {
		word = "would learn"
	}
	if err := report(word, freshText(fresh)); err != nil || !l.dry {
		return true, err
	}
	for _, thing := range fresh {
		if _, err := fmt.Fprintf(a.Stdout, "  %s %s\n", thing.Kind, text.Word(words.ShortHash(thing.Name))); err != nil {
			return true, err
		}
	}
	return true, nil
}

// freshText describes how many things of each kind are new.
func freshText(fresh []baseline.Thing) string {
	if len(fresh) == 0 {
		return "nothing new"
	}
	counts := map[baseline.Kind]int{}
	for _, thing := range fresh {
		counts[thing.Kind]++
	}
	var parts []string
	for _, k := range baseline.Kinds() {
		if n := counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", k, n))
		}
	}
	return "new: " + strings.Join(parts, ", ")
}
