package story

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// consent is an event of an approval.
func consent(action string, verdict event.Verdict, pairs ...string) event.Event {
	e := detail(event.Event{Action: action, Sensor: event.Approve, Object: "/usr/bin/git", Rule: "p.yaml:3", Verdict: verdict,
		Process: event.Process{PID: 9, Executable: "/usr/bin/git", Cwd: "/w", Argv: []string{"git", "push"}}}, pairs...)
	e.Detail["kind"] = "exec"
	return e
}

func TestApprovals(t *testing.T) {
	s := tell(
		consent(event.ApprovalRequest, event.Unknown, "id", "a", "reason", "leaves the machine"),
		consent(event.ApprovalAnswer, event.Allowed, "id", "a", "outcome", "answer", "by", "alice", "via", "terminal", "scope", "session", "grant", "g"),
		consent(event.ApprovalUse, event.Allowed, "grant", "g"),
		consent(event.ApprovalUse, event.Allowed, "grant", "g"),
		consent(event.ApprovalRevoke, event.Unknown, "grant", "g", "by", "bob"),
		consent(event.ApprovalRequest, event.Unknown, "id", "b"),
		consent(event.ApprovalAnswer, event.Denied, "id", "b", "outcome", "timeout", "reason", "nobody answered in time"),
		consent(event.ApprovalRule, event.Denied, "outcome", "limit", "reason", "too often"),
		consent(event.ApprovalRule, event.Denied, "outcome", "limit", "reason", "too often", "count", "40"),
		consent(event.ApprovalUse, event.Allowed, "grant", "of another record"),
		consent(event.ApprovalRequest, event.Unknown, "id", "c"),
	)
	var got []string
	for _, a := range s.Approvals {
		got = append(got, fmt.Sprintf("%s %s %v: %t %s by %q, used %d, revoked by %q, count %d", a.ID, strings.Join(a.Argv, " "), a.Answered.IsZero(), a.Allowed, a.Outcome, a.By, a.Used, a.RevokedBy, a.Count))
	}
	want := []string{
		`a git push false: true answer by "alice", used 2, revoked by "bob", count 1`,
		`b git push false: false timeout by "", used 0, revoked by "", count 1`,
		` git push false: false limit by "", used 0, revoked by "", count 41`,
		`c git push true: false  by "", used 0, revoked by "", count 0`,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(s.Refusals) != 0 || len(s.Notes) != 1 || s.Unknown != 0 {
		t.Errorf("refusals %v, notes %v, %d unknown", s.Refusals, s.Notes, s.Unknown)
	}
}

func TestChanges(t *testing.T) {
	review := func(action, path string, verdict event.Verdict, pairs ...string) event.Event {
		return detail(event.Event{Action: action, Sensor: event.Approve, Object: path, Verdict: verdict}, append(pairs, "by", "alice")...)
	}
	s := tell(
		event.Event{Action: event.SessionStart, Object: "/w"},
		review(event.ReviewApply, "/w", event.Allowed),
		review(event.ReviewAnswer, "/w/a", event.Denied, "decision", "reject", "kind", "added"),
		review(event.ReviewAnswer, "/w/a", event.Allowed, "decision", "accept", "kind", "added"),
		review(event.ReviewApply, "/w/a", event.Allowed),
		review(event.ReviewAnswer, "/w/b", event.Allowed, "decision", "accept", "kind", "modified"),
		review(event.ReviewApply, "/w/b", event.Denied, "reason", "conflict"),
	)
	if len(s.Changes) != 2 || *s.Changes[0] != (Change{Path: "/w/a", Kind: "added", Decision: "accept", By: "alice", Applied: true, Seq: 3}) ||
		*s.Changes[1] != (Change{Path: "/w/b", Kind: "modified", Decision: "accept", By: "alice", Failed: true, Reason: "conflict", Seq: 6}) {
		t.Errorf("%+v", s.Changes)
	}
}
