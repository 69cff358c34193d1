package report

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// The elements of JUnit XML, as both Jenkins' schema and the narrower one of
// Ant's task define them: what they disagree about is left out. Ant's requires
// every attribute here, and allows at most one child of a case.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Package    string          `xml:"package,attr"`
		ID         int             `xml:"id,attr"`
		Name       string          `xml:"name,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Hostname   string          `xml:"hostname,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
		Out        string          `xml:"system-out"`
		Err        string          `xml:"system-err"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Time    string        `xml:"time,attr"`
		Skipped *string       `xml:"skipped"`
		Error   *junitProblem `xml:"error"`
		Failure *junitProblem `xml:"failure"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes r as JUnit XML, one suite per class. A row that escaped or was
// unseen is a failure. One that proved nothing is skipped, or an error if r is
// strict and does not except it. A residual passes, and the output of its suite
// says so.
func JUnit(w io.Writer, r Run) error {
	var doc junitSuites
	rows := r.sorted()
	for _, class := range r.Classes() {
		n := class.Tally.Rows()
		suite := r.suite(className(class.Class), rows[:n])
		suite.ID = len(doc.Suites)
		doc.Suites = append(doc.Suites, suite)
		rows = rows[n:]
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("encoding JUnit XML: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

func (r Run) suite(class string, rows []Row) junitSuite {
	s := junitSuite{
		Package: token(r.Target.Name, "target"), Name: token(class, start), Hostname: "localhost", Tests: len(rows),
		Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), Properties: r.properties(),
	}
	var took Seconds
	var out []string
	for _, row := range rows {
		c := junitCase{Name: token(row.ID+" "+row.Title, "row"), Class: s.Package + "." + s.Name, Time: row.Took.decimal()}
		took += row.Took
		switch verdict := row.judged(); {
		case verdict == Escaped || verdict == Unseen:
			c.Failure = row.problem(verdict)
			s.Failures++
		case row.Fails(r.Strict):
			c.Error = row.problem(verdict)
			s.Errors++
		case verdict == Inconclusive:
			why := document.Clean(row.Reason)
			c.Skipped = &why
			s.Skipped++
		case verdict == Residual:
			out = append(out, document.Clean(row.ID)+": known to get through: "+document.Clean(row.Reason))
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time, s.Out = took.decimal(), strings.Join(out, "\n")
	return s
}

// problem describes a row that fails.
func (r Row) problem(verdict string) *junitProblem {
	var lines []string
	for _, part := range []struct {
		label string
		texts []string
	}{
		{"expected", []string{r.Expected}}, {"observed", []string{r.Observed}}, {"seen", r.Effects}, {"attempt", r.Denials},
		{"reference", r.Refs}, {"do", []string{r.Advice}}, {"again", []string{r.Rerun}},
	} {
		for _, text := range document.CleanAll(part.texts) {
			lines = append(lines, part.label+": "+text)
		}
	}
	return &junitProblem{Message: cmp.Or(document.Clean(r.Reason), verdict), Type: verdict, Text: strings.Join(lines, "\n")}
}

// properties say what was tried, and where.
func (r Run) properties() []junitProperty {
	all := []junitProperty{{"target", document.Clean(r.Target.Name)}}
	for _, p := range []junitProperty{
		{"target.version", r.Target.Version}, {"target.path", r.Target.Path}, {"target.sha256", r.Target.SHA256}, {"target.called", r.Target.commandLine()},
		{"target.policy", r.Target.Policy}, {"host.kernel", r.Host.Kernel}, {"host.os", r.Host.OS}, {"host.arch", r.Host.Arch}, {"host.user", r.Host.User},
		{"tool", strings.TrimSpace(r.Tool + " " + r.Version)}, {"rows", r.Selection}, {"except", strings.Join(r.Except, " ")},
	} {
		if p.Value = document.Clean(p.Value); p.Value != "" {
			all = append(all, p)
		}
	}
	return all
}

// token is s as a non-empty attribute: nothing replaces an empty text.
func token(s, nothing string) string { return cmp.Or(strings.TrimSpace(document.Clean(s)), nothing) }
