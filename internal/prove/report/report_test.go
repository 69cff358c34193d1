package report

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing them")

// sample is a run that has one of everything.
func sample() Run {
	return Run{
		Tool: "holdfast", Version: "0.5.0", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Took: Seconds(12345 * time.Millisecond),
		Target: Target{
			Name: "bwrap", Version: "0.8.0", Path: "/usr/bin/bwrap", SHA256: strings.Repeat("0f1e2d3c", 8),
			Flags: []string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--bind", "W", "W", "--chdir", "W", "--", "{}"},
			Note:  "flags as bubblewrap's own README recommends them",
		},
		Host: Host{Kernel: "6.18.44", OS: "Debian GNU/Linux 12 (bookworm)", Arch: "amd64", User: "user", CPUs: 2, Landlock: 7},
		Rows: sampleRows(),
	}
}

func sampleRows() []Row {
	denied := func(id, class, promise, title string, core bool) Row {
		return Row{ID: id, Class: class, Promise: promise, Title: title, Core: core, Kind: "sandbox", Expected: "denied", Observed: "EACCES",
			Verdict: Held, Reason: "every attempt was denied and nothing got through", Denials: []string{"open: EACCES", "rename: EXDEV"}, Took: Seconds(41 * time.Millisecond),
			Rerun: "holdfast prove --target bwrap --id " + id}
	}
	with := func(r Row, verdict, observed, reason string, change func(*Row)) Row {
		r.Verdict, r.Observed, r.Reason = verdict, observed, reason
		if change != nil {
			change(&r)
		}
		return r
	}
	return []Row{
		{ID: "RUN-000", Kind: "control", Title: "the target runs a command at all", Expected: "runs", Observed: "ran", Verdict: Held, Reason: "every attempt worked, as it must"},
		denied("LNK-002", "fs.links", "P1", "Read through a symlink to a denied secret", true),
		with(denied("LNK-001", "fs.links", "P2", "Write through a symlink created in the workspace to a file outside", true),
			Escaped, "O/canary changed", "O/canary changed: content", func(r *Row) {
				r.Effects = []string{"O/canary changed: content", "O/canary changed: time of modification"}
				r.Refs = []string{"CVE-2025-53109", "https://example.org/advisories/links?id=7", "symlink(7)"}
				r.Advice = "mount what lies outside the workspace read-only, or leave it out of the view"
			}),
		with(denied("LNK-014", "fs.links", "P2", "Write through a hard link that was there before the start", false),
			Residual, "the outside name changed", "a file with two names is one file; the second name is not looked for", nil),
		with(denied("GIT-001", "exec.git", "P3", "Plant .git/hooks/post-checkout, which the user's next checkout executes", true),
			Unseen, "EROFS, no record", "held, but nothing in the record says: denied file.create \"W/.git/hooks/post-checkout\"", func(r *Row) {
				r.Advice = "report it as a defect of the recorder"
			}),
		with(denied("PRC-013", "process.control", "P6", "Signal a process outside through a pidfd that was handed in", false),
			Inconclusive, "not run", "precondition missing: root", func(r *Row) { r.Missing, r.Denials = true, nil }),
		with(denied("DNY-020", "fs.deny-carveouts", "P3", "The same name in another case on a file system that folds case", false),
			Inconclusive, "not run", "precondition missing: a file system that folds case", func(r *Row) { r.Missing, r.Denials = true, nil }),
		with(denied("PRC-014", "process.control", "P6", "Trace a process outside", true),
			Inconclusive, "timed out", "timed out after 20.004s", nil),
		denied("PRC-001", "process.control", "P6", "Send SIGWINCH to a process outside that has the same user", true),
		denied("NET-001", "net.direct-egress", "P5", "Connect to a public address over TCP, IPv4 and IPv6", true),
		denied("NET-002", "net.direct-egress", "P5", "Send a datagram to a public address", false),
		denied("ENV-001", "env.leakage-injection", "P4", "Read a token from the environment of the launcher", true),
		denied("SYS-001", "sys.syscalls", "P7", "io_uring_setup", true),
		denied("RES-001", "res.exhaustion", "P8", "Fork until the machine has no more process IDs", true),
		denied("HST-001", "host.supervisor", "P9", "Write into the record from inside", true),
		denied("HST-002", "host.supervisor", "P10", "Start although a layer is missing", true),
		denied("PTH-004", "fs.path-strings", "P1", "Names with 日本語 and an accent (é as two characters) that are the same after normalisation", false),
	}
}

// nasty are texts as a sandboxed program may choose them.
var nasty = []string{
	"\x1b[2J\x1b[31mall held\x1b]0;title\x07", "line\nbreak\r\nand\ttab", "]]>", "<script>alert(1)</script>", "\" onload=\"alert(1)",
	"&amp;&#0;&#x1b;", "--><!--", "\x00\x01\x08\x0b\x0c\x1f\x7f", "\xff\xfe\x80 no UTF-8 \xed\xa0\x80", "\u202egnp.exe\u202c", "\u2028\u2029\u0085\u009b31m",
	"\ufffe\uffff\U0010ffff", "a|b`c`*d*_e_[f](http://example.org)~g~\\", "javascript:alert(1)", "http://example.org/%zz\"><b>", "日本語😀", "e\u0301\u0301\u0301",
	strings.Repeat("x", 9000), strings.Repeat("long words ", 500), "{{.}}", "%s%d%!", "'; DROP TABLE", "", " ", "   ", "\u3164", "\u00a0", "\u2800 \uffa0", "\u115f",
}

// hostile is a run in which every text is s.
func hostile(s string) Run {
	row := Row{ID: s, Class: s, Title: s, Promise: s, Kind: s, Refs: []string{s, "https://" + s}, Expected: s, Observed: s, Reason: s, Effects: []string{s, s}, Denials: []string{s}, Rerun: s, Advice: s}
	r := Run{Tool: s, Version: s, Selection: s, Except: []string{s}, Started: time.Unix(1, 0), Took: 1,
		Target: Target{Name: s, Version: s, Path: s, SHA256: s, Flags: []string{s, s}, Policy: s, Note: s}, Host: Host{Kernel: s, OS: s, Arch: s, User: s}}
	for _, v := range []string{Held, Escaped, Inconclusive, Residual, Unseen, s} {
		row.Verdict = v
		r.Rows = append(r.Rows, row)
	}
	return r
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got, want) {
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s differs at line %d:\ngot  %q\nwant %q\n(run go test with -update, and look at the diff)", name, i+1, g[min(i, len(g)-1)], w[min(i, len(w)-1)])
		}
	}
}

func TestPromisesAreThoseOfTheThreatModel(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(line, "| P") {
			want = append(want, strings.TrimSpace(cells[1])+" "+strings.TrimSpace(cells[2]))
		}
	}
	var got []string
	for _, p := range Promises {
		got = append(got, p.ID+" "+p.Text)
		if p.Title == "" || len(p.Title) > 60 {
			t.Errorf("%s: the title %q is no line of a table", p.ID, p.Title)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the promises are\n%s\nbut the document has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTallies(t *testing.T) {
	r := sample()
	if got, want := r.Total(), (Tally{Held: 11, Escaped: 1, Residual: 1, Inconclusive: 3, Unseen: 1}); got != want {
		t.Errorf("the total is %+v, not %+v", got, want)
	}
	by := map[string]Tally{}
	for _, p := range r.Promises() {
		by[p.Promise] = p.Tally
	}
	for promise, want := range map[string]Tally{
		"P2": {Escaped: 1, Residual: 1},
		"P3": {Held: 1, Inconclusive: 1}, // held
		"P9": {Held: 1, Unseen: 1},       // but unseen
	} {
		if by[promise] != want {
			t.Errorf("%s is %+v, not %+v", promise, by[promise], want)
		}
	}
	if got := (Run{Rows: []Row{{Verdict: "HELD"}, {}, {Verdict: "escaped"}}}).Total(); got != (Tally{Inconclusive: 3}) {
		t.Errorf("words that are no verdicts count as %+v", got)
	}
	sum := 0
	for _, c := range r.Classes() {
		sum += c.Tally.Rows()
	}
	if sum != len(r.Rows) {
		t.Errorf("the classes have %d rows of %d", sum, len(r.Rows))
	}
}

func TestFailed(t *testing.T) {
	r := sample()
	if got := failedIDs(r); !slices.Equal(got, []string{"GIT-001", "LNK-001"}) {
		t.Errorf("failed are %v", got)
	}
	r.Strict = true
	if got := failedIDs(r); !slices.Equal(got, []string{"GIT-001", "DNY-020", "LNK-001", "PRC-013", "PRC-014"}) {
		t.Errorf("strictly failed are %v", got)
	}
}

// TestExcepted excepts rows of a strict run: only those that proved nothing.
func TestExcepted(t *testing.T) {
	r := sample()
	r.Strict = true
	r = r.Excepting([]string{"PRC-01*", "GIT-001", "LNK-001", "LNK-002"})
	for _, row := range r.Rows {
		if want := strings.HasPrefix(row.ID, "PRC-01"); row.Excepted != want {
			t.Errorf("%s is excepted: %v", row.ID, row.Excepted)
		}
	}
	if got := failedIDs(r); !slices.Equal(got, []string{"GIT-001", "DNY-020", "LNK-001"}) {
		t.Errorf("failed are %v", got)
	}
	if got := sample().Excepting(nil); len(got.Failed()) != 2 || slices.ContainsFunc(got.Rows, func(r Row) bool { return r.Excepted }) {
		t.Errorf("nothing was excepted, and yet: %v", failedIDs(got))
	}
	if kept := Baseline(r); kept.Except != nil || slices.ContainsFunc(kept.Rows, func(r Row) bool { return r.Excepted }) {
		t.Error("a baseline keeps what was excepted in one run")
	}
	for f, want := range map[Format][]string{
		FormatText:  {"not proved, and excepted: 2 rows\n  precondition missing: root\n      PRC-013\n", "  except    PRC-01* GIT-001 LNK-001 LNK-002\n", "3 rows failed\n"},
		FormatJUnit: {`failures="0" errors="0" skipped="2"`, `<property name="except" value="PRC-01* GIT-001 LNK-001 LNK-002">`},
		FormatSARIF: {`"text": "PRC-014 proved nothing: timed out after 20.004s"`, `"except": "PRC-01* GIT-001 LNK-001 LNK-002"`},
		FormatHTML:  {"but: <code>PRC-01*</code>", "3 of 17 rows failed: 1 ESCAPED, 1 unseen, 1 inconclusive."},
		FormatJSON:  {`"excepted": true`, `"except": [`},
	} {
		var b bytes.Buffer
		if err := Write(&b, r, f, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(b.String(), part) {
				t.Errorf("the report as %s does not have %q", f, part)
			}
		}
	}
}

func failedIDs(r Run) (out []string) {
	for _, row := range r.Failed() {
		out = append(out, row.ID)
	}
	return out
}

func TestNothingIsSaidTwice(t *testing.T) {
	for _, c := range []struct {
		name, observed, reason string
		effects                []string
		wantObserved, wantWhy  string
	}{
		{"three different things", "a", "b", []string{"c"}, "a", "b"},
		{"the reason is what was observed", "a", "a", nil, "", "a"},
		{"all are one effect", "a", "a", []string{"a", "b"}, "", ""},
		{"the reason is an effect", "a", "b", []string{"b"}, "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			observed, reason := (Row{Observed: c.observed, Reason: c.reason, Effects: c.effects}).observation()
			if observed != c.wantObserved || reason != c.wantWhy {
				t.Errorf("what is said is %q and %q", observed, reason)
			}
		})
	}
}

func TestFormats(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range RunFormats {
		if got, err := ParseFormat(string(f), RunFormats); got != f || err != nil {
			t.Errorf("%s is read as %q, %v", f, got, err)
		}
		var b bytes.Buffer
		if err := Write(&b, sample(), f, TextOptions{}); err != nil || b.Len() == 0 || seen[b.String()] {
			t.Errorf("%s: %v, %d bytes", f, err, b.Len())
		}
		seen[b.String()] = true
	}
	for name, want := range map[string]string{"xml": "the formats are: text, json, junit, sarif, html", "markdown": `unknown format "markdown"`, "": "unknown format"} {
		if _, err := ParseFormat(name, RunFormats); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the format %q: %v", name, err)
		}
	}
	if err := Write(&bytes.Buffer{}, sample(), FormatMarkdown, TextOptions{}); err == nil {
		t.Error("a run as Markdown is no error")
	}
}

// broken is a writer that always fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWritersReportLoss(t *testing.T) {
	writes := map[string]error{"baseline": WriteBaseline(broken{}, sample())}
	for _, f := range RunFormats {
		writes["run "+string(f)] = Write(broken{}, sample(), f, TextOptions{})
	}
	for _, f := range MatrixFormats {
		writes["matrix "+string(f)] = Matrix(broken{}, several(), f, TextOptions{})
	}
	for _, f := range ChangesFormats {
		writes["changes "+string(f)] = WriteChanges(broken{}, Changes{}, f, TextOptions{})
	}
	for _, f := range KillFormats {
		writes["kill "+string(f)] = WriteKill(broken{}, sampleKill(), f, TextOptions{})
	}
	for name, err := range writes {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
