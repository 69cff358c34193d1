package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/record/story"
)

// writer makes the document.
type writer struct {
	*Builder
	f    Findings
	s    *story.Story
	name map[uint64]string // of programs
	todo uint64            // things to check or rotate
}

// Document is the report of the added events. Nothing may be added afterwards.
func (b *Builder) Document(f Findings) document.Document {
	t := &writer{Builder: b, f: f, s: b.story.Story(), name: map[uint64]string{}}
	for _, p := range t.s.Programs {
		name := cmp.Or(p.Executable, p.Asked)
		t.name[p.Exec] = cut(name[strings.LastIndexByte(name, '/')+1:], 64)
	}
	check := t.check() // counts what is to be done, for the summary
	return document.Document{
		Over: "Incident report", Title: document.Sentence("run %s", b.o.Session), Good: f.Record == "COMPLETE", Lead: t.lead(),
		Section: []document.Section{
			{Title: "Summary", Blocks: t.summary()},
			{Title: "Alerts", Blocks: t.alertBlocks()},
			{Title: "What was attempted, in order", Blocks: t.timeline()},
			{Title: "What got through by permission", Blocks: t.permittedBlocks()},
			{Title: "Check or rotate", Blocks: check},
			{Title: "How to retest", Blocks: t.retest()},
			{Title: "What could not be seen", Blocks: t.unseenBlocks()},
		},
	}
}

// paragraph is a block of text.
func paragraph(format string, args ...any) document.Block {
	return document.Block{Text: document.Sentence(format, args...)}
}

// bullet is an item of a list.
func bullet(format string, args ...any) document.Item {
	return document.Item{Text: document.Sentence(format, args...)}
}

// addLine adds a line to an item.
func addLine(i *document.Item, format string, args ...any) {
	i.More = append(i.More, document.Sentence(format, args...))
}

// lead is the verdict on the record and what it means for the reader.
func (t *writer) lead() document.Prose {
	lead := document.Sentence("The verdict on the record is %s, which this version does not know: take it as one that nothing vouches for.", t.f.Record)
	if meaning, known := verdictWords[t.f.Record]; known {
		lead = document.Sentence("The record is %s: %s", document.Strong(t.f.Record), document.Words(meaning))
	}
	if t.f.Running {
		lead = append(lead, document.Sentence(" The run is under way: this is what is written so far.")...)
	}
	return lead
}

// summary is the run in five sentences.
func (t *writer) summary() []document.Block {
	refused := document.Sentence("Nothing that it attempted was refused.")
	if total, by := t.refusals(); total > 0 {
		refused = document.Sentence("%s refused, by %s.", plural(total, "attempt was", "attempts were"), inWords(by))
	}
	return []document.Block{
		{Text: t.whatRan()},
		{Text: refused},
		{Text: t.worstAlert()},
		{Text: t.gotThrough()},
		{Text: t.toDo()},
	}
}

func (t *writer) whatRan() document.Prose {
	s := t.s
	end := document.Sentence("its end is not in the record")
	switch {
	case s.Ended && s.Status != "":
		end = document.Sentence("it ended with status %s", document.Words(s.Status))
	case s.Ended:
		end = document.Sentence("it ended")
	case t.f.Running:
		end = document.Sentence("it is running")
	}
	command := document.Sentence("a command that the record does not name")
	if len(s.Command) > 0 {
		command = document.Sentence("%s", cut(commandLine(s.Command), 400))
	}
	where := document.Prose{}
	if s.Workspace != "" {
		where = document.Sentence(" in %s", cut(s.Workspace, 300))
	}
	started := uint64(len(s.Programs)) + s.Left.Programs
	return document.Sentence("On %s (UTC) Holdfast ran %s%s for %s; it executed %s, and %s.", document.Words(s.Begin.UTC().Format("2 January 2006 at 15:04:05")), command, where,
		duration(s.End.Sub(s.Begin)), plural(started, "program", "programs"), end)
}

// worstAlert is the number of rules that raised alerts, and the gravest of them.
func (t *writer) worstAlert() document.Prose {
	list := t.sortedAlerts()
	if len(list) == 0 {
		return document.Sentence("No alert was raised: no detection rule matched the record.")
	}
	a := list[0]
	return document.Sentence("Alerts of %s were raised, the gravest is %s: %s.", plural(uint64(len(list)), "rule", "rules"), severityOf(a), document.Words(strings.TrimSuffix(a.title, ".")))
}

// gotThrough is what the run was allowed to do.
func (t *writer) gotThrough() document.Prose {
	out, least := t.moreOut, document.Words("")
	for _, h := range t.hosts.list {
		out += h.out
	}
	if t.hosts.more > 0 {
		least = "at least "
	}
	network := document.Sentence("It reached no host outside")
	if n := uint64(len(t.hosts.list)); n > 0 {
		network = document.Sentence("By permission it reached %s and sent %s", least+plural(n, "host", "hosts"), size(out))
	}
	lent := document.Sentence(", used no credential that was lent")
	if n := uint64(len(t.credentials.list)); n > 0 {
		lent = document.Sentence(", used %s", plural(n, "credential that was lent", "credentials that were lent"))
	}
	files := document.Sentence(" and changed no file of the workspace.")
	switch left := len(t.remainingExecutables()); {
	case t.wrote > 0 && t.reviewed():
		files = document.Sentence(" and changed files of a view of the workspace %s, which wait for review or were reviewed.", times(t.wrote))
	case t.wrote > 0 && left > 0:
		files = document.Sentence(" and changed files of the workspace %s, among them some that a host executes.", times(t.wrote))
	case t.wrote > 0:
		files = document.Sentence(" and changed files of the workspace %s, none of them one that a host is known to execute.", times(t.wrote))
	}
	return slices.Concat(network, lent, files)
}

func (t *writer) toDo() document.Prose {
	if t.todo == 0 {
		return document.Sentence("The record names nothing to check or to rotate; read what could not be seen before you close this.")
	}
	return document.Sentence("Do now what is listed under Check or rotate: %s.", plural(t.todo, "thing", "things"))
}

// sortedAlerts are the alerts by rule, the gravest first.
func (t *writer) sortedAlerts() []*alertGroup {
	list := slices.Clone(t.alerts.list)
	slices.SortStableFunc(list, func(a, b *alertGroup) int { return b.severity.Level() - a.severity.Level() })
	return list
}

// severityOf is a severity in strong type, or the words for an unknown one.
func severityOf(a *alertGroup) any {
	if a.severity.Level() > 0 {
		return document.Strong(a.severity)
	}
	return document.Strong("of no known severity")
}

// timeRange is a time of day, or a range of two.
func timeRange(s span) document.Words {
	first, last := clock(s.first), clock(s.last)
	if first == last {
		return first
	}
	return first + " to " + last
}

// clock is a time of day.
func clock(t time.Time) document.Words { return document.Words(t.UTC().Format(time.TimeOnly)) }

// times is how often something happened.
func times(n uint64) document.Words {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return document.Words(fmt.Sprintf("%d times", n))
}

// repeatCount is how often something happened, in brackets; nil for once.
func repeatCount(n uint64) document.Prose {
	if n < 2 {
		return nil
	}
	return document.Sentence(" (%s)", times(n))
}

// inWords joins words with commas and "and".
func inWords(list []string) document.Words {
	if len(list) < 2 {
		return document.Words(strings.Join(list, ""))
	}
	return document.Words(strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1])
}

// duration is a time span, rounded to seconds from a minute on.
func duration(d time.Duration) document.Words {
	if d < time.Minute {
		return document.Words(max(0, d).Round(10 * time.Millisecond).String())
	}
	return document.Words(d.Round(time.Second).String())
}

// nameList is names as code, with "and others" where there are more.
func nameList(n names) document.Prose {
	p := document.List(n.list)
	if n.more {
		p = append(p, document.Sentence(" and others")...)
	}
	return p
}

// programs are the names of programs.
func (t *writer) programs(by []uint64) names {
	var n names
	for _, id := range by {
		n.add(t.name[id])
	}
	return n
}
