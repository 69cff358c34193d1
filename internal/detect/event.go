package detect

import (
	"maps"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Event returns the alert as an event of the record. It has only the numbers of
// the process: the rest is in the event of its execution.
func (a Alert) Event() event.Event {
	events := make([]string, len(a.Events))
	for i, seq := range a.Events {
		events[i] = strconv.FormatUint(seq, 10)
	}
	detail := map[string]string{
		"severity": string(a.Severity), "title": a.Title, "technique": strings.Join(a.Technique, ","), "explanation": a.Explanation,
		"key": a.Key, "count": strconv.Itoa(a.Count), "events": strings.Join(events, ","), "object": a.Object,
	}
	maps.DeleteFunc(detail, func(_, v string) bool { return v == "" })
	return event.Event{Action: event.AlertRaise, Object: a.Rule, Process: event.Process{PID: a.Process.PID, Exec: a.Process.Exec}, Detail: detail}
}

// AlertOf returns the alert that an event of a record holds. What is missing or
// malformed in it is left empty.
func AlertOf(e event.Event) Alert {
	d := e.Detail
	a := Alert{
		N: e.N, Rule: e.Object, Title: d["title"], Severity: Severity(d["severity"]), Session: e.Session, Time: e.Time.UTC(),
		Key: d["key"], Process: e.Process, Object: d["object"], Explanation: d["explanation"],
	}
	if d["technique"] != "" {
		a.Technique = strings.Split(d["technique"], ",")
	}
	a.Count, _ = strconv.Atoi(d["count"])
	a.Count = max(1, a.Count)
	for s := range strings.SplitSeq(d["events"], ",") {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			a.Events = append(a.Events, n)
		}
	}
	return a
}
