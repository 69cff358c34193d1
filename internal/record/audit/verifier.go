package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// verifier puts the parts of a log together.
type verifier struct {
	keys     note.Verifiers
	report   Report
	last     link
	breaks   []link // with lines counted from the beginning of the log
	sensors  map[string]*numbers
	want     map[uint64]bool       // lines that checkpoints kept outside cover
	stops    map[uint64]checkpoint // checkpoints of the log that cover the same, by their lines
	unknown  map[uint32]bool
	ended    *event.Event // session.end
	level    string       // of the record, as its first line says; "" for none
	starts   []sensorStart
	blind    map[string]bool // what was not seen
	finished bool            // the checkpoint that ends the log was found
	cuts     map[string][]interval
	drops    map[string][]interval
	rest     []byte
	restAt   int64
}

func newVerifier(keys note.Verifiers) *verifier {
	return &verifier{
		keys: keys, report: Report{Verdict: Complete, Sensors: map[string]Count{}}, sensors: map[string]*numbers{},
		stops: map[uint64]checkpoint{}, unknown: map[uint32]bool{},
		cuts: map[string][]interval{}, drops: map[string][]interval{}, want: map[uint64]bool{}, blind: map[string]bool{},
	}
}

func (v *verifier) note(text string) { v.report.Notes = append(v.report.Notes, text) }

func (v *verifier) problem(p Problem) {
	if p.Verdict.rank() > v.report.Verdict.rank() {
		v.report.Verdict = p.Verdict
	}
	if len(v.report.Problems) >= maxProblems {
		v.report.More++
		return
	}
	v.report.Problems = append(v.report.Problems, p)
}

// problemAt adds a problem of one line.
func (v *verifier) problemAt(verdict Verdict, l link, format string, args ...any) {
	v.problem(Problem{verdict, l.seq, l.line, l.offset, fmt.Sprintf(format, args...)})
}

// addBlock adds the next part.
func (v *verifier) addBlock(b *block[part]) {
	p := &b.result
	v.rest, v.restAt = p.rest, p.restAt
	if p.lines == 0 {
		return
	}
	v.join(p)
	base := v.report.Lines + 1 // the line on which the part begins
	for _, x := range p.problems {
		x.Line += base
		v.problem(x)
	}
	for _, l := range p.breaks {
		l.line += base
		v.breaks = append(v.breaks, l)
	}
	for name, n := range p.sensors {
		of := v.sensors[name]
		if of == nil {
			of = &numbers{}
			v.sensors[name] = of
		}
		of.unnumbered += n.unnumbered
		for _, r := range n.runs {
			of.add(r)
		}
	}
	v.takeSpecials(p, base)
	v.last = p.last
	v.last.line += base
	v.report.Lines += p.lines
}

// join checks the first line of a part against the last of the one before.
func (v *verifier) join(p *part) {
	first := p.head
	if v.report.Lines > 0 {
		first.before = v.last.offset
		if !first.parsed && len(p.problems) > 0 {
			p.problems[0].Seq = v.last.seq + 1
		}
		var joint part
		joint.chain(v.last, first)
		p.problems = append(joint.problems, p.problems...)
		p.breaks = append(joint.breaks, p.breaks...)
		if p.session != "" && v.report.Session != "" && p.session != v.report.Session {
			p.fail(first, "it belongs to session %q, the log to %q", p.session, v.report.Session)
		}
	} else if first.parsed {
		switch {
		case first.seq != 1:
			p.fail(first, "%s", sequenceError(0, first.seq))
		case string(first.prev[:]) != zeroHash:
			p.fail(first, "it is the first record but names a line before it")
		}
	}
	if v.report.Session == "" {
		v.report.Session = p.session
	}
}

// takeSpecials takes checkpoints, the events of the session and those of the record itself.
func (v *verifier) takeSpecials(p *part, base int) {
	if v.finished {
		l := p.head
		l.line += base
		v.problemAt(Tampered, l, "the log had ended before it")
	} else if v.ended != nil && p.ordinary >= 0 {
		v.problem(Problem{Verdict: Gaps, What: "events came after the end of the session and are in no count"})
	}
	for _, s := range p.specials {
		l := s.link
		last := l.line == p.lines-1
		ordinary := p.ordinary > l.line
		l.line += base
		switch {
		case s.checkpoint != nil:
			v.checkpoint(l, s.checkpoint)
			if s.checkpoint.end {
				v.finished = true
				if !last {
					v.problemAt(Tampered, l, "the log should end with this checkpoint, but something follows")
				}
			}
		case s.event.Action == event.SessionEnd:
			if v.ended != nil {
				v.problemAt(Gaps, l, "the session ends a second time")
			}
			v.ended = s.event
			if ordinary {
				v.problemAt(Gaps, l, "events came after the end of the session and are in no count")
			}
		case s.event.Action == event.RecordBegin:
			v.level = cmp.Or(v.level, s.event.Detail["level"])
		case s.event.Action == event.SessionStart:
			v.starts = append(v.starts, sensorStart{l, s.event})
		case s.event.Action == event.RecordBlind:
			v.addBlind(l, s.event)
		default:
			v.addLoss(l, s.event)
		}
	}
}

// checkpoint notes what a signature covers. An unknown key is reported once.
func (v *verifier) checkpoint(l link, c *checkpoint) {
	v.report.Checkpoints++
	if v.want[c.lines] {
		v.stops[c.lines] = *c
	}
	hash := fmt.Sprintf("%08x", c.key)
	if !slices.Contains(v.report.Keys, hash) {
		v.report.Keys = append(v.report.Keys, hash)
	}
	switch {
	case c.signed:
		v.report.Signed = l.seq
	case !v.unknown[c.key]:
		v.unknown[c.key] = true
		v.problemAt(Unverifiable, l, "the key %s that signed the checkpoint is not known here", hash)
	}
}

// checkEnd checks what follows the last line and the last signature.
func (v *verifier) checkEnd() {
	v.reportBreaks()
	switch {
	case len(v.rest) > 0 && v.finished:
		v.problem(Problem{Verdict: Tampered, Line: v.report.Lines + 1, Offset: v.restAt, What: "the log had ended before it"})
	case len(v.rest) > 0 && !v.report.Open:
		v.problem(Problem{Verdict: Gaps, Line: v.report.Lines + 1, Offset: v.restAt,
			What: fmt.Sprintf("the last line is incomplete: it has %d bytes of a record", len(v.rest))})
	}
	v.report.Head = string(v.last.hash[:])
	if v.report.Lines == 0 {
		v.report.Head = zeroHash
	}
	switch unsigned := v.last.seq - min(v.report.Signed, v.last.seq); {
	case v.finished:
		v.report.Open = false
	case v.report.Open && unsigned > 0:
		v.note(fmt.Sprintf("the last %d records have no signature yet", unsigned))
	case v.report.Open:
	case v.report.Lines == 0:
		v.problem(Problem{Verdict: Gaps, What: "the log has no record: its run was interrupted, or everything was removed"})
	default:
		v.problem(Problem{Verdict: Gaps, What: fmt.Sprintf(
			"the log has no end after record %d: its run was interrupted, or the end was removed; what followed is not known, and the last %d records have no signature", v.last.seq, unsigned)})
	}
}

// reportBreaks adds a problem for each record whose hash is not the one that
// the next record names. A record whose own "prev" was altered fits neither
// neighbour, and such a checkpoint does not fit its own text.
func (v *verifier) reportBreaks() {
	named := map[int]bool{}
	for _, p := range v.report.Problems {
		named[p.Line] = true
	}
	for i := 0; i < len(v.breaks); i++ {
		l := v.breaks[i]
		if i+1 < len(v.breaks) && v.breaks[i+1].line == l.line+1 {
			v.problemAt(Tampered, l, "it was altered: it names another record before it, and the next one does not name it")
			i++
			continue
		}
		if !named[l.line] {
			v.problemAt(Tampered, link{seq: l.seq - 1, line: l.line - 1, offset: l.before}, "it is not as it was written: the next record has another hash of it")
		}
	}
}

// finish sorts the problems by their place in the log.
func (v *verifier) finish() Report {
	slices.SortStableFunc(v.report.Problems, func(a, b Problem) int {
		switch {
		case a.Line == b.Line:
			return 0
		case b.Line == 0 || a.Line != 0 && a.Line < b.Line:
			return -1
		}
		return 1
	})
	slices.Sort(v.report.Keys)
	return v.report
}

// names are the sensors in order.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
