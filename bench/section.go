package main

import (
	"fmt"
	"strings"
	"time"
)

// reportTitle begins the file of the report.
const reportTitle = "# Speed and memory\n\nWritten by `go run ./bench`; do not edit (reasons of missed goals belong into bench/notes.go).\n"

// section is a part of the report that can be measured by itself.
type section struct {
	title    string
	only     string // its name for -only
	date     time.Time
	user     string
	load     [2]string // before and after
	versions []string
	machine  string
	quick    bool
	intro    []string
	absent   string // why nothing was measured; "" if it was
	verdicts []verdict
	tables   []captioned
	remarks  []string
	failed   []string // what should have been measured, but failed
}

// captioned is a table with its heading.
type captioned struct {
	caption, text string
	table         table
}

func (s *section) fail(format string, arg ...any) {
	s.failed = append(s.failed, strings.Join(strings.Fields(fmt.Sprintf(format, arg...)), " "))
}

func (s *section) heading() string { return "\n# " + s.title + "\n" }

func (s *section) troubles() (failed int, absent bool) { return len(s.failed), s.absent != "" }

func (s *section) markdown() string {
	var b strings.Builder
	b.WriteString(s.heading() + "\nWritten by `go run ./bench`, by itself with `-only " + s.only + "`.\n\n")
	if s.quick {
		b.WriteString("**A quick run with small inputs and few rounds: it shows that the programs work, and its figures mean nothing.**\n\n")
	}
	if s.absent != "" {
		b.WriteString("Not measured here: " + s.absent + ".\n")
		return b.String()
	}
	fmt.Fprintf(&b, "- Machine: %s\n- Load before and after: %s, %s\n- Versions: %s\n- Everything ran as %s, %s.\n",
		s.machine, s.load[0], s.load[1], strings.Join(s.versions, "; "), s.user, s.date.Format("2006-01-02 15:04 MST"))
	for _, line := range s.intro {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n## Goals: " + s.only + "\n\n" + s.goals())
	for _, t := range s.tables {
		b.WriteString("\n## " + t.caption + "\n\n")
		if t.text != "" {
			b.WriteString(t.text + "\n\n")
		}
		if len(t.table.header) > 0 {
			b.WriteString(t.table.String())
		}
	}
	if len(s.remarks) > 0 {
		b.WriteString("\n## Remarks: " + s.only + "\n\n")
		for _, line := range s.remarks {
			b.WriteString("- " + line + "\n")
		}
	}
	return b.String()
}

// goals is the table of goals, with the reasons for the missed ones, and what
// failed.
func (s *section) goals() string {
	var failed []string
	for _, f := range s.failed {
		failed = append(failed, "FAILED: "+f)
	}
	return goalTable(s.verdicts, failed)
}

// withPart replaces the part of a report that begins with heading, or adds it.
func withPart(report, heading, part string) string {
	i := strings.Index(report, heading)
	if i < 0 {
		return report + part
	}
	rest := report[i+len(heading):]
	if j := strings.Index(rest, "\n# "); j >= 0 {
		return report[:i] + part + rest[j:]
	}
	return report[:i] + part
}
