package stories

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// network is where the run went, and what came back.
func (pr *printer) network() {
	for i, d := range pr.t.Destinations {
		if i >= 100 && !pr.long {
			pr.printf("  … and %s; see log net", words.Plural(len(pr.t.Destinations)-i, "more", "more"))
			return
		}
		rules := make([]string, len(d.Rules))
		for i, r := range d.Rules {
			rules[i] = text.Word(r)
		}
		rule := ""
		if len(rules) > 0 {
			rule = "  [" + strings.Join(rules, ", ") + "]"
		}
		pr.printf("  %s  %s%s%s", text.Word(d.Name), traffic(d), rule, pr.a.Tint(command.Grey, programsText(pr.names, d.By)))
		for _, r := range d.Requests {
			answer := "no answer"
			switch {
			case r.Denied:
				answer = pr.a.Tint(command.Red, "refused")
			case r.Status != "" && r.Status != "0":
				answer = text.Line(r.Status)
			}
			pr.printf("      %s %s → %s%s", text.Word(r.Method), words.Cut(r.Path, 200), answer, words.Times(r.Count))
		}
		if d.More > 0 {
			pr.printf("      … and %s", words.Plural(d.More, "more request", "more requests"))
		}
		for _, r := range d.Reasons {
			pr.printf("      %s", text.Line(r))
		}
	}
}

// traffic is what happened with a destination, in a few words.
func traffic(d *story.Destination) string {
	var parts []string
	for _, p := range []struct {
		n         uint64
		one, many string
	}{{d.Denied, "refused", "refused"}, {d.Connects, "connection", "connections"}, {d.Queries, "name query", "name queries"}} {
		switch {
		case p.n > 0 && p.one == p.many:
			parts = append(parts, p.one+words.Times(p.n))
		case p.n > 0:
			parts = append(parts, words.Plural(p.n, p.one, p.many))
		}
	}
	if d.In+d.Out > 0 {
		parts = append(parts, fmt.Sprintf("%s in, %s out", words.Size(d.In), words.Size(d.Out)))
	}
	return strings.Join(parts, ", ")
}

// sockets are the addresses that programs asked the kernel for, which are those
// inside the boundary.
func (pr *printer) sockets() {
	if len(pr.t.Sockets) == 0 {
		return
	}
	pr.title("SYSTEM CALLS")
	for _, s := range pr.t.Sockets {
		denied := ""
		if s.Denied > 0 {
			denied = "  " + pr.a.Tint(command.Red, "refused"+words.Times(s.Denied))
		}
		pr.printf("  %s %s%s%s%s", text.Word(s.Action), text.Word(s.Address), words.Times(s.Count), denied, pr.a.Tint(command.Grey, programsText(pr.names, s.By)))
	}
}
