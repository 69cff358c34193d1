package story

import (
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Approval is a question to a human and its outcome, or a denial by a rule
// without asking.
type Approval struct {
	ID         string    `json:"id,omitempty"` // of the request; "" if no human was asked
	Kind       string    `json:"kind,omitempty"`
	Object     string    `json:"object"` // what it was about: a path, host:port, a tool
	Argv       []string  `json:"argv,omitempty"`
	ArgvLeft   int       `json:"argv_left,omitempty"` // arguments that are not in Argv
	Cwd        string    `json:"cwd,omitempty"`
	Operation  string    `json:"operation,omitempty"` // on a file
	To         string    `json:"to,omitempty"`
	Method     string    `json:"method,omitempty"` // of a request, with its path
	Path       string    `json:"path,omitempty"`
	Credential string    `json:"credential,omitempty"`
	Rule       string    `json:"rule,omitempty"`
	Why        string    `json:"why,omitempty"` // the rule's reason
	Asked      time.Time `json:"asked"`
	Seq        uint64    `json:"seq"`

	Answered  time.Time `json:"answered,omitzero"` // zero: the record has no end of it
	Allowed   bool      `json:"allowed,omitempty"`
	Outcome   string    `json:"outcome,omitempty"` // detail of approval.answer or approval.rule
	By        string    `json:"by,omitempty"`
	Via       string    `json:"via,omitempty"`
	Reason    string    `json:"reason,omitempty"` // of the answer
	Scope     string    `json:"scope,omitempty"`
	Directory string    `json:"directory,omitempty"`
	Grant     string    `json:"grant,omitempty"`
	Expires   string    `json:"expires,omitempty"`
	Count     uint64    `json:"count,omitempty"` // identical attempts; of a rule denials
	Used      uint64    `json:"used,omitempty"`
	Revoked   bool      `json:"revoked,omitempty"`
	RevokedBy string    `json:"revoked_by,omitempty"`
	Expired   bool      `json:"expired,omitempty"`
}

// Change is a change that waited for review, and what was decided about it.
type Change struct {
	Path     string `json:"path"`
	Kind     string `json:"kind,omitempty"`     // added, modified and the like
	Decision string `json:"decision,omitempty"` // the last one: accept, reject, drop or undecided
	By       string `json:"by,omitempty"`
	Applied  bool   `json:"applied,omitempty"` // it reached the tree
	Failed   bool   `json:"failed,omitempty"`  // it could not
	Reason   string `json:"reason,omitempty"`
	Seq      uint64 `json:"seq"` // of the first event
}

// approval takes requests and answers.
func (b *Builder) approval(e *event.Event) {
	id, grant := "id "+cutText(e.Detail["id"]), "grant "+cutText(e.Detail["grant"])
	var a *Approval
	switch e.Action {
	case event.ApprovalRequest:
		b.addApproval(id, e)
		return
	case event.ApprovalAnswer:
		if a = b.approvals[id]; a == nil {
			a = b.addApproval(id, e)
		}
		if a != nil {
			b.setAnswer(a, e)
			if e.Detail["grant"] != "" {
				b.approvals[grant] = a
			}
		}
		return
	case event.ApprovalRule:
		b.addRuleDenial(e)
		return
	}
	if a = b.approvals[grant]; a == nil {
		b.addNote(&b.s.Notes, e) // what it belongs to is not in the record
		return
	}
	switch e.Action {
	case event.ApprovalUse:
		a.Used++
	case event.ApprovalRevoke:
		a.Revoked, a.RevokedBy = true, b.retain(e.Detail["by"])
	case event.ApprovalExpire:
		a.Expired = true
	}
}

// addApproval adds a request for approval; it returns nil if there is no room.
func (b *Builder) addApproval(key string, e *event.Event) *Approval {
	if len(b.s.Approvals) >= b.limits.Refusals || !b.admit(2*len(e.Object), ofAll) {
		b.s.Left.Other++
		return nil
	}
	d := e.Detail
	a := &Approval{
		ID: b.retain(d["id"]), Kind: b.retain(d["kind"]), Object: b.retain(e.Object), Operation: b.retain(d["operation"]), To: b.retain(d["to"]),
		Method: b.retain(d["method"]), Path: b.retain(d["path"]), Credential: b.retain(d["credential"]),
		Rule: b.retain(e.Rule), Asked: e.Time, Seq: e.Seq,
	}
	if a.Kind == string(event.KindExec) {
		a.Argv, a.ArgvLeft = b.arguments(e.Process.Argv)
		a.Cwd = b.retain(e.Process.Cwd)
	}
	if e.Action == event.ApprovalRequest {
		a.Why = b.retain(d["reason"])
	}
	b.approvals[b.retain(key)] = a
	b.s.Approvals = append(b.s.Approvals, a)
	return a
}

func (b *Builder) setAnswer(a *Approval, e *event.Event) {
	d := e.Detail
	a.Answered, a.Allowed, a.Outcome = e.Time, e.Verdict == event.Allowed, b.retain(d["outcome"])
	a.By, a.Via, a.Reason, a.Scope = b.retain(d["by"]), b.retain(d["via"]), b.retain(d["reason"]), b.retain(d["scope"])
	a.Directory, a.Grant, a.Expires = b.retain(d["directory"]), b.retain(d["grant"]), b.retain(d["expires"])
	a.Count = max(1, parseCount(d["count"]))
}

// addRuleDenial adds a denial without a question: all by one rule are one entry.
func (b *Builder) addRuleDenial(e *event.Event) {
	d := e.Detail
	key := "rule " + cutText(d["outcome"]) + " " + cutText(e.Rule) + " " + cutText(e.Object)
	a := b.approvals[key]
	if a == nil {
		if a = b.addApproval(key, e); a == nil {
			return
		}
		a.Answered, a.Outcome, a.Reason = e.Time, b.retain(d["outcome"]), b.retain(d["reason"])
	}
	a.Count += max(1, parseCount(d["count"]))
}

// review takes what was decided about a change, and whether it was applied.
func (b *Builder) review(e *event.Event) {
	if e.Action == event.ReviewApply && e.Object == b.s.Workspace {
		return // it begins: each change follows
	}
	c := b.changes[cutText(e.Object)]
	if c == nil {
		if len(b.changes) >= b.limits.Changes || !b.admit(2*len(e.Object), ofFiles) {
			b.s.Left.Files++
			return
		}
		c = &Change{Path: b.retain(e.Object), Seq: e.Seq}
		b.changes[c.Path] = c
		b.s.Changes = append(b.s.Changes, c)
	}
	if by := e.Detail["by"]; by != c.By {
		c.By = b.retain(by)
	}
	if e.Action == event.ReviewAnswer {
		c.Decision, c.Kind = b.retain(e.Detail["decision"]), b.retain(e.Detail["kind"])
		return
	}
	c.Applied, c.Failed = e.Verdict == event.Allowed, e.Verdict == event.Denied
	if why := e.Detail["reason"]; why != "" {
		c.Reason = b.retain(why)
	}
}
