package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// later is the sample after an update of the target: one row of each change.
func later() Run {
	r := sample()
	r.Target.Version, r.Target.SHA256, r.Host.CPUs = "0.9.0", strings.Repeat("aa", 32), 64
	r.Started, r.Took = r.Started.Add(time.Hour), r.Took*2
	rows := r.Rows[:0]
	for _, row := range r.Rows {
		row.Took *= 3
		switch row.ID {
		case "SYS-001": // weaker
			row.Verdict, row.Observed, row.Reason, row.Denials = Escaped, "io_uring_setup worked", "io_uring_setup worked", []string{"io_uring_setup: done"}
		case "NET-002": // no longer proved
			row.Verdict, row.Reason = Inconclusive, "the action never ran (status 127): sh: not found"
		case "ENV-001": // now the host lacks something
			row.Verdict, row.Reason, row.Missing = Inconclusive, "precondition missing: bash", true
		case "LNK-001": // better
			row.Verdict, row.Reason, row.Effects = Held, "every attempt was denied and nothing got through", nil
		case "PTH-004": // fails in another way
			row.Denials = []string{"open: ENOENT", "rename: EXDEV"}
		case "PRC-014": // the same but for a time
			row.Reason = "timed out after 19.998s"
		case "RES-001": // missing
			continue
		}
		rows = append(rows, row)
	}
	r.Rows = append(rows, Row{ID: "NEW-001", Class: "fs.links", Title: "A row that is new", Verdict: Escaped, Reason: "it got through"})
	return r
}

func changed(all []Change) (ids []string) {
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestCompare(t *testing.T) {
	c := Compare(Baseline(sample()), later())
	for _, want := range []struct {
		name string
		got  []Change
		ids  string
	}{
		{"weaker", c.Weakened, "NET-002 SYS-001"}, {"better", c.Better, "LNK-001"}, {"changed", c.Changed, "ENV-001 PTH-004"},
		{"new", c.New, "NEW-001"}, {"vanished", c.Vanished, "RES-001"},
	} {
		if got := strings.Join(changed(want.got), " "); got != want.ids {
			t.Errorf("%s are %q, not %q", want.name, got, want.ids)
		}
	}
	if c.Same != 11 || c.Unplayed != 0 || !c.Weaker() {
		t.Errorf("the same are %d, not played %d, weaker is %v", c.Same, c.Unplayed, c.Weaker())
	}
	var fields []string
	for _, d := range c.Identity {
		fields = append(fields, d.Field)
	}
	if !slices.Equal(fields, []string{"version", "sha256"}) {
		t.Errorf("these differ: %v", fields)
	}
	for name, f := range map[string]Format{"changes.txt": FormatText, "changes.json": FormatJSON} {
		golden(t, name, written(t, func(w io.Writer) error { return WriteChanges(w, c, f, TextOptions{Width: 80}) }))
	}
}

func TestCompareOfTheSame(t *testing.T) {
	again := sample()
	slices.Reverse(again.Rows)
	again.Started, again.Took, again.Host.CPUs = time.Time{}, 0, 8
	for name, was := range map[string]Run{"a run": sample(), "a baseline": Baseline(sample())} {
		if c := Compare(was, again); !c.Empty() || c.Same != len(again.Rows) || c.Weaker() {
			t.Errorf("compared with %s: %+v", name, c)
		}
	}
}

// TestVerdictsCompared covers every pair of verdicts.
func TestVerdictsCompared(t *testing.T) {
	const (
		same, weaker, better, other = "same", "weaker", "better", "changed"
	)
	order := []string{Held, Unseen, Residual, Inconclusive, Escaped}
	table := map[string][]string{ // was: is, in that order
		Held:         {same, weaker, weaker, weaker, weaker},
		Unseen:       {better, same, weaker, weaker, weaker},
		Residual:     {better, better, same, other, weaker},
		Inconclusive: {better, better, other, same, weaker},
		Escaped:      {better, better, other, other, same},
	}
	for was, wants := range table {
		for i, is := range order {
			c := Compare(Run{Rows: []Row{{ID: "A", Verdict: was}}}, Run{Rows: []Row{{ID: "A", Verdict: is}}})
			got := map[bool]string{len(c.Weakened) > 0: weaker, len(c.Better) > 0: better, len(c.Changed) > 0: other, c.Same > 0: same}[true]
			if got != wants[i] {
				t.Errorf("%s, then %s is %s, not %s", was, is, got, wants[i])
			}
		}
	}
}

func TestCompareASelection(t *testing.T) {
	now := Run{Selection: "--id A", Rows: []Row{{ID: "A", Verdict: Held}}}
	all := Run{Rows: []Row{{ID: "A", Verdict: Held}, {ID: "B", Verdict: Held}}}
	if c := Compare(all, now); c.Unplayed != 1 || len(c.Vanished) > 0 {
		t.Errorf("rows that were not selected: %d not played, vanished %v", c.Unplayed, changed(c.Vanished))
	}
	all.Selection = now.Selection
	if c := Compare(all, now); c.Unplayed != 0 || len(c.Vanished) != 1 {
		t.Errorf("rows that the same selection no longer has: %d not played, vanished %v", c.Unplayed, changed(c.Vanished))
	}
}

// TestTheWorstOfOneID checks that a held row does not hide an escape with the
// same ID.
func TestTheWorstOfOneID(t *testing.T) {
	for _, rows := range [][]Row{
		{{ID: "A", Verdict: Held}, {ID: "A", Verdict: Escaped}, {ID: "A", Verdict: Inconclusive}},
		{{ID: "A", Verdict: Escaped}, {ID: "A", Verdict: Held}},
	} {
		if c := Compare(Run{Rows: []Row{{ID: "A", Verdict: Held}}}, Run{Rows: rows}); len(c.Weakened) != 1 || c.Same+len(c.New)+len(c.Vanished) != 0 {
			t.Errorf("%v: %+v", rows, c)
		}
	}
}

func TestBaseline(t *testing.T) {
	b := written(t, func(w io.Writer) error { return WriteBaseline(w, sample()) })
	golden(t, "baseline.json", b)
	if again := written(t, func(w io.Writer) error {
		r := later()
		r.Target, r.Rows = sample().Target, sample().Rows
		slices.Reverse(r.Rows)
		for i := range r.Rows {
			r.Rows[i].Took *= 7
			r.Rows[i].Reason = strings.Replace(r.Rows[i].Reason, "20.004s", "1m3.5s", 1)
		}
		return WriteBaseline(w, r)
	}); !bytes.Equal(again, b) {
		t.Errorf("another run of the same has another baseline:\n%s", again)
	}
	r, err := ReadBaseline(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r, Baseline(sample())) {
		t.Errorf("what was read is not what was written: %+v", r)
	}
	if again := written(t, func(w io.Writer) error { return WriteBaseline(w, r) }); !bytes.Equal(again, b) {
		t.Errorf("a baseline of a baseline differs:\n%s", again)
	}
	fromRun, err := ReadBaseline(bytes.NewReader(written(t, func(w io.Writer) error { return JSON(w, sample()) })))
	if err != nil || !reflect.DeepEqual(fromRun, r) {
		t.Errorf("the baseline of a run in JSON is %+v, %v", fromRun, err)
	}
	if n := bytes.Count(b, []byte("\n    {\"id\":")); n != len(sample().Rows) {
		t.Errorf("%d lines begin with a row, not %d", n, len(sample().Rows))
	}
}

func TestReadBaselineWantsEachIDOnce(t *testing.T) {
	b := written(t, func(w io.Writer) error {
		return WriteBaseline(w, Run{Rows: []Row{{ID: "A", Verdict: Held}, {ID: "A", Verdict: Escaped}}})
	})
	if _, err := ReadBaseline(bytes.NewReader(b)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("two rows of one ID: %v", err)
	}
}

func TestSteady(t *testing.T) {
	for was, want := range map[string]string{
		"timed out after 20.004s":                                                  "timed out after N",
		"timed out after 1m3.5s":                                                   "timed out after N",
		"the action never ran (status 127): sh: x: not found":                      "the action never ran (status 127): sh: x: not found",
		"open /tmp/prove-1/w: no such file; pid 4711, port 40001":                  "open N: no such file; pid N, port N",
		"not run: fork/exec /home/you/.cache/p: exec format error":                 "not run: fork/exec N: exec format error",
		"token 0f1e2d3c0f1e at 0xc000012345":                                       "token N at N",
		"precondition missing: /dev/fuse":                                          "precondition missing: /dev/fuse",
		"control failed: W/ok.txt was not written, as seen from outside, 15 times": "control failed: W/ok.txt was not written, as seen from outside, 15 times",
	} {
		if got := steady(was); got != want {
			t.Errorf("%q becomes %q, not %q", was, got, want)
		}
		if again := steady(steady(was)); again != steady(was) {
			t.Errorf("%q becomes %q when it is done twice", was, again)
		}
	}
}

// TestTheSchemaHasWhatTheTypesHave compares names, because the documents might
// not show a field that only one of the two has.
func TestTheSchemaHasWhatTheTypesHave(t *testing.T) {
	b, err := os.ReadFile(proveSchema)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]any{"run": Run{}, "row": Row{}, "target": Target{}, "host": Host{}, "tally": Tally{}, "changes": Changes{}, "change": Change{}, "side": Side{}, "matrix": table{}} {
		var want []string
		for f := range reflect.TypeOf(v).Fields() {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() {
				want = append(want, tag)
			}
		}
		var got []string
		for property := range doc.Defs[name].Properties {
			got = append(got, property)
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the type has %v", name, got, want)
		}
	}
}
