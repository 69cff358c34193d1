//go:build linux

package supervise

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// handleRecord handles one audit record.
func (a *LandlockAudit) handleRecord(kind uint16, text string, now time.Time) {
	switch kind {
	case auditSyscall, auditEnd, auditLandlockAccess, auditLandlockDomain:
	default:
		return
	}
	r, ok := parseAudit(kind, text)
	if !ok {
		return
	}
	if kind == auditLandlockDomain {
		a.domain(r)
		return
	}
	a.mu.Lock()
	e := a.open[r.serial]
	switch {
	case kind == auditLandlockAccess && e == nil && len(a.open) < auditWaiting:
		a.order++
		a.open[r.serial] = &auditEvent{access: []auditRecord{r}, since: now, order: a.order}
	case kind == auditLandlockAccess && e == nil:
		a.mu.Unlock()
		a.denied(auditEvent{access: []auditRecord{r}})
		return
	case e == nil: // not about Landlock
	case kind == auditLandlockAccess:
		e.access = append(e.access, r)
	case kind == auditSyscall:
		e.call = r
	case kind == auditEnd:
		delete(a.open, r.serial)
		a.mu.Unlock()
		a.denied(*e)
		return
	}
	a.mu.Unlock()
}

// settle takes events to be whole that began before a moment.
func (a *LandlockAudit) settle(before time.Time) {
	var whole []*auditEvent
	a.mu.Lock()
	for serial, e := range a.open {
		if e.since.Before(before) {
			whole = append(whole, e)
			delete(a.open, serial)
		}
	}
	a.mu.Unlock()
	slices.SortFunc(whole, func(x, y *auditEvent) int { return cmp.Compare(x.order, y.order) })
	for _, e := range whole {
		a.denied(*e)
	}
}

// find returns the state of a domain; nil when there are too many. The caller
// holds a.mu.
func (a *LandlockAudit) find(id string) *landlockDomain {
	d := a.domains[id]
	if d != nil || id == "" {
		return d
	}
	if len(a.domains) >= auditDomains {
		for other, o := range a.domains { // of another run
			if !o.ours {
				delete(a.domains, other)
				break
			}
		}
		if len(a.domains) >= auditDomains {
			return nil
		}
	}
	d = &landlockDomain{}
	a.domains[id] = d
	return d
}

// denied handles an event whose records have all arrived. The first denial of a domain
// comes before the record that says whose it is.
func (a *LandlockAudit) denied(e auditEvent) {
	for _, access := range e.access {
		a.mu.Lock()
		d := a.find(access.fields["domain"])
		one := auditEvent{access: []auditRecord{access}, call: e.call}
		switch {
		case d == nil, d.known && !d.ours:
			a.mu.Unlock()
			continue
		case !d.known:
			if len(d.waiting) < auditWaiting {
				d.waiting = append(d.waiting, one)
			}
			a.mu.Unlock()
			continue
		}
		d.denials++
		a.mu.Unlock()
		a.report(one)
	}
}

// domain handles the record that a domain denied something for the first time, and
// which process made it; or that it is gone, and how often it did.
func (a *LandlockAudit) domain(r auditRecord) {
	a.mu.Lock()
	d := a.find(r.fields["domain"])
	if d == nil {
		a.mu.Unlock()
		return
	}
	var waiting []auditEvent
	switch r.fields["status"] {
	case "allocated":
		d.known, d.ours = true, a.root != 0 && r.number("pid") == a.root
		waiting, d.waiting = d.waiting, nil
		if d.ours {
			d.denials += uint64(len(waiting))
		} else {
			waiting = nil
		}
	case "deallocated":
		a.mu.Unlock()
		a.settle(time.Now().Add(time.Hour)) // what belongs to it came before
		a.ended(r)
		return
	}
	a.mu.Unlock()
	for _, e := range waiting {
		a.report(e)
	}
}

// ended compares what the kernel counted with what arrived.
func (a *LandlockAudit) ended(r auditRecord) {
	id := r.fields["domain"]
	counted, err := strconv.ParseUint(r.fields["denials"], 10, 64)
	a.mu.Lock()
	d := a.domains[id]
	if d == nil || !d.ours {
		delete(a.domains, id)
		a.mu.Unlock()
		return
	}
	if d.ended || err != nil {
		a.mu.Unlock()
		return
	}
	d.ended = true
	a.stats.Kernel += counted
	lost := uint64(0)
	if counted > d.denials {
		lost = counted - d.denials
		a.stats.Lost += lost
	}
	a.mu.Unlock()
	if lost > 0 {
		a.observe(event.Event{Sensor: event.Landlock, Action: event.RecordDrop, Object: string(event.Landlock), Detail: map[string]string{
			"of": string(event.Landlock), "count": strconv.FormatUint(lost, 10), "kernel": r.fields["denials"], "domain": id,
			"reason": "the kernel counted more denials than it reported"}})
	}
}

// lingering reports whether a domain of ours has not ended.
func (a *LandlockAudit) lingering() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) > 0 {
		return true
	}
	for _, d := range a.domains {
		if d.ours && !d.ended {
			return true
		}
	}
	return false
}

// remain reports what could not be compared: domains that did not end, and, if records
// were lost, that there may be one that was never reported.
func (a *LandlockAudit) remain() {
	var ids []string
	compared := false
	a.mu.Lock()
	for id, d := range a.domains {
		compared = compared || d.ours && d.ended
		if d.ours && !d.ended {
			d.ended = true
			ids = append(ids, id)
		}
	}
	overrun := a.overrun || a.lost() != a.lostBefore
	if overrun && !compared && len(ids) == 0 {
		ids = append(ids, "unknown")
	}
	a.stats.Ended = len(ids) == 0
	a.mu.Unlock()
	for _, id := range ids {
		a.observe(event.Event{Sensor: event.Landlock, Action: event.RecordDrop, Object: string(event.Landlock), Detail: map[string]string{
			"of": string(event.Landlock), "count": "unknown", "domain": id, "reason": "the kernel did not say how many denials there were"}})
	}
}

// report makes the event of a denial.
func (a *LandlockAudit) report(d auditEvent) {
	e := landlockEvent(d.access[0], d.call)
	if pid := e.Process.PID; pid != 0 && a.config.Process != nil {
		e.Process = a.config.Process(pid)
		e.Process.PID = pid
	}
	a.mu.Lock()
	a.stats.Denials++
	a.mu.Unlock()
	a.flood.add(e)
}

func (a *LandlockAudit) observe(e event.Event) {
	if err := a.config.Sink.Observe(e); err != nil {
		a.failed.set(err)
	}
}
