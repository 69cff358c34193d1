package incident

import (
	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/record/story"
)

// permittedBlocks are what got through because a rule or a person allowed it.
func (t *writer) permittedBlocks() []document.Block {
	blocks := t.approvedBlocks()
	if hosts := t.reachedBlock(); len(hosts.Items) > 0 {
		blocks = append(blocks, hosts)
	}
	if len(t.credentials.list) > 0 {
		b := paragraph("Credentials that were used where the policy lends them. The command had a stand-in; the secret was put in on the way out:")
		for _, l := range t.credentials.list {
			item := bullet("%s at %s, %s, %s%s.", l.name, l.where, times(l.count), timeRange(l.span), byRules(l.rules))
			b.Items = append(b.Items, item)
		}
		blocks = append(blocks, b)
	}
	if n := len(t.outside.list); n > 0 {
		b := t.placesBlock("Changed outside of the workspace. Where the policy grants no writing there, it went to private storage and is gone with the run:", &t.outside)
		blocks = append(blocks, b)
	}
	if t.wrote > 0 {
		blocks = append(blocks, paragraph("It wrote to the workspace %s. The workspace is its to change; what a host executes of it is listed under Check or rotate. All paths: %s",
			times(t.wrote), "holdfast log files --written "+t.o.Session))
	}
	if len(blocks) == 0 {
		return []document.Block{paragraph("Nothing: no rule and no person let anything through, and no file of the workspace was changed.")}
	}
	return blocks
}

// approvedBlocks is what people allowed.
func (t *writer) approvedBlocks() []document.Block {
	b := paragraph("A person was asked, and allowed it:")
	left := uint64(0)
	for _, a := range t.s.Approvals {
		if !a.Allowed {
			continue
		}
		if len(b.Items) >= lines {
			left++
			continue
		}
		b.Items = append(b.Items, t.approval(a))
	}
	if len(b.Items) == 0 {
		return nil
	}
	return append([]document.Block{b}, t.omittedBlocks(left, "approval", "approvals")...)
}

// approval describes one approval.
func (t *writer) approval(a *story.Approval) document.Item {
	what := cut(a.Object, 300)
	if len(a.Argv) > 0 {
		what = cut(commandLine(a.Argv), 300)
	}
	item := bullet("%s (%s): asked at %s, allowed by %s at %s.", what, document.Words(approvalKind(a.Kind)), clock(a.Asked), a.By, clock(a.Answered))
	far := document.Sentence("It held once")
	switch a.Scope {
	case "session":
		far = document.Sentence("It held until the run ended")
	case "for":
		far = document.Sentence("It held until %s", document.Words(a.Expires))
	}
	if a.Directory != "" {
		far = append(far, document.Sentence(", for everything below %s", cut(a.Directory, 300))...)
	}
	far = append(far, document.Sentence("; used %s", map[bool]document.Words{true: "never", false: times(a.Used)}[a.Used == 0])...)
	if a.Revoked {
		far = append(far, document.Sentence("; taken back by %s", a.RevokedBy)...)
	}
	item.More = append(item.More, append(far, document.Sentence(".")...))
	if a.Rule != "" || a.Reason != "" {
		addLine(&item, "Rule %s. Reason of the answer: %s", orElse(a.Rule, "not named"), document.Words(orElse(a.Reason, "none was given")))
	}
	return item
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return cut(s, 400)
}

// approvalKind is what an approval was about.
func approvalKind(kind string) string {
	words := map[string]string{"exec": "to execute", "file": "to change a file", "connect": "to connect", "request": "to send a request", "credential": "to use a credential", "tool": "to call a tool"}
	if w := words[kind]; w != "" {
		return w
	}
	return "of a kind that is not known"
}

// byRules names the rules that let something through.
func byRules(rules names) document.Prose {
	if len(rules.list) == 0 {
		return nil
	}
	return append(document.Sentence(", by rule "), nameList(rules)...)
}

// reachedBlock are the hosts that were reached.
func (t *writer) reachedBlock() document.Block {
	b := paragraph("Hosts that it reached. Bytes out are what left the boundary:")
	list, others, out := t.topHosts()
	for _, h := range list {
		requests := document.Words("")
		if h.requests > 0 {
			requests = ", " + plural(h.requests, "answered request", "answered requests")
		}
		item := bullet("%s: %s%s, %s out, %s in, %s%s.", h.name, plural(h.count, "connection", "connections"), requests, size(h.out), size(h.in), timeRange(h.span), byRules(h.rules))
		if len(h.methods.list) > 0 {
			addLine(&item, "Methods: %s.", nameList(h.methods))
		} else {
			addLine(&item, "Its requests were not looked into: what was sent, and what came back, is not in the record.")
		}
		b.Items = append(b.Items, item)
	}
	if others > 0 || t.hosts.more > 0 {
		b.Items = append(b.Items, bullet("Further hosts, which are not listed, with up to %s out: %s", size(out), "holdfast log net "+t.o.Session))
	}
	return b
}

// placesBlock is a list of directories with what was changed in them.
func (t *writer) placesBlock(title string, places *boundedList[changedDir]) document.Block {
	b := paragraph("%s", document.Words(title))
	for _, p := range places.list {
		b.Items = append(b.Items, bullet("In %s: %s, %s, %s.", p.dir, nameList(p.paths), times(p.count), timeRange(p.span)))
	}
	if places.more > 0 {
		b.Items = append(b.Items, bullet("Changes in further directories, which are not listed: %s.", places.more))
	}
	return b
}
