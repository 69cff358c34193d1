package stories

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// unknown ends a story: what the record does not say, and how far it can be trusted.
func (pr *printer) unknown() {
	t := pr.t
	pr.title("NOT KNOWN")
	notes := 0
	for _, n := range t.Lost {
		word := "were lost for the record"
		if n.Action == event.RecordCut {
			word = "were counted and not recorded one by one"
		}
		counts := map[string]string{}
		for k, v := range n.Detail {
			if action, found := strings.CutPrefix(k, "count."); found {
				counts[action] = v
			}
		}
		numbers, by := "", "" // a sensor that never made events of what it lost gives neither
		if n.Detail["from"] != "" {
			numbers = fmt.Sprintf(" (numbers %s to %s)", text.Line(n.Detail["from"]), text.Line(n.Detail["to"]))
		}
		if len(counts) > 0 {
			by = "; " + lines.Details(event.Event{Detail: counts})
		}
		pr.printf("  %s events of %s%s %s: %s%s", text.Line(n.Detail["count"]), text.Word(n.Detail["of"]), numbers, word, text.Line(n.Detail["reason"]), by)
		notes++
	}
	if t.Recorded["level"] == "standard" {
		pr.printf("  which files were read: that is only recorded with --record full")
		notes++
	}
	if t.Unknown > 0 {
		pr.printf("  of %s it is not known whether the kernel allowed them", words.Plural(t.Unknown, "event", "events"))
		notes++
	}
	if t.Unreadable != "" {
		pr.printf("  %s %s", pr.a.Tint(command.Red, "the record is damaged:"), text.Line(t.Unreadable))
		notes++
	}
	if !t.Ended && !t.Running {
		pr.printf("  what happened after the last event: the run was broken off")
		notes++
	}
	if left := omissionsText(t.Left); left != "" {
		pr.printf("  left out here, because there is too much of it: %s; all of it is in log query and log export", left)
		notes++
	}
	pr.recordVerdict(notes)
}

// omissionsText lists what a story had no room for.
func omissionsText(l story.Left) string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		what string
	}{{l.Programs, "programs"}, {l.Files, "events on files"}, {l.Destinations, "events on destinations"}, {l.Refusals, "refusals"}, {l.Other, "other things"}, {l.Bytes, "bytes of long texts"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (pr *printer) recordVerdict(notes int) {
	t := pr.t
	about := map[string]string{
		"COMPLETE":     "every sensor watched for the whole run, and all that they saw is in the record, as it was written",
		"PARTIAL":      "all that the sensors saw is in the record, as it was written, but they could not see everything",
		"GAPS":         "what is in the record is as it was written, but some of it is missing",
		"TAMPERED":     "the record is not as it was written",
		"UNVERIFIABLE": "nothing vouches for the record",
	}[t.Record]
	colour := command.Red
	if t.Record == "COMPLETE" {
		colour = command.Green
	}
	if t.Running {
		about += ", so far"
	}
	if notes == 0 && t.Record == "COMPLETE" {
		pr.printf("  nothing is known to be missing")
	}
	pr.printf("  record: %s, %s", pr.a.Tint(colour, t.Record), about)
	for _, p := range t.Problems {
		pr.printf("    %s", text.Line(p))
	}
	if t.Record != "COMPLETE" {
		pr.printf("    %s", fmt.Sprintf("see: holdfast log verify %s", text.Line(t.Session)))
	}
}
