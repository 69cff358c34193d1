package incident

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// made is a report of events, which are numbered and a second apart.
func made(t testing.TB, o Options, f Findings, events []event.Event) (markdown, page string) {
	t.Helper()
	o.Session = "20400102T030405.000-aaaaaaaa"
	b := New(o)
	for i, e := range events {
		e.Seq = uint64(i + 1)
		e.Time = time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(i) * time.Millisecond)
		b.Add(e)
	}
	d := b.Document(f)
	var m, h bytes.Buffer
	if err := d.Markdown(&m); err != nil {
		t.Fatal(err)
	}
	if err := d.HTML(&h); err != nil {
		t.Fatal(err)
	}
	return m.String(), h.String()
}

// hooks is a list of what a host executes.
func hooks(path string) string {
	if strings.HasSuffix(path, "package.json") {
		return "npm runs its scripts"
	}
	if strings.HasSuffix(path, ".envrc") {
		return "direnv sources it"
	}
	return ""
}

var begin = event.Event{Sensor: event.Task, Action: event.SessionStart, Verdict: event.Allowed, Object: "/w", Process: event.Process{Argv: []string{"sh"}}}

// constants are the values of the constants of package event whose name fits.
func constants(t *testing.T, fits func(string) bool) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../floor/event/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && len(spec.Values) == 1 && fits(spec.Names[0].Name) {
			if lit, is := spec.Values[0].(*ast.BasicLit); is && lit.Kind == token.STRING {
				v, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, v)
			}
		}
		return true
	})
	return values
}

func TestEveryLayerAndActionHasWords(t *testing.T) {
	layers := constants(t, func(name string) bool { return strings.HasPrefix(name, "Layer") })
	actions := constants(t, func(name string) bool {
		return !strings.HasPrefix(name, "Layer")
	})
	actions = slices.DeleteFunc(actions, func(s string) bool { return !strings.Contains(s, ".") }) // sensors
	if len(layers) < 10 || len(actions) < 40 {
		t.Fatalf("%d layers and %d actions are known", len(layers), len(actions))
	}
	for _, layer := range layers {
		if layerWords[layer][0] == "" || layerWords[layer][1] == "" {
			t.Errorf("the layer %s has no words", layer)
		}
	}
	for _, action := range actions {
		if !skippedActions[action] && (verbs[action][0] == "" || verbs[action][1] == "") {
			t.Errorf("the action %s has no words", action)
		}
	}
}

// injection contains what is special to Markdown, HTML, a terminal and the eye.
const injection = "x\n# COMPLETE\n- [x] ok [l](http://e.example.org)![i](http://e.example.org)<img src=http://e.example.org>| @team #1 **b** \x1b[31m\u202e\x00\xff"

// everywhere is an event of each action with the text in every place.
func everywhere(t *testing.T, s string) (events []event.Event) {
	t.Helper()
	actions := append(constants(t, func(string) bool { return true }), "made.up")
	for _, action := range actions {
		for _, verdict := range []event.Verdict{event.Unknown, event.Denied, event.Allowed} {
			e := event.Event{Session: s, Sensor: event.Sensor(s), Action: action, Object: s, Resolved: s, Verdict: verdict, Layer: s, Rule: s, Error: s,
				Process: event.Process{PID: 1, Exec: uint64(len(events) + 1), Executable: s, Cwd: s, Argv: []string{s, s}}, Detail: map[string]string{s: s}}
			if verdict == event.Allowed {
				e.Error, e.Layer = "", ""
			}
			for _, k := range strings.Fields("reason severity title explanation technique key events object credential kind method path status in out to to_resolved id by via scope directory grant expires " +
				"outcome operation count of from again mark unknown seen level decision agent arguments call sni door kept") {
				e.Detail[k] = s
			}
			events = append(events, e)
		}
	}
	return events
}

func TestNothingFromInsideIsTakenForThePartOfAReport(t *testing.T) {
	hostile := Findings{Record: injection, Problems: []string{injection}, Settled: []string{injection}, Changes: &Changes{Waits: 1, Flags: []Flagged{{injection, injection, injection, injection}}}}
	direct := hostile
	direct.Changes = &Changes{Flags: hostile.Changes.Flags}
	all := func(string) string { return injection }
	for _, f := range []Findings{hostile, direct, {Record: "COMPLETE"}} {
		events := everywhere(t, injection)
		for _, k := range []string{"/w/", "/w", "/root/x/"} { // below the workspace too
			e := event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: k + injection}
			events = append([]event.Event{begin, e}, events...)
		}
		markdown, page := made(t, Options{Executes: all, Rows: []Row{}}, f, events)
		code := regexp.MustCompile("`[^`]*`")
		for _, line := range strings.Split(markdown, "\n") {
			if m := regexp.MustCompile(`\]\(|<img|@team|# COMPLETE|\*\*b|http:|\x1b|\x00|\x{202e}|\x{fffd}`).FindString(code.ReplaceAllString(line, "")); m != "" {
				t.Errorf("%q stands outside of code in %.300q", m, line)
			}
			if !regexp.MustCompile("^(# Incident report: |> |## [A-Z]|- |  - |[A-Z0-9]|```|holdfast |$)").MatchString(line) {
				t.Errorf("the line %.200q is none of ours", line)
			}
		}
		if bad := regexp.MustCompile(`<img|<a href="http|\x1b|\x00|\x{202e}`).FindString(page); bad != "" {
			t.Errorf("the page has %q", bad)
		}
	}
}

// flood is very many attempts, all different.
func flood(n int) []event.Event {
	events := []event.Event{begin}
	for i := range n {
		long := fmt.Sprintf("/w/%d/%s/", i, strings.Repeat("long", 30))
		p := event.Process{PID: i, Exec: uint64(i + 1)}
		events = append(events,
			event.Event{Action: event.FileLookup, Verdict: event.Denied, Layer: event.LayerView, Object: fmt.Sprintf("/x%d/y", i), Error: "ENOENT", Process: p},
			event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: long + "package.json", Process: p},
			event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: fmt.Sprintf("/tmp/%d/x", i), Process: p},
			event.Event{Action: event.ProcExec, Verdict: event.Allowed, Object: fmt.Sprintf("/bin/p%d", i), Process: event.Process{PID: i, Exec: uint64(i + 1), Argv: []string{long, long}}},
			event.Event{Action: event.NetConnect, Verdict: event.Denied, Layer: event.LayerEgress, Object: fmt.Sprintf("h%d.example.org:443", i), Detail: map[string]string{"reason": long}},
			event.Event{Action: event.AlertRaise, Object: "flood", Detail: map[string]string{"severity": "low", "key": long, "title": "a flood", "object": long}},
			event.Event{Action: fmt.Sprintf("made.up%d", i), Verdict: event.Denied, Layer: fmt.Sprint(i), Rule: long, Object: long},
		)
	}
	return events
}

// TestAFloodHidesNothingOfAnotherKind floods the report with each kind of attempt
// before something happens that a reader must not miss.
func TestAFloodHidesNothingOfAnotherKind(t *testing.T) {
	events := append(flood(20_000),
		event.Event{Action: event.SysCall, Verdict: event.Denied, Layer: event.LayerFilter, Object: "mount", Error: "EPERM"},
		event.Event{Action: event.FileLookup, Verdict: event.Denied, Layer: event.LayerView, Object: "/home/you/.ssh/id_ed25519", Detail: map[string]string{"mark": "credentials"}},
		event.Event{Action: event.FileWrite, Verdict: event.Allowed, Object: "/w/.envrc"},
		event.Event{Action: event.NetConnect, Verdict: event.Allowed, Object: "files.example.org:443", Rule: "policy.yaml:7"},
		event.Event{Action: event.NetClose, Verdict: event.Allowed, Object: "files.example.org:443", Detail: map[string]string{"out": "12345", "in": "9"}},
		event.Event{Action: event.CredentialUse, Verdict: event.Allowed, Object: "files.example.org:443", Detail: map[string]string{"credential": "deploy"}},
		event.Event{Action: event.AlertRaise, Object: "several-walls", Detail: map[string]string{"severity": "critical", "title": "All walls were tried", "events": "2"}},
		event.Event{Action: event.SessionEnd, Verdict: event.Allowed, Detail: map[string]string{"status": "0"}},
	)
	markdown, page := made(t, Options{Executes: hooks}, Findings{Record: "COMPLETE"}, events)
	for _, want := range []string{
		"the gravest is **critical**: All walls were tried.", "tried to make the system call `mount`", "tried to find `/home/you/.ssh/id_ed25519`",
		"- [ ] `./.envrc` (written at 03:06:25): direnv sources it.", "- [ ] `deploy`, used at `files.example.org:443`", "- [ ] `files.example.org:443`: 12.1 KiB out",
		"These are the rest of their kind, in other places.", "and others (written at",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if len(markdown) > 512<<10 || len(page) > 1<<20 {
		t.Errorf("the report has %d bytes, the page %d", len(markdown), len(page))
	}
	longer, _ := made(t, Options{Executes: hooks}, Findings{Record: "COMPLETE"}, flood(40_000))
	if len(longer) > len(markdown)+4096 {
		t.Errorf("twice the flood makes %d bytes of %d", len(longer), len(markdown))
	}
}

func TestManyFlagsOfOneReasonDoNotHideAnother(t *testing.T) {
	c := &Changes{Whole: true}
	for i := range 5000 {
		c.Flags = append(c.Flags, Flagged{Path: fmt.Sprintf("/w/%d/package.json", i), Change: "added", Reason: "npm runs its scripts"})
	}
	c.Flags = append(c.Flags, Flagged{Path: "/w/.envrc", Change: "modified", Reason: "direnv sources it"},
		Flagged{Path: "/w/.vscode", Change: "added", Reason: "VS Code runs its tasks", Held: "/s/held/.vscode"})
	events := []event.Event{begin, {Action: event.FileWrite, Verdict: event.Allowed, Object: "/w/gone/.envrc"}, {Action: event.FileQuarantine, Verdict: event.Denied, Layer: event.LayerProtected, Object: "/w/.vscode"}}
	markdown, _ := made(t, Options{Executes: hooks}, Findings{Record: "COMPLETE", Changes: c}, events)
	for _, want := range []string{
		"- [ ] `./0/package.json`, `./1/package.json`, `./2/package.json`, `./3/package.json` and others (added) (5000 times): npm runs its scripts.\n- [ ] `./.envrc` (modified): direnv sources it.\n\n",
		"- [ ] `./.vscode`, now at `/s/held/.vscode`: VS Code runs its tasks.",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	c.Whole = false // then the report also has what the record has
	if markdown, _ = made(t, Options{Executes: hooks}, Findings{Record: "COMPLETE", Changes: c}, events); !strings.Contains(markdown, "- [ ] `./gone/.envrc` (written at 03:04:05): direnv sources it.") {
		t.Error("what the end of the run may not have found is missing")
	}
}

func TestManyHostsDoNotHideTheOneThatBytesWentTo(t *testing.T) {
	reached := func(n int, size string) (events []event.Event) {
		for i := range n {
			events = append(events, event.Event{Action: event.NetConnect, Verdict: event.Allowed, Object: fmt.Sprintf("h%d.example.org:443", i)})
		}
		return append(events, event.Event{Action: event.NetClose, Verdict: event.Allowed, Object: "files.example.net:443", Detail: map[string]string{"out": size}})
	}
	for _, tt := range []struct {
		name  string
		hosts int
		want  []string
	}{
		{"as long as there is room for each", maxHosts - 1, []string{"- [ ] `files.example.net:443`: 1.0 MiB out", "reached 2000 hosts and sent 1.0 MiB"}},
		{"and beyond that as one sum", maxHosts, []string{"- [ ] Hosts that are not listed here: up to 1.0 MiB out. See `holdfast log net", "reached at least 2000 hosts and sent 1.0 MiB"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			markdown, _ := made(t, Options{}, Findings{Record: "COMPLETE"}, append([]event.Event{begin}, reached(tt.hosts, "1048576")...))
			for _, want := range tt.want {
				if !strings.Contains(markdown, want) {
					t.Errorf("the report does not say %q", want)
				}
			}
		})
	}
}

func TestALongTimelineLeavesOutWhatWasLetGoOnFirst(t *testing.T) {
	var events []event.Event
	refused := 0
	for action := range verbs {
		for i := range perKind {
			e := event.Event{Action: action, Verdict: event.Allowed, Object: fmt.Sprintf("/p%d/x:1", i), Process: event.Process{Executable: fmt.Sprintf("/bin/p%d", i)}}
			if strings.HasPrefix(action, "net.") || strings.HasPrefix(action, "sys.") {
				e.Verdict = event.Denied
				refused++
			}
			events = append(events, e)
		}
	}
	markdown, _ := made(t, Options{}, Findings{Record: "COMPLETE"}, append([]event.Event{begin}, events...))
	if got := strings.Count(markdown, "**refused**: tried to"); got != refused {
		t.Errorf("%d refusals stand in the timeline, of %d", got, refused)
	}
	if want := fmt.Sprintf("Left out here: %d attempts. All of it is in `holdfast log query true ", len(events)-maxTimeline); !strings.Contains(markdown, want) {
		t.Errorf("the report does not say %q", want)
	}
}

func TestWhatIsWorthARetest(t *testing.T) {
	rows := []Row{
		{ID: "A-1", Attempts: []Attempt{{event.FileLookup, "O/other", event.LayerView}}},
		{ID: "A-2", Core: true, Attempts: []Attempt{{event.FileLookup, "H/.ssh/id_probe", event.LayerView}}},
		{ID: "A-3", Attempts: []Attempt{{event.FileLookup, "H/.ssh/id_ed25519", event.LayerView}}},
		{ID: "A-4", Attempts: []Attempt{{event.FileLookup, "H/.ssh/id_ed25519", event.LayerHidden}}},
		{ID: "B-1", Rules: []string{"mount"}, Attempts: []Attempt{{event.SysCall, "mount", event.LayerFilter}}},
		{ID: "B-2", Attempts: []Attempt{{event.SysCall, "bpf", event.LayerFilter}}},
	}
	look := event.Event{Action: event.FileLookup, Verdict: event.Denied, Layer: event.LayerView, Object: "/home/you/.ssh/id_ed25519"}
	call := event.Event{Action: event.SysCall, Verdict: event.Denied, Layer: event.LayerFilter, Object: "mount"}
	alert := event.Event{Action: event.AlertRaise, Object: "mount", Detail: map[string]string{"severity": "high", "events": "3", "object": "mount"}}
	odd := event.Event{Action: event.AlertRaise, Object: "no-row", Detail: map[string]string{"severity": "high"}}
	for _, tt := range []struct {
		name   string
		events []event.Event
		want   []string
	}{
		{"a file that a row is about, and no other row of the kind", []event.Event{look}, []string{"holdfast prove --id A-3\n"}},
		{"what an alert is about, once", []event.Event{call, alert}, []string{"What the alert `mount` is about:\n\n```sh\nholdfast prove --id B-1\n"}},
		{"an alert that no row raises", []event.Event{odd}, []string{"No row raises these alerts: `no-row`"}},
		{"nothing was refused", nil, []string{"Everything: `holdfast prove`"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			markdown, _ := made(t, Options{Rows: rows}, Findings{Record: "COMPLETE"}, append([]event.Event{begin}, tt.events...))
			for _, want := range tt.want {
				if !strings.Contains(markdown, want) {
					t.Errorf("the report does not say %q:\n%s", want, markdown[strings.Index(markdown, "## How"):])
				}
			}
			if n := strings.Count(markdown, "holdfast prove --id"); n != strings.Count(strings.Join(tt.want, ""), "holdfast prove --id") {
				t.Errorf("the report has %d commands", n)
			}
		})
	}
}

func TestWhatTheVerdictMeansStandsAtTheTop(t *testing.T) {
	for record, want := range map[string]string{
		"COMPLETE": "can be relied on", "PARTIAL": "a sensor was missing", "GAPS": "events were lost", "TAMPERED": "Nothing in this report can be relied on",
		"UNVERIFIABLE": "nothing vouches", "NEW": "does not know",
	} {
		markdown, page := made(t, Options{}, Findings{Record: record}, []event.Event{begin})
		if top := strings.SplitN(markdown, "\n", 4)[2]; record != "NEW" && !strings.HasPrefix(top, "> The record is **"+record+"**: ") || !strings.Contains(top, want) {
			t.Errorf("the report of a record that is %s begins with %q", record, top)
		}
		if good := strings.Contains(page, "was-held"+`"`); good != (record == "COMPLETE") {
			t.Errorf("the page of a record that is %s shows that all is well: %v", record, good)
		}
	}
}

func TestWhatCouldNotBeSeenEndsTheReport(t *testing.T) {
	markdown, _ := made(t, Options{}, Findings{Record: "PARTIAL", Problems: []string{"a line is missing"}}, []event.Event{
		{Sensor: event.Record, Action: event.RecordBegin, Detail: map[string]string{"level": "standard"}}, begin,
		{Sensor: event.Record, Action: event.RecordBlind, Object: "lookups", Detail: map[string]string{"reason": "/dev/fuse cannot be opened", "seen": "opens"}},
		{Sensor: event.Record, Action: event.RecordCut, Detail: map[string]string{"of": "syscall", "count": "7", "reason": "flood"}},
		{Sensor: event.Syscall, Action: event.FileWrite, Object: "/w/x"},
	})
	at := strings.Index(markdown, "## What could not be seen")
	for _, want := range []string{
		"Since 03:04:05 it could not be seen: `lookups`. Why: /dev/fuse cannot be opened. Still seen: opens.", "7 events were only counted of the sensor `syscall`: flood.",
		"Which files in view were read", "Of 1 attempt it is not known", "What happened after the last event", "this system has no list of them", "Of the record: a line is missing.",
	} {
		if !strings.Contains(markdown[at:], want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}
