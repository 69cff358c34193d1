package stories

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// printer writes a story for a person.
type printer struct {
	a    *app
	w    io.Writer
	t    Session
	long bool // leave nothing out
	bare bool // programs without what they did

	names    map[uint64]string
	children map[uint64][]*story.Program
	lines    int // of programs
	hidden   int // programs for which there was no line
}

func newPrinter(a *app, w io.Writer, t Session, long bool) *printer {
	pr := &printer{a: a, w: w, t: t, long: long, names: programNames(t.Story), children: map[uint64][]*story.Program{}}
	for _, p := range t.Programs {
		pr.children[p.Parent] = append(pr.children[p.Parent], p)
	}
	return pr
}

func (pr *printer) printf(format string, args ...any) { fmt.Fprintf(pr.w, format+"\n", args...) }

func (pr *printer) title(s string) { pr.printf("\n%s", pr.a.Tint(command.Bold, s)) }

func (pr *printer) all() {
	pr.head()
	pr.alerts()
	pr.approvals()
	pr.reviewed()
	pr.tools()
	if len(pr.t.Programs) > 0 {
		pr.title("PROGRAMS")
		pr.programs()
	}
	if len(pr.t.Destinations) > 0 {
		pr.title("NETWORK")
		pr.network()
	}
	pr.credentials()
	pr.refusals()
	pr.dropped()
	pr.notes()
	pr.unknown()
}

func (pr *printer) head() {
	t := pr.t
	state := "broken off: its end is not recorded"
	switch {
	case t.Ended && t.Status == "":
		state = "ended"
	case t.Ended:
		state = "status " + text.Line(t.Status)
	case t.Running:
		state = "running"
	}
	pr.printf("session %s  %s", pr.a.Tint(command.Bold, text.Line(t.Session)), state)
	if t.Workspace != "" {
		pr.printf("in %s", text.Word(t.Workspace))
	}
	pr.printf("began %s, lasted %s, %s", t.Begin.Local().Format("2006-01-02 15:04:05 -0700"), words.Lasted(t.End.Sub(t.Begin)), words.Plural(t.Events, "event", "events"))
	if len(t.Command) > 0 {
		pr.printf("ran %s", words.CommandLine(t.Command, 0, 400))
	}
	for _, m := range []struct {
		what   string
		detail map[string]string
	}{{"policy", t.Started}, {"boundary", t.Attested}, {"record", t.Recorded}} {
		if len(m.detail) > 0 {
			pr.printf("%s: %s", m.what, lines.Details(event.Event{Detail: m.detail}))
		}
	}
}

func severityOf(a *story.Alert) int { return detect.Severity(a.Detail["severity"]).Level() }

// alerts come first, the worst at the top.
func (pr *printer) alerts() {
	if len(pr.t.Alerts) == 0 {
		return
	}
	pr.title("ALERTS")
	list := slices.Clone(pr.t.Alerts)
	slices.SortStableFunc(list, func(a, b *story.Alert) int { return severityOf(b) - severityOf(a) })
	for i, a := range list {
		if i >= 50 && !pr.long {
			pr.printf("  … and %s", words.Plural(len(list)-i, "more alert", "more alerts"))
			return
		}
		severity := fmt.Sprintf("%-8s", text.Line(a.Detail["severity"]))
		if severityOf(a) >= detect.High.Level() {
			severity = pr.a.Tint(command.Red, severity)
		}
		pr.printf("  %s  %s  %s%s  %s", severity, text.Word(a.Rule), text.Line(a.Detail["title"]), words.Times(a.Count), pr.a.Tint(command.Grey, fmt.Sprintf("#%d", a.Seq)))
		if why := a.Detail["explanation"]; why != "" {
			pr.printf("            %s", text.Line(why))
		}
		for _, k := range []string{"object", "technique", "events"} {
			if v := a.Detail[k]; v != "" {
				pr.printf("            %s: %s", k, words.Cut(v, 300))
			}
		}
	}
}

func (pr *printer) credentials() {
	if len(pr.t.Credentials) == 0 {
		return
	}
	pr.title("CREDENTIALS")
	for _, c := range pr.t.Credentials {
		what := ""
		switch {
		case c.Action != event.CredentialUse:
			what = pr.a.Tint(command.Red, text.Word(c.Action)) + words.Times(max(c.Used, c.Denied))
		case c.Used > 0 && c.Denied > 0:
			what = fmt.Sprintf("used%s, refused%s", words.Times(c.Used), words.Times(c.Denied))
		case c.Denied > 0:
			what = "refused" + words.Times(c.Denied)
		default:
			what = "used" + words.Times(c.Used)
		}
		if c.Reason != "" {
			what += ": " + text.Line(c.Reason)
		}
		pr.printf("  %s  %s  %s", text.Word(cmp.Or(c.Name, "-")), text.Word(c.Where), what)
	}
}

// rankOf puts last what is always refused.
func rankOf(r *story.Refusal) int {
	if lines.Usual(r.Object) {
		return 1
	}
	return 0
}

// refusals are what was denied, by what and which rule.
func (pr *printer) refusals() {
	if len(pr.t.Refusals) == 0 {
		return
	}
	pr.title("REFUSED")
	list := slices.Clone(pr.t.Refusals)
	slices.SortStableFunc(list, func(a, b *story.Refusal) int { return rankOf(a) - rankOf(b) })
	for i, r := range list {
		if i >= 100 && !pr.long {
			pr.printf("  … and %s", words.Plural(len(list)-i, "more", "more"))
			break
		}
		rule := "by default"
		if r.Rule != "" {
			rule = text.Word(r.Rule)
		}
		var parts []string
		for _, s := range []string{r.Layer, r.Error} {
			if s != "" {
				parts = append(parts, text.Word(s))
			}
		}
		why := strings.Join(append(parts, rule), ", ")
		if r.Reason != "" {
			why += ": " + text.Line(r.Reason)
		}
		pr.printf("  %s %s%s  [%s]%s", text.Word(r.Action), words.Cut(r.Object, 400), words.Times(r.Count), why, pr.a.Tint(command.Grey, programsText(pr.names, r.By)))
	}
}

func (pr *printer) notes() {
	if len(pr.t.Notes) == 0 {
		return
	}
	pr.title("ALSO")
	for i, n := range pr.t.Notes {
		if i >= 50 && !pr.long {
			pr.printf("  … and %s", words.Plural(len(pr.t.Notes)-i, "more", "more"))
			return
		}
		pr.printf("  %s", strings.TrimRight(text.Word(n.Action)+" "+cutObject(n.Object)+"  "+lines.Details(event.Event{Detail: n.Detail}), " "))
	}
}

func cutObject(object string) string {
	if object == "" {
		return ""
	}
	return words.Cut(object, 400)
}

// span is how long a program ran; "" when that is not known.
func span(p *story.Program) string {
	if p.End.IsZero() {
		return ""
	}
	return words.Lasted(p.End.Sub(p.Begin).Round(time.Millisecond))
}
