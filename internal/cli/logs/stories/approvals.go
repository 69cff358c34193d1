package stories

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/story"
)

// approvalLines is how many approvals, and reviewed changes, log show has lines
// for, unless --long.
const approvalLines = 100

// approvals shows what a human was asked and answered, and what was denied without
// asking.
func (pr *printer) approvals() {
	if len(pr.t.Approvals) == 0 {
		return
	}
	pr.title("APPROVALS")
	for i, a := range pr.t.Approvals {
		if i >= approvalLines && !pr.long {
			pr.printf("  … and %s", words.Plural(len(pr.t.Approvals)-i, "more", "more"))
			return
		}
		why := ""
		if a.Rule != "" || a.Why != "" {
			why = "  [" + strings.TrimPrefix(text.Line(a.Rule)+": ", ": ") + text.Line(a.Why)
			why = strings.TrimSuffix(why, ": ") + "]"
		}
		pr.printf("  %s%s%s", pr.attempt(a), why, pr.a.Tint(command.Grey, fmt.Sprintf("  #%d", a.Seq)))
		pr.printf("      %s", pr.result(a))
		for _, line := range usage(a) {
			pr.printf("      %s", line)
		}
	}
}

// attempt is what a person was asked about.
func (pr *printer) attempt(a *story.Approval) string {
	width := 400
	if pr.long {
		width = 4000
	}
	object := words.Cut(a.Object, width)
	switch event.Kind(a.Kind) {
	case event.KindExec:
		s := object
		if len(a.Argv) > 0 {
			s = words.CommandLine(a.Argv, a.ArgvLeft, width)
		}
		if a.Cwd != "" {
			s += "  in " + words.Cut(a.Cwd, 200)
		}
		return "run " + s
	case event.KindFile:
		s := text.Line(a.Operation) + " " + object
		if a.To != "" {
			s += " to " + words.Cut(a.To, width)
		}
		return s
	case event.KindConnect:
		return "connect to " + object
	case event.KindRequest:
		return text.Line(a.Method) + " " + object + text.Line(a.Path)
	case event.KindCredential:
		return "use the credential " + text.Word(a.Credential) + " for " + object
	case event.KindTool:
		return "call the tool " + object
	}
	return text.Line(a.Kind) + " " + object
}

// result is the outcome of an approval.
func (pr *printer) result(a *story.Approval) string {
	after := ""
	if a.Answered.IsZero() {
		return pr.a.Tint(command.Yellow, "asked, and no answer is recorded")
	}
	if a.ID != "" {
		after = " after " + words.Lasted(a.Answered.Sub(a.Asked))
	}
	who := " by " + text.Word(a.By)
	if a.Via != "" {
		who += " (" + text.Line(a.Via) + ")"
	}
	reason := ""
	if a.Reason != "" {
		reason = ": " + text.Line(a.Reason)
	}
	switch {
	case a.Allowed:
		return "allowed" + who + after + scope(a) + reason
	case a.ID == "":
		return pr.a.Tint(command.Red, "denied without asking") + words.Times(a.Count) + reason
	case a.Outcome == "answer":
		return pr.a.Tint(command.Red, "denied") + who + after + reason
	case a.Outcome == "timeout":
		return pr.a.Tint(command.Red, "denied") + ": no answer within " + words.Lasted(a.Answered.Sub(a.Asked))
	}
	return pr.a.Tint(command.Red, "denied") + after + reason
}

func scope(a *story.Approval) string {
	s := ""
	switch a.Scope {
	case "once":
		s = ", once"
	case "session":
		s = ", until the run ends"
	case "for":
		s = ", until " + text.Line(a.Expires)
	}
	if a.Directory != "" {
		s += ", everything below " + words.Cut(a.Directory, 200)
	}
	return s
}

// usage is how often an approval was used, and how it ended.
func usage(a *story.Approval) []string {
	if !a.Allowed {
		return nil
	}
	lines := []string{"never used"}
	if a.Used > 0 {
		lines[0] = "used" + words.Times(a.Used)
	}
	if a.Used == 1 && a.Scope == "once" {
		lines = nil
	}
	if a.Revoked {
		lines = append(lines, "taken back by "+text.Word(a.RevokedBy))
	}
	if a.Expired {
		lines = append(lines, "expired")
	}
	return lines
}

// reviewed are the changes that were accepted, rejected and applied.
func (pr *printer) reviewed() {
	if len(pr.t.Changes) == 0 {
		return
	}
	pr.title("REVIEWED")
	for i, c := range pr.t.Changes {
		if i >= approvalLines && !pr.long {
			pr.printf("  … and %s", words.Plural(len(pr.t.Changes)-i, "more change", "more changes"))
			return
		}
		decision := pastTense(c.Decision)
		switch {
		case c.Applied:
			decision = strings.TrimPrefix(decision+", applied", ", ")
		case c.Failed:
			decision = strings.TrimPrefix(decision+", "+pr.a.Tint(command.Red, "not applied"), ", ")
		}
		if c.By != "" {
			decision += " by " + text.Word(c.By)
		}
		if c.Reason != "" {
			decision += ": " + text.Line(c.Reason)
		}
		pr.printf("  %s  %s%s", words.Cut(c.Path, 400), decision, pr.a.Tint(command.Grey, fmt.Sprintf("  #%d", c.Seq)))
	}
}

// pastTense is a decision in the past tense.
func pastTense(decision string) string {
	switch decision {
	case "accept":
		return "accepted"
	case "reject":
		return "rejected"
	case "drop":
		return "dropped"
	}
	return text.Line(decision)
}
