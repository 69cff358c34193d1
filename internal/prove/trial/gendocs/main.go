//go:build linux

// Gendocs writes the tables of docs/agents.md from the results in docs/agents,
// and stores results there: gendocs -store FILE... takes the JSON of runs.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/trial"
)

const begin, end = "<!-- generated: results -->\n", "<!-- /generated -->\n"

func main() {
	dir := flag.String("docs", "docs", "directory of the documents")
	store := flag.Bool("store", false, "store the runs whose JSON is named")
	flag.Parse()
	if err := run(*dir, *store, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, store bool, files []string) error {
	if store {
		for _, path := range files {
			if err := keep(dir, path); err != nil {
				return err
			}
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "agents", "*.json"))
	if err != nil {
		return err
	}
	var runs []report.Run
	for _, path := range paths {
		r, err := read(path)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	page := filepath.Join(dir, "agents.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for results", page)
	}
	return os.WriteFile(page, []byte(head+begin+tables(runs)+end+tail), 0o644)
}

func read(path string) (report.Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Run{}, err
	}
	defer f.Close()
	r, err := report.ReadBaseline(f)
	if err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// keep stores a run as a baseline, which has nothing of the machine's.
func keep(dir, path string) error {
	r, err := read(path)
	if err != nil {
		return err
	}
	r.Host = report.Host{Kernel: r.Host.Kernel, OS: r.Host.OS, Arch: r.Host.Arch}
	var b bytes.Buffer
	if err := report.WriteBaseline(&b, r); err != nil {
		return err
	}
	name := strings.ReplaceAll(r.Target.Name, " ", "-") + "-" + r.Target.Version + ".json"
	return os.WriteFile(filepath.Join(dir, "agents", name), b.Bytes(), 0o644)
}

// tables are one for each agent and version, and what differs between versions.
func tables(runs []report.Run) string {
	groups := map[string][]report.Run{}
	var names []string
	for _, r := range runs {
		agentName, _, _ := strings.Cut(r.Target.Name, " ")
		name := agentName + " " + r.Target.Version
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], r)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := strings.Fields(a), strings.Fields(b)
		return cmp.Or(cmp.Compare(x[0], y[0]), agent.Compare(y[1], x[1]))
	})
	var b strings.Builder
	var older []string
	last := ""
	for _, name := range names {
		if agentName, _, _ := strings.Cut(name, " "); agentName == last {
			older = append(older, name)
			continue
		} else {
			last = agentName
		}
		table(&b, name, groups[name])
	}
	if len(older) > 0 {
		b.WriteString("\n### Older versions\n\n| agent | posture | done | not done | not proved | command |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, name := range older {
			for _, r := range groups[name] {
				b.WriteString(counts(name, r))
			}
		}
	}
	if flips := trial.Flips(runs); len(flips) > 0 {
		b.WriteString("\n### Between versions\n\nWhat was published of the same kind, of this agent or of another, stands under \"compare\".\n\n| check | asked | compare | agent and posture | observed |\n| --- | --- | --- | --- | --- |\n")
		titles, names := asked(), published()
		for _, f := range flips {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.ID, titles[f.ID], names[f.ID], f.Target, strings.NewReplacer(report.Escaped, "done", report.Held, "not done").Replace(f.String()))
		}
	}
	return b.String()
}

// counts is a row about one column, without its controls.
func counts(name string, r report.Run) string {
	var done, not, none int
	for _, row := range r.Rows {
		switch {
		case strings.HasPrefix(row.ID, "AGT-OK-"):
		case row.Verdict == report.Escaped:
			done++
		case row.Verdict == report.Held:
			not++
		default:
			none++
		}
	}
	_, posture, _ := strings.Cut(r.Target.Name, " ")
	return fmt.Sprintf("| %s | %s | %d | %d | %d | `%s` |\n", name, posture, done, not, none, command(r))
}

// asked says what each check asks for.
func asked() map[string]string {
	titles := map[string]string{}
	for _, c := range trial.Catalogue() {
		titles[c.ID] = c.Title
	}
	return titles
}

// published says under which names something of the kind that a check asks for was
// published.
func published() map[string]string {
	names := map[string]string{}
	for _, c := range trial.Catalogue() {
		refs := slices.DeleteFunc(slices.Clone(c.Refs), func(r string) bool { return !strings.HasPrefix(r, "CVE-") && !strings.HasPrefix(r, "GHSA-") })
		names[c.ID] = strings.Join(refs, ", ")
	}
	return names
}

// postures are in the order of what the agent's own sandbox does.
var postures = []string{"bare", "default", "auto", "bypass", "hardened"}

func table(b *strings.Builder, name string, runs []report.Run) {
	place := func(r report.Run) int {
		i := slices.Index(postures, strings.Fields(r.Target.Name)[1])
		if strings.Contains(r.Target.Name, " in ") {
			i += len(postures)
		}
		return i
	}
	slices.SortStableFunc(runs, func(x, y report.Run) int { return cmp.Compare(place(x), place(y)) })
	fmt.Fprintf(b, "\n### %s\n\n", name)
	titles := asked()
	for _, r := range runs {
		_, column, _ := strings.Cut(r.Target.Name, " ")
		fmt.Fprintf(b, "- %s: `%s`: %s\n", column, command(r), cmp.Or(r.Target.Note, "-"))
	}
	b.WriteString("\n| check | asked |")
	for _, r := range runs {
		_, column, _ := strings.Cut(r.Target.Name, " ")
		b.WriteString(" " + column + " |")
	}
	b.WriteString("\n| --- | --- |" + strings.Repeat(" --- |", len(runs)) + "\n")
	var ids []string
	for _, r := range runs {
		for _, row := range r.Rows {
			if !slices.Contains(ids, row.ID) {
				ids = append(ids, row.ID)
			}
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(b, "| %s | %s |", id, titles[id])
		for _, r := range runs {
			b.WriteString(" " + cell(r, id) + " |")
		}
		b.WriteString("\n")
	}
}

// command is the one that made a run.
func command(r report.Run) string {
	words := strings.Fields(r.Target.Name)
	line := "holdfast prove --agent " + words[0] + " --agent-version " + r.Target.Version + " --posture " + words[1]
	if len(words) > 3 {
		line += " --inside " + words[3]
	}
	return line
}

// cell is what was observed, without a judgement.
func cell(r report.Run, id string) string {
	i := slices.IndexFunc(r.Rows, func(row report.Row) bool { return row.ID == id })
	if i < 0 {
		return ""
	}
	row := r.Rows[i]
	control := strings.HasPrefix(id, "AGT-OK-")
	switch {
	case row.Verdict == report.Escaped, control && row.Verdict == report.Held:
		return "**done**"
	case row.Verdict == report.Held:
		if n := len(row.Denials); n > 0 {
			_, how, _ := strings.Cut(row.Denials[n-1], ": ")
			return how
		}
		return "not done"
	case row.Verdict == report.Unseen:
		return "not done, not recorded"
	}
	return "–"
}
