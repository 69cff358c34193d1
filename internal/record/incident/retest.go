package incident

import (
	"fmt"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/floor/event"
)

// retests bounds the commands, and rows how many rows one of them plays.
const (
	retests = 30
	rowsOf  = 6
)

// retest are the commands that play the like again, for each rule that raised
// an alert and for each way in which something was held. They are chosen by
// what each row says must be seen of it.
func (t *writer) retest() []document.Block {
	if t.o.Rows == nil {
		return []document.Block{paragraph("Rows of the escape matrix are played by holdfast-prove, which is not installed here; where it is, this report names the rows that try similar things.")}
	}
	blocks := []document.Block{paragraph("Each command plays attempts of the same kind against this version of Holdfast, in a world made for it, with files and listeners of its own. Held means that it still holds.")}
	played, commands, none := map[string]bool{}, 0, []string{}
	put := func(why document.Prose, ids []string) {
		ids = slices.DeleteFunc(ids, func(id string) bool { return played[id] })
		if commands >= retests || len(ids) == 0 {
			return
		}
		for _, id := range ids {
			played[id] = true
		}
		commands++
		blocks = append(blocks, document.Block{Text: why, Commands: []string{"holdfast prove --id " + strings.Join(ids, " --id ")}})
	}
	for _, a := range t.sortedAlerts() {
		ids, _ := pick(t.o.Rows, func(r Row) int {
			if !slices.Contains(r.Rules, a.rule) {
				return 0
			}
			best := 1
			for _, one := range r.Attempts {
				best = max(best, 1+nearest(one.Object, a.objects))
			}
			return best
		})
		if len(ids) == 0 {
			none = append(none, a.rule)
		}
		put(document.Sentence("What the alert %s is about:", a.rule), ids)
	}
	again := map[[2]string]bool{}
	for _, g := range t.groups {
		ids, best := pick(t.o.Rows, g.worth)
		kind := [2]string{g.action, g.layer}
		if g.verdict != event.Denied || best < 2 && again[kind] {
			continue
		}
		again[kind] = true
		put(document.Sentence("It tried to %s %s, which %s refused:", document.Words(infinitive(g.action)), nameList(g.objects), document.Words(layerName(g.layer))), ids)
	}
	if len(none) > 0 {
		blocks = append(blocks, paragraph("No row raises these alerts: %s. Whether the rules of today raise them of this record says %s", document.List(none[:min(lines, len(none))]), "holdfast alerts test "+t.o.File))
	}
	return append(blocks, paragraph("Everything: %s", "holdfast prove"))
}

// pick returns the IDs of the few rows that fit best, and the worth of the best:
// by worth, then the headline cases first, then in the order of the catalogue.
func pick(rows []Row, worth func(Row) int) (ids []string, best int) {
	type scored struct {
		id    string
		score int
	}
	var found []scored
	for _, r := range rows {
		n := worth(r)
		best = max(best, n)
		if n *= 2; n > 0 {
			if r.Core {
				n++
			}
			found = append(found, scored{r.ID, n})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return b.score - a.score })
	for _, f := range found[:min(rowsOf, len(found))] {
		if f.score >= min(best, 2)*2 { // rows about the same object make the others needless
			ids = append(ids, f.id)
		}
	}
	return ids, best
}

// worth is how well a row tries what the group tried: 0 for something else,
// more if it is about the same object.
func (g *group) worth(r Row) (best int) {
	for _, a := range r.Attempts {
		if a.Action == g.action && a.Layer == g.layer {
			best = max(best, 1+nearest(a.Object, g.objects))
		}
	}
	return best
}

// nearest is how alike a row's object is to the most similar of some objects.
func nearest(template string, objects names) (best int) {
	for _, o := range objects.list {
		best = max(best, alike(template, o))
	}
	return best
}

// alike is how many last components a row's object and a path share, at most 3;
// 3 if both are equal.
func alike(template, object string) int {
	if template == object {
		return 3
	}
	a, b := strings.Split(template, "/"), strings.Split(object, "/")
	n := 0
	for n < min(len(a)-1, len(b), 3) && a[len(a)-1-n] == b[len(b)-1-n] && a[len(a)-1-n] != "" {
		n++
	}
	return n
}

// unseenBlocks is what the record cannot say.
func (t *writer) unseenBlocks() []document.Block {
	b := document.Block{Items: []document.Item{}}
	put := func(format string, args ...any) { b.Items = append(b.Items, bullet(format, args...)) }
	for _, x := range t.blind {
		put("Since %s it could not be seen: %s. Why: %s. Still seen: %s.", clock(x.since), x.what, document.Words(orElse(x.why, "not said")), document.Words(orElse(x.seen, "nothing")))
	}
	for _, n := range t.s.Lost {
		what := "events were lost"
		if n.Action == event.RecordCut {
			what = "events were only counted"
		}
		put("%s %s of the sensor %s: %s.", document.Words(orElse(n.Detail["count"], "an unknown number of")), document.Words(what), n.Detail["of"], document.Words(orElse(n.Detail["reason"], "why is not said")))
	}
	if t.s.Recorded["level"] == "standard" {
		put("Which files in view were read: that is recorded with %s alone. Take everything that the workspace holds, and that was not hidden, as read.", "--record full")
	}
	if t.unknown > 0 {
		put("Of %s it is not known whether the kernel allowed them.", plural(t.unknown, "attempt", "attempts"))
	}
	if !t.s.Ended && !t.f.Running {
		put("What happened after the last event: the run was broken off.")
	}
	if t.o.Executes == nil {
		put("Which of the changed files a host executes: this system has no list of them.")
	}
	for _, p := range t.f.Problems {
		put("Of the record: %s.", document.Words(strings.TrimSuffix(cut(p, 600), ".")))
	}
	b.Items = append(b.Items, bullet("What no record of Holdfast has: what a program did with a file after it was opened, and what was said inside a connection that was let through and not looked into."))
	return []document.Block{b, paragraph("The whole record: %s; to check it: %s", fmt.Sprintf("holdfast log show --long %s", t.o.Session), fmt.Sprintf("holdfast log verify %s", t.o.Session))}
}
