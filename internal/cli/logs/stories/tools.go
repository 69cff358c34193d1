package stories

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
func (pr *printer) tools() {
	if len(pr.t.Tools) == 0 {
		return
	}
	pr.title("TOOL CALLS")
	pr.printf("  %s", pr.a.Tint(command.Grey, "as the agents' hooks report them; below each is what was observed between the report of the call and that of its result"))
	programs := map[uint64]*story.Program{}
	for _, p := range pr.t.Programs {
		programs[p.Exec] = p
	}
	for i, t := range pr.t.Tools {
		if i >= toolLines && !pr.long {
			pr.printf("  … and %s", words.Plural(len(pr.t.Tools)-i, "more call", "more calls"))
			return
		}
		pr.tool(t, programs)
	}
}

func (pr *printer) tool(t *story.Tool, programs map[uint64]*story.Program) {
	who := t.Agent
	for _, w := range []string{t.Subagent, t.Server} {
		if w != "" {
			who += ", " + w
		}
	}
	verdict := pr.toolOutcome(t)
	width := 160
	if pr.long {
		width = 4000
	}
	pr.printf("  %s %s  %s%s%s", text.Word(t.Name), words.Cut(t.Arguments, width), text.Line(who), verdict, pr.a.Tint(command.Grey, fmt.Sprintf("  #%d", t.Seq)))
	if t.Among > 0 {
		pr.printf("      %s", pr.a.Tint(command.Grey, "at the same time as "+words.Plural(t.Among, "other call", "other calls")+" of this agent: what follows may belong to those"))
	}
	others := pr.toolProgramsOf(t, programs, width)
	if others > 0 {
		pr.printf("      %s", pr.a.Tint(command.Grey, words.Plural(others, "more program", "more programs")+" that the agent started in the meantime"))
	}
	pr.ownChanges(t)
}

// toolProgramsOf shows the programs of a call, and returns how many it did not. If one
// of them has the command of the call in its command line, only that one and what it
// started are shown, and not what else the agent has started.
func (pr *printer) toolProgramsOf(t *story.Tool, programs map[uint64]*story.Program, width int) (left int) {
	shown := 0
	for _, exec := range t.Programs {
		p := programs[exec]
		if p == nil || !pr.long && (shown >= toolPrograms || t.Main != 0 && !below(p, t.Main, programs)) {
			left++
			continue
		}
		shown++
		pr.printf("      %s%s", words.CommandLine(p.Argv, p.ArgvLeft, width), pr.a.Tint(command.Grey, pr.outcome(p)))
		pr.changes(p, "        ")
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
func (pr *printer) toolOutcome(t *story.Tool) string {
	switch {
	case t.Denied:
		rule := ""
		if t.Rule != "" {
			rule = "  [" + text.Line(t.Rule) + "]"
		}
		return "  " + pr.a.Tint(command.Red, "denied") + ": " + text.Line(t.Reason) + rule
	case t.End.IsZero():
		return "  no result was reported"
	case t.Status != "":
		return "  " + text.Line(t.Status) + ", " + words.Lasted(t.End.Sub(t.Begin))
	}
	return "  " + words.Lasted(t.End.Sub(t.Begin))
}

// ownChanges is what the process of the agent did, a line for each kind: of what is
// not in the workspace, such as its own notes, only what was refused is named.
func (pr *printer) ownChanges(t *story.Tool) {
	kinds := map[string]*story.Touched{}
	var order []string
	for _, o := range t.Own {
		group := kinds[o.What]
		if group == nil {
			group = &story.Touched{}
			kinds[o.What] = group
			order = append(order, o.What)
		}
		switch {
		case pr.long, pr.t.Workspace == "", paths.Below(pr.t.Workspace, o.Name), o.What == "refused" && !lines.Usual(o.Name), o.What == "connected to":
			o.What = ""
			group.Objects = append(group.Objects, o)
		default:
			group.More += o.Count
		}
	}
	for _, what := range order {
		if len(kinds[what].Objects) > 0 {
			word := what
			if what == "refused" {
				word = "was refused"
			}
			pr.printf("      the agent %s %s", word, pr.objects(*kinds[what]))
		}
	}
}
