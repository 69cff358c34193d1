package cli

import (
	"fmt"

	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

const (
	toolLines    = 200 // calls that log show has lines for, unless --long
	toolPrograms = 6   // programs of each that it names
)

// tools are the calls of agents' tools, with what was seen of each.
func (tl *teller) tools() {
	if len(tl.t.Tools) == 0 {
		return
	}
	tl.title("TOOL CALLS")
	tl.say("  %s", tl.a.Tint(command.Grey, "as the agents' hooks say; what is below each is what was seen between the report of the call and that of its result"))
	programs := map[uint64]*story.Program{}
	for _, p := range tl.t.Programs {
		programs[p.Exec] = p
	}
	for i, t := range tl.t.Tools {
		if i >= toolLines && !tl.long {
			tl.say("  … and %s", words.Plural(len(tl.t.Tools)-i, "more call", "more calls"))
			return
		}
		tl.tool(t, programs)
	}
}

func (tl *teller) tool(t *story.Tool, programs map[uint64]*story.Program) {
	who := t.Agent
	for _, w := range []string{t.Subagent, t.Server} {
		if w != "" {
			who += ", " + w
		}
	}
	verdict := tl.toolOutcome(t)
	width := 160
	if tl.long {
		width = 4000
	}
	tl.say("  %s %s  %s%s%s", text.Word(t.Name), words.Cut(t.Arguments, width), text.Line(who), verdict, tl.a.Tint(command.Grey, fmt.Sprintf("  #%d", t.Seq)))
	if t.Among > 0 {
		tl.say("      %s", tl.a.Tint(command.Grey, "at the same time as "+words.Plural(t.Among, "other call", "other calls")+" of this agent: what follows may be of those"))
	}
	others := tl.more(t, programs, width)
	if others > 0 {
		tl.say("      %s", tl.a.Tint(command.Grey, words.Plural(others, "more program", "more programs")+" that the agent started meanwhile"))
	}
	tl.ownDeeds(t)
}

// more shows the programs of a call, and returns how many it did not. Where one of
// them has the command of the call in its command line, that one and what it
// started are shown, and those that the agent has started besides are not.
func (tl *teller) more(t *story.Tool, programs map[uint64]*story.Program, width int) (left int) {
	shown := 0
	for _, exec := range t.Programs {
		p := programs[exec]
		if p == nil || !tl.long && (shown >= toolPrograms || t.Main != 0 && !below(p, t.Main, programs)) {
			left++
			continue
		}
		shown++
		tl.say("      %s%s", words.CommandLine(p.Argv, p.ArgvLeft, width), tl.a.Tint(command.Grey, tl.outcome(p)))
		tl.deeds(p, "        ")
	}
	return left + int(t.More)
}

// below reports whether p is the program main or was started by it.
func below(p *story.Program, main uint64, programs map[uint64]*story.Program) bool {
	for range maxDepth {
		if p == nil {
			return false
		}
		if p.Exec == main {
			return true
		}
		p = programs[p.Parent]
	}
	return false
}

// toolOutcome is what became of a call.
func (tl *teller) toolOutcome(t *story.Tool) string {
	switch {
	case t.Denied:
		rule := ""
		if t.Rule != "" {
			rule = "  [" + text.Line(t.Rule) + "]"
		}
		return "  " + tl.a.Tint(command.Red, "denied") + ": " + text.Line(t.Reason) + rule
	case t.End.IsZero():
		return "  no result was reported"
	case t.Status != "":
		return "  " + text.Line(t.Status) + ", " + words.Lasted(t.End.Sub(t.Begin))
	}
	return "  " + words.Lasted(t.End.Sub(t.Begin))
}

// ownDeeds is what the process of the agent did, a line for each kind: of what is
// not in the workspace, such as its own notes, only what was refused is named.
func (tl *teller) ownDeeds(t *story.Tool) {
	kinds := map[string]*story.Touched{}
	var order []string
	for _, o := range t.Own {
		of := kinds[o.What]
		if of == nil {
			of = &story.Touched{}
			kinds[o.What] = of
			order = append(order, o.What)
		}
		switch {
		case tl.long, tl.t.Workspace == "", paths.Below(tl.t.Workspace, o.Name), o.What == "refused" && !lines.Usual(o.Name), o.What == "connected to":
			o.What = ""
			of.Objects = append(of.Objects, o)
		default:
			of.More += o.Count
		}
	}
	for _, what := range order {
		if len(kinds[what].Objects) > 0 {
			word := what
			if what == "refused" {
				word = "was refused"
			}
			tl.say("      the agent %s %s", word, tl.objects(*kinds[what]))
		}
	}
}
