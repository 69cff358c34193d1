package cli

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// network is where the run went, and what came back.
func (tl *teller) network() {
	for i, d := range tl.t.Destinations {
		if i >= 100 && !tl.long {
			tl.say("  … and %s; see log net", words.Plural(len(tl.t.Destinations)-i, "more", "more"))
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
		tl.say("  %s  %s%s%s", text.Word(d.Name), traffic(d), rule, tl.a.Tint(command.Grey, byWhom(tl.names, d.By)))
		for _, r := range d.Requests {
			answer := "no answer"
			switch {
			case r.Denied:
				answer = tl.a.Tint(command.Red, "refused")
			case r.Status != "" && r.Status != "0":
				answer = text.Line(r.Status)
			}
			tl.say("      %s %s → %s%s", text.Word(r.Method), words.Cut(r.Path, 200), answer, words.Times(r.Count))
		}
		if d.More > 0 {
			tl.say("      … and %s", words.Plural(d.More, "more request", "more requests"))
		}
		for _, r := range d.Reasons {
			tl.say("      %s", text.Line(r))
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
func (tl *teller) sockets() {
	if len(tl.t.Sockets) == 0 {
		return
	}
	tl.title("SYSTEM CALLS")
	for _, s := range tl.t.Sockets {
		denied := ""
		if s.Denied > 0 {
			denied = "  " + tl.a.Tint(command.Red, "refused"+words.Times(s.Denied))
		}
		tl.say("  %s %s%s%s%s", text.Word(s.Action), text.Word(s.Address), words.Times(s.Count), denied, tl.a.Tint(command.Grey, byWhom(tl.names, s.By)))
	}
}
