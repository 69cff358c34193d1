package audit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// countPrefix begins the keys of session.end that say how many events a sensor
// had.
const countPrefix = "count."

// addLoss adds the events that a record.cut or record.drop accounts for.
func (v *verifier) addLoss(l link, e *event.Event) {
	of, d := e.Detail["of"], e.Detail
	into := v.cuts
	if e.Action == event.RecordDrop {
		into = v.drops
	}
	if d["from"] == "" && of != "" { // of events without a number
		v.problemAt(Gaps, l, "events of %q without a number are lost: %s", of, d["count"])
		return
	}
	from, err1 := strconv.ParseUint(d["from"], 10, 63)
	to, err2 := strconv.ParseUint(d["to"], 10, 63)
	if of == "" || err1 != nil || err2 != nil || from == 0 || to < from {
		v.problemAt(Gaps, l, "it does not say what was lost")
		return
	}
	exact := ranges{{from, to}}
	if list := d["ranges"]; list != "" {
		r, ok := parseRanges(list)
		if !ok || r[0].from != from || r[len(r)-1].to != to {
			v.problemAt(Gaps, l, "what it says was lost contradicts itself")
			return
		}
		exact = r
	}
	into[of] = append(into[of], exact...)
}

// checkCounts compares the events in the log with the sensors' counts.
func (v *verifier) checkCounts() {
	totals := v.totals()
	all := map[string]bool{}
	for name := range v.sensors {
		all[name] = true
	}
	for name := range totals {
		all[name] = true
	}
	for _, name := range names(all) {
		of := v.sensors[name]
		if of == nil {
			of = &numbers{}
		}
		if of.unnumbered > 0 {
			v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("%d events of %q have no number: whether one is missing cannot be seen", of.unnumbered, name)})
		}
		total, known := totals[name]
		v.checkSensor(name, of, total, known)
	}
	if v.ended == nil && !v.report.Open && v.finished && v.eventful() {
		v.problem(Problem{Verdict: Gaps, What: "the session has no end in the log: how many events there were is not known"})
	}
}

// eventful reports whether the log has events besides its own.
func (v *verifier) eventful() bool {
	return slices.ContainsFunc(names(v.sensors), func(n string) bool { return n != string(event.Record) })
}

// totals returns how many events each sensor had by the end of the session.
func (v *verifier) totals() map[string]uint64 {
	t := map[string]uint64{}
	if v.ended == nil {
		return t
	}
	for _, k := range names(v.ended.Detail) {
		name, found := strings.CutPrefix(k, countPrefix)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(v.ended.Detail[k], 10, 63)
		if err != nil {
			v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("the end of the session counts %q events of %q", v.ended.Detail[k], name)})
			continue
		}
		t[name] = n
	}
	return t
}

// checkSensor accounts for the events of one sensor.
func (v *verifier) checkSensor(name string, of *numbers, total uint64, known bool) {
	standing, twice := unionOf(of.runs)
	if len(twice) > 0 {
		v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("the events %s of %q are recorded twice: their sensor lost count", shortList(twice), name)})
	}
	high := uint64(0)
	if n := len(standing); n > 0 {
		high = standing[n-1].to
	}
	own := name == string(event.Record) // the end of the log is the end of its own events
	switch {
	case !known:
		if v.ended != nil && !own && high > 0 {
			v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("the end of the session does not say how many events %q had", name)})
		}
		total = high
	case high > total:
		v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("%q had %d events by the end of the session, but the log has one with the number %d", name, total, high)})
	}
	c := Count{Total: total, Standing: standing.count()}
	cut, _ := unionOf(v.cuts[name])
	drop, _ := unionOf(v.drops[name])
	v.reportMissing(name, &c, standing, cut, drop)
	if len(of.runs) > 0 || total > 0 {
		v.report.Sensors[name] = c
	}
}

// reportMissing names the events of a sensor that are not in the log.
func (v *verifier) reportMissing(name string, c *Count, standing, cut, drop ranges) {
	if c.Total == 0 {
		return
	}
	gone := ranges{{1, c.Total}}.without(standing)
	unaccounted := gone.without(cut).without(drop)
	dropped := gone.without(cut).without(unaccounted)
	summarised := gone.without(unaccounted).without(dropped)
	c.Missing, c.Dropped, c.Summarised = unaccounted.count(), dropped.count(), summarised.count()
	if n := c.Missing; n > 0 {
		what := fmt.Sprintf("%d events of %q (%s) are missing, and nothing accounts for them", n, name, shortList(unaccounted))
		if v.report.Open {
			v.note(what + ": they may be on their way")
		} else {
			v.problem(Problem{Verdict: Gaps, What: what})
		}
	}
	if n := c.Dropped; n > 0 {
		v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("%d events of %q (%s) were dropped, as the log itself says", n, name, shortList(dropped))})
	}
	if n := c.Summarised; n > 0 {
		v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf("%d events of %q (%s) stand summarised, not one by one", n, name, shortList(summarised))})
	}
}

// shortList names at most ten intervals.
func shortList(r ranges) string {
	if len(r) <= 10 {
		return r.String()
	}
	return fmt.Sprintf("%s and %d more ranges", r[:10], len(r)-10)
}
