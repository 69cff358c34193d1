package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Baseline is the part of r that a baseline keeps: what was tried, by what and
// where, and for each row its verdict and how it failed. It contains no times,
// nor anything else that differs between equal runs.
func Baseline(r Run) Run {
	out := Run{Schema: Schema, Kind: kindBaseline, Tool: r.Tool, Version: r.Version, Selection: r.Selection, Target: r.Target}
	out.Host = Host{Kernel: r.Host.Kernel, OS: r.Host.OS, Arch: r.Host.Arch, User: r.Host.User, Landlock: r.Host.Landlock}
	for _, row := range r.Rows {
		kept := Row{ID: row.ID, Class: row.Class, Verdict: row.judged(), Denials: ordered(row.Denials), Missing: row.Missing}
		if kept.Verdict == Inconclusive {
			kept.Reason = steady(row.Reason)
		}
		out.Rows = append(out.Rows, kept)
	}
	slices.SortStableFunc(out.Rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// ordered sorts texts and removes duplicates.
func ordered(texts []string) []string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// pattern compiles an expression at its first use, because every start of the
// program initialises this package.
func pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// passing are the parts of a reason that differ between runs or users: paths
// below temporary directories and homes, times, addresses, PIDs and ports.
// Numbers of three digits stay, because statuses have them.
var passing = pattern(`/(tmp|run|proc|home|root|dev/shm|var/tmp)/[^\s:"',;)]+|0x[0-9a-f]+|\b[0-9a-f]{8,}\b|(\d+(\.\d+)?(ns|µs|ms|s|m|h))+\b|\d{4,}`)

// steady is a reason without what differs between runs. It is idempotent.
func steady(reason string) string { return passing().ReplaceAllString(reason, "N") }

// WriteBaseline writes the baseline of r as JSON that can be committed: one row
// per line, in the order of the IDs.
func WriteBaseline(w io.Writer, r Run) error {
	base := Baseline(r)
	rows := base.Rows
	base.Rows = []Row{}
	head, err := json.MarshalIndent(base, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding a baseline: %w", err)
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("[]\n}")))
	b.WriteString("[")
	for i, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			return fmt.Errorf("encoding row %q: %w", row.ID, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(line)
	}
	b.WriteString("\n  ]\n}\n")
	_, err = w.Write(visible(b.Bytes()))
	return err
}

// ReadBaseline reads a baseline, or makes one of a run in JSON. It is as strict
// as ReadJSON, and requires unique IDs.
func ReadBaseline(in io.Reader) (Run, error) {
	r, err := readRun(in)
	if err != nil {
		return Run{}, fmt.Errorf("reading a baseline: %w", err)
	}
	r = Baseline(r)
	for i, row := range r.Rows {
		if i > 0 && r.Rows[i-1].ID == row.ID {
			return Run{}, fmt.Errorf("reading a baseline: row %.40q appears twice", row.ID)
		}
	}
	return r, nil
}

// describeOutcome describes how a row came out, for the comparison with another run.
func (r Row) describeOutcome() []string {
	how := ordered(r.Denials)
	if r.judged() == Inconclusive && r.Reason != "" {
		how = append(how, "because "+strings.TrimSpace(steady(r.Reason)))
	}
	return how
}
