package policy

import (
	"strings"

	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/floor/event"
)

// consent adds to an answer what the rules of consent say about it.
func (x explainer) consent(a *Answer) error {
	if a.Execute != nil && a.Execute.Allowed && a.Execute.Why != aDirectory {
		x.explainPrograms(a)
	}
	if len(x.plan.Ask)+len(x.plan.Deny) == 0 {
		return nil
	}
	g, err := rules.New(x.plan.Ask, x.plan.Deny, rules.Host{Outside: x.plan.outsideWorkspace})
	if err != nil {
		return err
	}
	switch {
	case a.Connect != nil:
		asked, _, err := destination(a.Query)
		if err != nil || loopbackQuery(a.Query) {
			return nil
		}
		at := event.Attempt{Kind: event.KindConnect, Host: asked.Host, Port: 443, Known: a.Connect.Allowed}
		if len(asked.Ports) > 0 {
			at.Port = asked.Ports[0]
		}
		at.Protocol = string(defaultKind(at.Port))
		a.Connect.applyJudgement(g.Judge(at), x.plan)
	case a.Write != nil && !a.Write.Allowed && a.Write.Add != "":
		a.Write.applyJudgement(g.Judge(event.Attempt{Kind: event.KindFile, Path: a.Resolved, Operation: "write"}), x.plan)
	}
	if a.Execute == nil || !a.Execute.Allowed || a.Execute.Why == aDirectory {
		return nil
	}
	may := event.Attempt{Kind: event.KindExec, Path: a.Query, Cut: true, Process: event.Process{Executable: a.Resolved}}
	if names := g.Possible(may); len(names) > 0 {
		a.Execute.Why += "; consent rules depend on its arguments: " + strings.Join(names, ", ")
	}
	return nil
}

// applyJudgement adds what a rule says to a verdict.
func (v *Verdict) applyJudgement(j rules.Judgement, p Plan) {
	rule := j.Rule.Origin
	switch {
	case j.Verdict == event.Denied:
		*v = Verdict{Why: j.Reason, Rule: rule}
	case j.Verdict == event.Unknown && j.Rule.Attended:
		v.Why += "; a human is asked while one is there to answer (" + rule + ")"
	case j.Verdict == event.Unknown && p.Approvals.Timeout == 0:
		*v = Verdict{Why: "a human would be asked, and this run asks nobody", Rule: rule}
	case j.Verdict == event.Unknown:
		v.Why += "; a human is asked first (" + rule + ")"
	}
}
