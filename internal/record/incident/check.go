package incident

import (
	"slices"

	"holdfast.dev/holdfast/internal/floor/document"
)

// check lists what a human should look at or replace.
func (t *writer) check() []document.Block {
	var blocks []document.Block
	list := func(b document.Block) {
		if len(b.Items) > 0 {
			b.Checks = true
			t.todo += uint64(len(b.Items))
			blocks = append(blocks, b)
		}
	}
	list(t.credentialChecks())
	list(t.honeyChecks())
	list(t.hostChecks())
	list(t.executedChecks())
	list(t.heldChecks())
	list(t.waitingChecks())
	if len(t.private.list) > 0 {
		blocks = append(blocks, t.placesBlock("Nothing to do: kept private and gone with the run, so that the host has none of it:", &t.private))
	}
	if len(blocks) == 0 {
		return []document.Block{paragraph("The record names nothing.")}
	}
	return blocks
}

func (t *writer) credentialChecks() document.Block {
	b := paragraph("Credentials that were lent. The command did not have the secret, but it could use it: look in the account for what was done in this time, and rotate it if you cannot account for all of it:")
	for _, l := range t.credentials.list {
		b.Items = append(b.Items, bullet("%s, used at %s, %s (%s).", l.name, l.where, timeRange(l.span), times(l.count)))
	}
	if t.credentials.more > 0 {
		b.Items = append(b.Items, bullet("Further uses that are not listed: %s.", t.credentials.more))
	}
	return b
}

func (t *writer) honeyChecks() document.Block {
	b := paragraph("Fake credentials that were touched. They open nothing and need no rotation; nothing that does its own work opens one, so find out what did:")
	for _, h := range t.honey.list {
		did := "read"
		if h.sent {
			did = "sent to"
		}
		b.Items = append(b.Items, bullet("%s %s, %s, %s.", document.Words(did), h.where, times(h.count), timeRange(h.span)))
	}
	return b
}

func (t *writer) hostChecks() document.Block {
	b := paragraph("Hosts that bytes went to. Is each of them one that this work needs? What can be read in the workspace may have been sent there:")
	list, _, out := t.topHosts()
	if out > 0 {
		b.Items = append(b.Items, bullet("Hosts that are not listed here: up to %s out. See %s", size(out), "holdfast log net "+t.o.Session))
	}
	for _, h := range list {
		if h.out > 0 || h.requests > 0 {
			b.Items = append(b.Items, bullet("%s: %s out, %s.", h.name, size(h.out), timeRange(h.span)))
		}
	}
	return b
}

// flags are files that a host executes for one reason, and that were changed in the same way.
type flags struct {
	change, reason string
	count          uint64
	paths          names
}

// executedChecks are the files that a host executes: as found at the end if
// that is kept, else as the record has them.
func (t *writer) executedChecks() document.Block {
	b := paragraph("Files that were changed and that a host executes or obeys. Read each before you build, test, commit, open the directory in an editor, or push:")
	seen := map[string]bool{}
	if c := t.f.Changes; c != nil && c.Waits == 0 {
		var found boundedList[flags]
		for _, f := range c.Flags {
			path := t.shortPath(f.Path)
			if seen[path] = true; f.Held != "" {
				continue
			}
			if g := found.entry(f.Reason+"\x00"+f.Change, reasons); g != nil {
				g.change, g.reason = f.Change, f.Reason
				g.count++
				g.paths.add(path)
			}
		}
		for _, g := range found.list {
			b.Items = append(b.Items, bullet("%s (%s)%s: %s.", nameList(g.paths), document.Words(g.change), repeatCount(g.count), document.Words(g.reason)))
		}
		if found.more > 0 {
			b.Items = append(b.Items, bullet("%s more; see %s", found.more, "holdfast review "+t.o.Session))
		}
	}
	left := t.remainingExecutables()
	if t.reviewed() || t.f.Changes != nil && t.f.Changes.Whole {
		left = nil // it wrote to a view of the workspace, or what is left of it was found at the end
	}
	for _, x := range left {
		var rest names
		for _, p := range x.paths.list {
			if !seen[p] {
				rest.add(p)
			}
		}
		rest.more = x.paths.more
		if len(rest.list) == 0 && (!rest.more || len(seen) > 0) {
			continue
		}
		b.Items = append(b.Items, bullet("%s (written at %s): %s.", nameList(rest), timeRange(x.span), document.Words(x.reason)))
	}
	if t.executed.more > 0 {
		b.Items = append(b.Items, bullet("Further such changes that are not listed: %s.", t.executed.more))
	}
	return b
}

// heldChecks are what was moved out of the workspace, at the end or afterwards.
func (t *writer) heldChecks() document.Block {
	b := paragraph("Held back: a host would have executed it, so it was moved out of the workspace. 'holdfast review' shows it, and takes back what you accept; what lay outside the workspace is in the directory quarantine of the session:")
	for _, path := range t.held {
		item := bullet("%s", cut(t.shortPath(path), 300))
		if c := t.f.Changes; c != nil {
			if i := slices.IndexFunc(c.Flags, func(f Flagged) bool { return f.Path == path && f.Held != "" }); i >= 0 {
				item = bullet("%s, now at %s: %s.", cut(t.shortPath(path), 300), cut(c.Flags[i].Held, 600), document.Words(c.Flags[i].Reason))
			}
		}
		b.Items = append(b.Items, item)
	}
	if t.heldMore > 0 {
		b.Items = append(b.Items, bullet("Further ones that are not listed: %s.", t.heldMore))
	}
	for i, line := range t.f.Settled {
		if i == lines {
			b.Items = append(b.Items, bullet("%s more; see %s", len(t.f.Settled)-i, "holdfast log show "+t.o.Session))
			break
		}
		b.Items = append(b.Items, bullet("Found after the supervisor was killed: %s", cut(line, 600)))
	}
	return b
}

// reviewed reports whether the run worked on a view of the workspace, from
// which only what a person accepts reaches the workspace.
func (t *writer) reviewed() bool { return t.s.Started["review"] != "" }

func (t *writer) waitingChecks() document.Block {
	b := paragraph("Held for review. The run worked on a view of the workspace: nothing of it reaches the workspace before you accept it.")
	c := t.f.Changes
	switch {
	case c != nil && c.Waits > 0:
		item := bullet("%s. Decide with %s", plural(uint64(c.Waits), "change waits", "changes wait"), "holdfast review "+t.o.Session)
		for _, f := range c.Flags[:min(rowsOf, len(c.Flags))] {
			addLine(&item, "A host would execute %s: %s.", cut(t.shortPath(f.Path), 300), document.Words(f.Reason))
		}
		if n := len(c.Flags) - rowsOf; n > 0 {
			addLine(&item, "And %s more that a host would execute.", n)
		}
		b.Items = append(b.Items, item)
	case t.reviewed():
		b.Items = append(b.Items, bullet("Nothing waits any more. What was accepted, and by whom: %s", "holdfast log show "+t.o.Session+"-review"))
	}
	return b
}
