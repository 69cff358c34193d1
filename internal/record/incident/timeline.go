package incident

import (
	"cmp"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/floor/event"
)

// lines is how many lines a list has at most.
const lines = 200

// alertBlocks are the alerts, those of one rule together.
func (t *writer) alertBlocks() []document.Block {
	list := t.sortedAlerts()
	if len(list) == 0 {
		return []document.Block{paragraph("No alert was raised.")}
	}
	b := document.Block{Text: document.Sentence("An alert refuses nothing: each says what became of what it is about. Those of one rule are listed together, the gravest first. With all their records: %s", "holdfast alerts "+t.o.Session)}
	for _, a := range list[:min(lines, len(list))] {
		item := bullet("%s: %s (%s)%s, %s, record %s.", severityOf(a), document.Words(strings.TrimSuffix(a.title, ".")), a.rule, repeatCount(a.count), timeRange(a.span), a.seq)
		if a.explanation != "" {
			addLine(&item, "%s", document.Words(a.explanation))
		}
		if len(a.objects.list) > 0 {
			addLine(&item, "About %s.", nameList(a.objects))
		}
		addLine(&item, "What became of it: %s.", alertOutcome(a))
		if i := slices.IndexFunc(t.o.Rules, func(r detect.Rule) bool { return r.ID == a.rule }); i >= 0 && t.o.Rules[i].FalsePositives != "" {
			addLine(&item, "It can be honest: %s", document.Words(t.o.Rules[i].FalsePositives))
		}
		if names := techniques(a.technique); names != "" {
			addLine(&item, "As MITRE calls it: %s.", document.Words(names))
		}
		b.Items = append(b.Items, item)
	}
	return append([]document.Block{b}, t.omittedBlocks(uint64(max(0, len(list)-lines))+t.alerts.more, "alert", "alerts")...)
}

// omittedBlocks says how much a list leaves out.
func (t *writer) omittedBlocks(n uint64, one, many string) []document.Block {
	if n == 0 {
		return nil
	}
	return []document.Block{paragraph("Left out here: %s. All of it is in %s.", plural(n, one, many), "holdfast log query true "+t.o.Session)}
}

// alertOutcome says whether the events of an alert were refused.
func alertOutcome(a *alertGroup) document.Words {
	switch {
	case len(a.held) > 0 && a.passed:
		return "some of it was refused by " + inWords(a.held) + ", some was not refused"
	case len(a.held) > 0:
		return "it was refused by " + inWords(a.held)
	case a.passed:
		return "nothing refused it"
	}
	return "the record does not say"
}

// techniques are the names of techniques, with their numbers.
func techniques(ids string) string {
	var out []string
	for id := range strings.SplitSeq(ids, ",") {
		if name := detect.TechniqueName(id); name != "" {
			out = append(out, name+" ("+id+")")
		}
	}
	return strings.Join(out, ", ")
}

// timeline lists the attempts, in the order in which each was first made.
func (t *writer) timeline() []document.Block {
	if len(t.groups) == 0 {
		return []document.Block{paragraph("The record has no attempt.")}
	}
	blocks := []document.Block{paragraph("Times are UTC. Many alike are one line with a count, at the time of the first. “Let go on” means that the boundary did not refuse it; what a file operation came to is foreseen, and not reported by the kernel. “Called connect” is within the boundary, which has a network of its own: what left it is listed under What got through by permission.")}
	list := document.Block{Items: []document.Item{}}
	shown, left := t.timelineGroups()
	for _, g := range shown {
		list.Items = append(list.Items, t.line(g))
	}
	blocks = append(blocks, list)
	if t.routine > 0 {
		blocks = append(blocks, paragraph("Not listed: %s of names that nearly every program asks for when it starts, and no view has.", plural(t.routine, "refused look-up", "refused look-ups")))
	}
	return append(blocks, t.omittedBlocks(left+t.unlisted, "attempt", "attempts")...)
}

// maxTimeline is how many lines the timeline has at most.
const maxTimeline = 400

// timelineGroups are the groups that there is room for, in their order, and how many
// attempts the others have. Refused or noteworthy attempts are preferred to permitted ones.
func (t *writer) timelineGroups() (list []*group, left uint64) {
	list = slices.Clone(t.groups)
	if len(list) <= maxTimeline {
		return list, 0
	}
	slices.SortStableFunc(list, func(x, y *group) int { return weight(y) - weight(x) })
	for _, g := range list[maxTimeline:] {
		left += g.count
	}
	list = list[:maxTimeline]
	slices.SortFunc(list, func(x, y *group) int { return cmp.Compare(x.seq, y.seq) })
	return list, left
}

// weight is how important a line is to a reader.
func weight(g *group) int {
	switch {
	case g.marked:
		return 3
	case g.verdict == event.Denied:
		return 2
	case strings.HasPrefix(g.action, "proc.") || strings.HasPrefix(g.action, "file."):
		return 0
	}
	return 1
}

// line is a group in one line.
func (t *writer) line(g *group) document.Item {
	what := document.Sentence(" %s: %s %s", document.Strong(verdictOf(g)), document.Words(pastTense(g.action)), nameList(g.objects))
	if g.verdict != event.Allowed || g.failed {
		what = document.Sentence(" %s: tried to %s %s", document.Strong(verdictOf(g)), document.Words(infinitive(g.action)), nameList(g.objects))
	}
	p := slices.Concat(document.Sentence("%s", timeRange(g.span)), what, document.Sentence("%s.", repeatCount(g.count)))
	if g.rest {
		p = append(p, document.Sentence(" These are the rest of their kind, in other places.")...)
	}
	p = append(p, t.heldBy(g)...)
	if g.verdict == event.Allowed && !g.failed && strings.HasPrefix(g.action, "file.") {
		switch {
		case g.kept:
			p = append(p, document.Sentence(" Kept private: it goes with the run.")...)
		case strings.HasPrefix(g.place, "/"):
			p = append(p, document.Sentence(" Outside of the workspace: private, unless the policy grants writing there.")...)
		}
	}
	if who := t.programs(g.by); len(who.list) > 0 && g.action != event.ProcExec {
		p = append(p, document.Sentence(" By %s.", nameList(who))...)
	}
	return document.Item{Text: append(p, document.Sentence(" Record %s.", g.seq)...)}
}

// verdictOf is what became of a group.
func verdictOf(g *group) string {
	switch {
	case g.verdict == event.Denied:
		return "refused"
	case g.failed:
		return "failed by itself"
	case g.verdict == event.Allowed:
		return "let go on"
	}
	return "outcome not known"
}

// heldBy says what held an attempt, or which rule permitted it.
func (t *writer) heldBy(g *group) (p document.Prose) {
	if g.verdict == event.Denied {
		p = document.Sentence(" Held by %s: %s.", document.Words(layerWords[g.layer][0]), document.Words(layerWords[g.layer][1]))
	}
	if g.err != "" {
		p = append(p, document.Sentence(" It got the error %s.", g.err)...)
	}
	if g.rule != "" {
		p = append(p, document.Sentence(" Rule: %s.", g.rule)...)
	}
	if g.reason != "" && g.verdict == event.Denied {
		p = append(p, document.Sentence(" Reason: %s.", document.Words(strings.TrimSuffix(g.reason, ".")))...)
	}
	return p
}
