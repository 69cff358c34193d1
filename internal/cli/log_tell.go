package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// teller writes a story for a person.
type teller struct {
	a    *app
	w    io.Writer
	t    told
	long bool // leave nothing out
	bare bool // programs without what they did

	names    map[uint64]string
	children map[uint64][]*story.Program
	lines    int // of programs
	hidden   int // programs for which there was no line
}

func newTeller(a *app, w io.Writer, t told, long bool) *teller {
	tl := &teller{a: a, w: w, t: t, long: long, names: programNames(t.Story), children: map[uint64][]*story.Program{}}
	for _, p := range t.Programs {
		tl.children[p.Parent] = append(tl.children[p.Parent], p)
	}
	return tl
}

func (tl *teller) say(format string, args ...any) { fmt.Fprintf(tl.w, format+"\n", args...) }

func (tl *teller) title(s string) { tl.say("\n%s", tl.a.Tint(command.Bold, s)) }

func (tl *teller) all() {
	tl.head()
	tl.alerts()
	tl.approvals()
	tl.reviewed()
	tl.tools()
	if len(tl.t.Programs) > 0 {
		tl.title("PROGRAMS")
		tl.programs()
	}
	if len(tl.t.Destinations) > 0 {
		tl.title("NETWORK")
		tl.network()
	}
	tl.credentials()
	tl.refusals()
	tl.dropped()
	tl.notes()
	tl.unknown()
}

func (tl *teller) head() {
	t := tl.t
	state := "broken off: its end is not recorded"
	switch {
	case t.Ended && t.Status == "":
		state = "ended"
	case t.Ended:
		state = "status " + text.Line(t.Status)
	case t.Running:
		state = "running"
	}
	tl.say("session %s  %s", tl.a.Tint(command.Bold, text.Line(t.Session)), state)
	if t.Workspace != "" {
		tl.say("in %s", text.Word(t.Workspace))
	}
	tl.say("began %s, lasted %s, %s", t.Begin.Local().Format("2006-01-02 15:04:05 -0700"), words.Lasted(t.End.Sub(t.Begin)), words.Plural(t.Events, "event", "events"))
	if len(t.Command) > 0 {
		tl.say("ran %s", words.CommandLine(t.Command, 0, 400))
	}
	for _, m := range []struct {
		what   string
		detail map[string]string
	}{{"policy", t.Started}, {"boundary", t.Attested}, {"record", t.Recorded}} {
		if len(m.detail) > 0 {
			tl.say("%s: %s", m.what, lines.Details(event.Event{Detail: m.detail}))
		}
	}
}

var severities = []string{"critical", "high", "medium", "low", "info"}

// alerts come first, the worst at the top.
func (tl *teller) alerts() {
	if len(tl.t.Alerts) == 0 {
		return
	}
	tl.title("ALERTS")
	list := slices.Clone(tl.t.Alerts)
	rank := func(a *story.Alert) int {
		if i := slices.Index(severities, a.Detail["severity"]); i >= 0 {
			return i
		}
		return len(severities)
	}
	slices.SortStableFunc(list, func(a, b *story.Alert) int { return rank(a) - rank(b) })
	for i, a := range list {
		if i >= 50 && !tl.long {
			tl.say("  … and %s", words.Plural(len(list)-i, "more alert", "more alerts"))
			return
		}
		severity := fmt.Sprintf("%-8s", text.Line(a.Detail["severity"]))
		if rank(a) <= 1 {
			severity = tl.a.Tint(command.Red, severity)
		}
		tl.say("  %s  %s  %s%s  %s", severity, text.Word(a.Rule), text.Line(a.Detail["title"]), words.Times(a.Count), tl.a.Tint(command.Grey, fmt.Sprintf("#%d", a.Seq)))
		if why := a.Detail["explanation"]; why != "" {
			tl.say("            %s", text.Line(why))
		}
		for _, k := range []string{"object", "technique", "events"} {
			if v := a.Detail[k]; v != "" {
				tl.say("            %s: %s", k, words.Cut(v, 300))
			}
		}
	}
}

func (tl *teller) credentials() {
	if len(tl.t.Credentials) == 0 {
		return
	}
	tl.title("CREDENTIALS")
	for _, c := range tl.t.Credentials {
		what := ""
		switch {
		case c.Action != event.CredentialUse:
			what = tl.a.Tint(command.Red, text.Word(c.Action)) + words.Times(max(c.Used, c.Denied))
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
		name := c.Name
		if name == "" {
			name = "-"
		}
		tl.say("  %s  %s  %s", text.Word(name), text.Word(c.Where), what)
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
func (tl *teller) refusals() {
	if len(tl.t.Refusals) == 0 {
		return
	}
	tl.title("REFUSED")
	list := slices.Clone(tl.t.Refusals)
	slices.SortStableFunc(list, func(a, b *story.Refusal) int { return rankOf(a) - rankOf(b) })
	for i, r := range list {
		if i >= 100 && !tl.long {
			tl.say("  … and %s", words.Plural(len(list)-i, "more", "more"))
			break
		}
		rule := "by default"
		if r.Rule != "" {
			rule = text.Word(r.Rule)
		}
		parts := []string{}
		for _, s := range []string{r.Layer, r.Error} {
			if s != "" {
				parts = append(parts, text.Word(s))
			}
		}
		why := strings.Join(append(parts, rule), ", ")
		if r.Reason != "" {
			why += ": " + text.Line(r.Reason)
		}
		tl.say("  %s %s%s  [%s]%s", text.Word(r.Action), words.Cut(r.Object, 400), words.Times(r.Count), why, tl.a.Tint(command.Grey, byWhom(tl.names, r.By)))
	}
}

func (tl *teller) notes() {
	if len(tl.t.Notes) == 0 {
		return
	}
	tl.title("ALSO")
	for i, n := range tl.t.Notes {
		if i >= 50 && !tl.long {
			tl.say("  … and %s", words.Plural(len(tl.t.Notes)-i, "more", "more"))
			return
		}
		tl.say("  %s", strings.TrimRight(text.Word(n.Action)+" "+emptyOr(n.Object)+"  "+lines.Details(event.Event{Detail: n.Detail}), " "))
	}
}

func emptyOr(object string) string {
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
