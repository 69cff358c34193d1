//go:build linux

package probe

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// TestEveryRowSaysWhatIsSeen: contained is not enough.
func TestEveryRowSaysWhatIsSeen(t *testing.T) {
	known := rules(t)
	for _, r := range All() {
		switch {
		case len(r.Trace.Events)+len(r.Trace.Rules) == 0 && r.Trace.None == "": // not yet decided what must be seen
			t.Errorf("%s does not say what must stand in the record, or why nothing can", r.ID)
		case r.Trace.None != "" && len(r.Trace.Events)+len(r.Trace.Rules) > 0:
			t.Errorf("%s says that nothing can be seen, and what must be", r.ID)
		case r.Trace.None != "" && len(r.Trace.None) < 40:
			t.Errorf("%s: %q is no reason", r.ID, r.Trace.None)
		}
		for _, e := range r.Trace.Events {
			if e.Action+e.Object+e.Arg == "" {
				t.Errorf("%s: any event would do", r.ID)
			}
		}
		for _, rule := range r.Trace.Rules {
			if !known[rule] {
				t.Errorf("%s: there is no rule %s", r.ID, rule)
			}
		}
	}
}

// rules returns the IDs of the product's rules.
func rules(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../../detect/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	found := map[string]bool{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^- id: (\S+)$`).FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
	}
	return found
}

// keeper is a pretender that keeps a record with those lines.
type keeper struct {
	pretender
	lines []string
	kept  bool
}

func (k keeper) KeepsRecord() bool          { return k.kept }
func (keeper) Reader() string               { return "" }
func (keeper) Story(*World) ([]byte, error) { return nil, nil }
func (k keeper) Recording(string) Target    { return k }

func (k keeper) Logs(w *World) []string {
	path := w.Path("H/log.jsonl")
	text := strings.ReplaceAll(strings.Join(k.lines, "\n"), "O/", w.O+"/")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return []string{"/no/such/log"}
	}
	return []string{path}
}

func (k keeper) Record(w *World) (Record, error) { return Record{Path: k.Logs(w)[0]}, nil }

func TestUnseen(t *testing.T) {
	write := `{"action":"file.write","object":"O/canary","verdict":"denied","layer":"view"}`
	alert := `{"action":"alert.raise","object":"credential-denied","verdict":"allowed"}`
	socket := `{"action":"sock.connect","object":"unix:O/s-12","verdict":"denied"}`
	want := Trace{Events: []Attempt{{Action: "file.write", Object: "O/canary", Verdict: "denied", Layer: "view"}, {Action: "sock.connect", Object: "unix:O/s-*"}},
		Rules: []string{"credential-denied"}}
	polite := pretender(polite)
	for _, c := range []struct {
		name   string
		target Target
		trace  Trace
		want   Verdict
		reason string
	}{
		{"all of it", keeper{polite, []string{write, alert, socket}, true}, want, Held, ""},
		{"no event", keeper{polite, []string{alert, socket}, true}, want, Unseen, "file.write"},
		{"it was allowed", keeper{polite, []string{strings.Replace(write, "denied", "allowed", 1), alert, socket}, true}, want, Unseen, "file.write"},
		{"by another layer", keeper{polite, []string{strings.Replace(write, "view", "readonly", 1), alert, socket}, true}, want, Unseen, "file.write"},
		{"another file", keeper{polite, []string{strings.Replace(write, "canary", "canary2", 1), alert, socket}, true}, want, Unseen, "file.write"},
		{"no alert", keeper{polite, []string{write, socket}, true}, want, Unseen, "credential-denied"},
		{"another socket", keeper{polite, []string{write, alert, strings.Replace(socket, "s-12", "t-12", 1)}, true}, want, Unseen, "sock.connect"},
		{"an empty record", keeper{polite, nil, true}, want, Unseen, "file.write"},
		{"nothing can be seen", keeper{polite, nil, true}, nothing("it is so"), Held, ""},
		{"a target that keeps no record", polite, want, Held, ""},
		{"one that was told to keep none", keeper{polite, nil, false}, want, Held, ""},
		{"a record that is none", keeper{polite, []string{write[:len(write)-1]}, true}, want, Inconclusive, "cannot be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Row{ID: "TRC-000", Kind: Sandbox, Action: "nothing", Trace: c.trace}
			res := Runner{Prober: os.Args[0], Dir: t.TempDir()}.Play(t.Context(), c.target, r)
			if res.Verdict != c.want || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("%v (%s), want %v with %q", res.Verdict, res.Reason, c.want, c.reason)
			}
		})
	}
}

// TestALimitThatEndsARunIsSeen: of a command that a limit ended before it had tried
// everything, that end is what must be seen.
func TestALimitThatEndsARunIsSeen(t *testing.T) {
	tried := `{"action":"file.mkdir","object":"O/first","verdict":"allowed"}`
	limit := `{"action":"session.limit","object":"disk limit of 16MiB","verdict":"denied"}`
	alert := `{"action":"alert.raise","object":"limit","verdict":"allowed"}`
	both := did("file.mkdir", "O/first", "O/second")
	for _, c := range []struct {
		name   string
		lines  []string
		trace  Trace
		want   Verdict
		reason string
	}{
		{"the end stands there", []string{tried, limit, alert}, both, Held, ""},
		{"the end raised no alert", []string{tried, limit}, both, Unseen, "limit"},
		{"nothing says why it ended", []string{tried}, both, Unseen, "session.limit"},
		{"the row names the limit itself, and something before it", []string{limit, alert}, trail(did("file.mkdir", "O/first"), overLimit("disk*")), Unseen, "file.mkdir"},
		{"nothing of the row can be seen", nil, nothing("it is so"), Held, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			target := keeper{func(w *World, nonce string) Observation {
				if runs++; runs == 1 {
					return begun(w, nonce)
				}
				return polite(w, nonce)
			}, c.lines, true}
			r := Row{ID: "TRC-000", Kind: Sandbox, Action: "nothing", Trace: c.trace, Drive: cutShort(nil)}
			res := Runner{Prober: os.Args[0], Dir: t.TempDir()}.Play(t.Context(), target, r)
			if res.Verdict != c.want || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("%v (%s), want %v with %q", res.Verdict, res.Reason, c.want, c.reason)
			}
		})
	}
}

// TestRacesAreReal: a race that was hardly tried, or whose window is unknown,
// proves nothing.
func TestRacesAreReal(t *testing.T) {
	race := func(count int, honest int64) pretender {
		return func(w *World, nonce string) Observation {
			polite(w, nonce)
			return Observation{Stdout: lines(w, nonce, inside.Report{Attempt: "race", Errno: "EPERM", Count: count, Honest: honest})}
		}
	}
	for _, c := range []struct {
		name   string
		target pretender
		least  int
		want   Verdict
		reason string
	}{
		{"often enough", race(50, 1), 50, Held, ""},
		{"too seldom", race(49, 1), 50, Inconclusive, "raced 49 times"},
		{"the honest way was not timed", race(50, 0), 50, Inconclusive, "not timed"},
		{"no race at all", polite, 50, Inconclusive, "nothing was raced"},
		{"a row that is no race", polite, 0, Held, ""},
		{"a race of which nobody says how often", race(50, 1), 0, Inconclusive, "does not say how often"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Row{ID: "RCE-000", Kind: Sandbox, Action: "nothing", Least: c.least}
			res := Runner{Prober: os.Args[0], Dir: t.TempDir()}.Play(t.Context(), c.target, r)
			if res.Verdict != c.want || !strings.Contains(res.Reason, c.reason) {
				t.Errorf("%v (%s), want %v with %q", res.Verdict, res.Reason, c.want, c.reason)
			}
		})
	}
}

// TestTheOtherRunIsNotTheRow: what a second run beside the row did does not show
// whether the row's own run was started.
func TestTheOtherRunIsNotTheRow(t *testing.T) {
	beside, refused := Observation{}, Observation{Refused: true}
	for _, c := range []struct {
		beside *Command
		obs    []Observation
		want   bool
	}{
		{&Command{Action: "roam"}, []Observation{beside, refused}, true},
		{&Command{Action: "roam"}, []Observation{beside, {}}, false},
		{nil, []Observation{beside, refused}, false},
	} {
		if s := (&Session{Row: Row{Beside: c.beside}, obs: c.obs}); s.allRefused() != c.want {
			t.Errorf("all of %+v was refused: want %v", c.obs, c.want)
		}
	}
}

// judged is a target whose record has that verdict.
type judged struct {
	keeper
	rec Record
}

func (j judged) Record(*World) (Record, error) { return j.rec, nil }

// TestSummarised: a record may declare that it only counted, and nothing else.
func TestSummarised(t *testing.T) {
	counted := "record 7: so many different names were asked for at once that some are only counted"
	for _, c := range []struct {
		verdict, why string
		problems     int
	}{
		{"COMPLETE", "", 0},
		{"PARTIAL", "2 things\n" + counted + "\nrecord 2: " + hostLacks, 0},
		{"GAPS", "3 things\n5 events stand summarised\n" + counted + "\nevents were lost", 1},
		{"TAMPERED", "a line was changed", 1},
	} {
		w := &World{target: judged{rec: Record{Verdict: c.verdict, Why: c.why}}}
		if got := summarised(w, Observation{}); len(got) != c.problems {
			t.Errorf("%s: %q, want %d", c.verdict, got, c.problems)
		}
	}
}

// TestByStat: what only stat(2) asks for may be missing from a record that
// declares that it does not see look-ups, and from no other; everything else must
// be there.
func TestByStat(t *testing.T) {
	blind := `{"action":"record.blind","object":"lookups"}`
	write := `{"action":"file.write","object":"O/canary","verdict":"denied","layer":"view"}`
	want := trail(refused("view", "file.write", "O/canary"), byStat(trail(refused("view", "file.lookup", "O"), raised("credential-denied"))))
	for _, c := range []struct {
		lines  []string
		want   Verdict
		reason string
	}{
		{[]string{blind, write}, Held, ""},
		{[]string{write}, Unseen, "credential-denied"},
		{[]string{blind}, Unseen, "file.write"},
	} {
		r := Row{ID: "TRC-000", Kind: Sandbox, Action: "nothing", Trace: want}
		res := Runner{Prober: os.Args[0], Dir: t.TempDir()}.Play(t.Context(), keeper{pretender(polite), c.lines, true}, r)
		if res.Verdict != c.want || !strings.Contains(res.Reason, c.reason) {
			t.Errorf("%q: %v (%s), want %v with %q", c.lines, res.Verdict, res.Reason, c.want, c.reason)
		}
	}
}

// trail joins what must be seen of one row.
func trail(parts ...Trace) (t Trace) {
	for _, p := range parts {
		t.Events, t.Rules = append(t.Events, p.Events...), append(t.Rules, p.Rules...)
	}
	return t
}

// overLimit is the end of a run by one of its limits, which raises an alert.
func overLimit(limit string) Trace {
	return trail(did(sessionLimit, limit), raised("limit"))
}

// refused is the same attempt on each of the objects, denied by that layer.
func refused(layer, action string, objects ...string) (t Trace) {
	for _, o := range objects {
		t.Events = append(t.Events, Attempt{Action: action, Object: o, Verdict: "denied", Layer: layer})
	}
	return t
}

// did is the same attempt on each of the objects, with any outcome: the path is
// private, or the kernel answers on its own.
func did(action string, objects ...string) (t Trace) {
	for _, o := range objects {
		t.Events = append(t.Events, Attempt{Action: action, Object: o})
	}
	return t
}

// byStat returns t as events that may be missing from a record that declares that
// it does not see look-ups: a program asks with stat(2) or the like, gets ENOENT,
// and stops there. Reporting each one would make git and compilers wait for the
// supervisor at every file.
func byStat(t Trace) (out Trace) {
	for _, a := range t.Events {
		a.ByStat = true
		out.Events = append(out.Events, a)
	}
	for _, r := range t.Rules {
		out.Events = append(out.Events, Attempt{Action: alertRaise, Object: r, ByStat: true})
	}
	return out
}

// raised are rules that must have raised an alert.
func raised(rules ...string) Trace { return Trace{Rules: rules} }

// nothing is the reason why no record can show anything of a row.
func nothing(why string) Trace { return Trace{None: why} }
