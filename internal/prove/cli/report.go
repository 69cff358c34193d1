//go:build linux

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
)

// baselineFile returns the file for the baseline; "" for none.
func (p prover) baselineFile() (string, error) {
	word, file, named := strings.Cut(p.baseline, "=")
	switch {
	case p.baseline == "":
		return "", nil
	case word != "save" || named && file == "":
		return "", command.Usage(fmt.Errorf("--baseline %s is not understood", text.Word(p.baseline)), "write --baseline save, or --baseline save=FILE; to compare with one: --against FILE")
	case p.against != "":
		return "", command.Usage(errors.New("--baseline save and --against were both given"), "compare first, then save")
	case named:
		return file, nil
	}
	name := p.target
	if p.command != "" {
		name = "command"
	}
	return "prove-" + name + ".json", nil
}

// playAndReport plays and reports one run, or several side by side. What could prevent a
// report is checked first.
func (a *app) playAndReport(p prover, play func() ([]report.Run, error)) error {
	keep, err := p.baselineFile()
	if err != nil {
		return err
	}
	if err := checkWritable(keep, p.output); err != nil {
		return err
	}
	var baseline report.Run
	if p.against != "" {
		if !slices.Contains(report.ChangesFormats, p.format) {
			return command.Usage(fmt.Errorf("format %s cannot show changes", p.format), "use text or json with --against")
		}
		if baseline, err = readBaseline(p.against); err != nil {
			return err
		}
	}
	runs, err := play()
	if err != nil {
		return err
	}
	for i := range runs {
		runs[i] = runs[i].Excepting(p.except)
	}
	if keep != "" {
		if err := writeTo(keep, func(f *os.File) error { return report.WriteBaseline(f, runs[0]) }); err != nil {
			return err
		}
		next := ""
		if p.agent.name == "" {
			next = "; compare with: " + p.rerunCommand(true) + " --against " + text.Word(keep)
		}
		a.Note(command.Cyan, "note", "the results are in %s%s", text.Word(keep), next)
	}
	if p.against != "" {
		return a.reportChanges(p, report.Compare(baseline, runs[0]))
	}
	if err := a.printRuns(p, runs); err != nil {
		return err
	}
	if slices.ContainsFunc(runs, func(r report.Run) bool { return len(r.Failed()) > 0 }) {
		return command.Exit(exitFound)
	}
	return nil
}

// printRuns prints one run, or several side by side.
func (a *app) printRuns(p prover, runs []report.Run) error {
	switch {
	case len(runs) == 1:
		return a.printRun(p, runs[0])
	case p.agent.name != "":
		return a.printAgents(p, runs)
	}
	return a.proveOutput(p, func(w io.Writer, o report.TextOptions) error { return report.Matrix(w, runs, p.format, o) })
}

func readBaseline(path string) (report.Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Run{}, err
	}
	defer f.Close()
	run, err := report.ReadBaseline(f)
	if err != nil {
		return report.Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

func readRun(path string) (report.Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Run{}, err
	}
	defer f.Close()
	run, err := report.ReadJSON(f)
	if err != nil {
		return report.Run{}, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// proveOutput writes what print prints to the requested output.
func (a *app) proveOutput(p prover, print func(w io.Writer, o report.TextOptions) error) error {
	if p.output == "" || p.output == "-" {
		return print(a.Stdout, a.textOptions(p))
	}
	return writeTo(p.output, func(f *os.File) error { return print(f, report.TextOptions{Verbose: p.verbose}) })
}

func (a *app) textOptions(p prover) report.TextOptions {
	o := report.TextOptions{Verbose: p.verbose}
	if f, ok := a.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Color = a.Lookup("NO_COLOR") == "" && a.Lookup("TERM") != "dumb"
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = width
		}
	}
	return o
}

func (a *app) printRun(p prover, run report.Run) error {
	return a.proveOutput(p, func(w io.Writer, o report.TextOptions) error { return report.Write(w, run, p.format, o) })
}

// reportChanges prints the changes. Only a weaker result fails: a row that fails as
// before is no news.
func (a *app) reportChanges(p prover, c report.Changes) error {
	err := a.proveOutput(p, func(w io.Writer, o report.TextOptions) error { return report.WriteChanges(w, c, p.format, o) })
	if err == nil && c.Weaker() {
		err = command.Exit(exitFound)
	}
	return err
}

// listRows prints the rows that would be played.
func (a *app) listRows(p prover) error {
	rows, err := p.selection.Rows(probe.All())
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		core := "-"
		if r.Core {
			core = "core"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Class, cmp.Or(string(r.Promise), "-"), core, r.Title)
	}
	return t.Flush()
}
