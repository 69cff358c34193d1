package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// part is what was found in a block of a log. Lines are counted from 0 in the
// block until the parts are put together.
type part struct {
	blockScan      // with records only if they are asked for
	head      link // of the first line
	last      link // of the last line
	session   string
	breaks    []link // lines that were not written after the one before them
	problems  []Problem
	sensors   map[string]*numbers
	specials  []special
	ordinary  int    // the last line with an event of another sensor than "record"; -1 for none
	rest      []byte // what follows the last newline
	restAt    int64
}

// link is what chains a line to its neighbours.
type link struct {
	line   int
	seq    uint64
	offset int64
	parsed bool
	prev   [hashLen]byte // hash of the line before, as this line says
	hash   [hashLen]byte
	before int64 // offset of the line before
}

// numbers are the numbers of one sensor's events.
type numbers struct {
	runs       []interval
	unnumbered uint64
}

// special is a checkpoint, or an event about the session or the record.
type special struct {
	link       link
	checkpoint *checkpoint
	event      *event.Event // session.start, session.end, record.*
}

// checkBlock checks what a block alone can show, and keeps its events if they
// are to be read.
func checkBlock(b *block[part], keys note.Verifiers, read bool) error {
	p := &b.result
	*p = part{blockScan: blockScan{records: p.records[:0]}, ordinary: -1, sensors: map[string]*numbers{}}
	c := checker{part: p, keys: keys}
	return b.lines(func(line []byte, at int64, whole bool) error {
		if !whole {
			p.rest, p.restAt = bytes.Clone(line), at
			p.addTorn(line)
			return nil
		}
		c.r = p.next()
		c.line(line, at, b.parse(line, c.r))
		if event := c.last.parsed && c.r.checkpoint.to == 0; read && event {
			p.acceptNext()
		}
		return nil
	})
}

// checker goes through the lines of a block.
type checker struct {
	*part
	keys   note.Verifiers
	r      *Record
	sensor string // of the event before
	of     *numbers
}

// line takes a line and the error of parsing it.
func (c *checker) line(line []byte, at int64, err error) {
	before := c.last
	l := link{line: c.lines, offset: at, before: before.offset}
	sum := sha256.Sum256(line)
	hex.Encode(l.hash[:], sum[:])
	if err != nil {
		c.addBad(err, false)
		l.seq = before.seq + 1 // it has the place of that number
		if c.lines == 0 {
			l.seq = 0
		}
		c.fail(l, "it is not a record in canonical form: %v", err)
	} else {
		l.parsed, l.seq = true, c.r.seq
		copy(l.prev[:], line[c.r.prev:])
	}
	if c.lines == 0 {
		c.head = l
	} else {
		c.chain(before, l)
	}
	c.last = l
	c.lines++
	if err != nil {
		return
	}
	if c.r.checkpoint.to != 0 {
		c.checkpoint(l)
	} else {
		c.event(l)
	}
}

func (p *part) fail(l link, format string, args ...any) {
	if len(p.problems) <= maxProblems {
		p.problems = append(p.problems, Problem{Tampered, l.seq, l.line, l.offset, fmt.Sprintf(format, args...)})
	}
}

// chain checks that line l was written after the line before.
func (p *part) chain(before, l link) {
	switch {
	case !l.parsed:
	case l.seq != before.seq+1 && (before.parsed || before.seq != 0):
		p.fail(l, "%s", sequenceError(before.seq, l.seq))
	case before.parsed && l.prev != before.hash:
		if len(p.breaks) <= 2*maxProblems {
			p.breaks = append(p.breaks, l)
		}
	}
}

// sequenceError describes a line whose number does not follow the one before it.
func sequenceError(before, seq uint64) string {
	switch {
	case seq == before+2:
		return fmt.Sprintf("record %d, which came before it, is missing", before+1)
	case seq > before:
		return fmt.Sprintf("the records %d to %d, which came before it, are missing", before+1, seq-1)
	}
	return fmt.Sprintf("it is in the place of record %d", before+1)
}

func (c *checker) checkpoint(l link) {
	cp, err := parseCheckpoint(c.r.decode(c.r.checkpoint), c.keys)
	switch {
	case err != nil:
		c.fail(l, "the checkpoint is not valid: %v", err)
		return
	case cp.lines != l.seq-1 || cp.head != string(l.prev[:]):
		c.fail(l, "the checkpoint belongs to another place: to record %d", cp.lines)
		return
	}
	c.checkSession(l, cp.session)
	c.specials = append(c.specials, special{link: l, checkpoint: &cp})
}

// checkSession checks that all lines are of one session.
func (p *part) checkSession(l link, session string) {
	if p.session == "" {
		p.session = session
	}
	if p.session != session {
		p.fail(l, "it belongs to session %q, the log to %q", session, p.session)
	}
}

func (c *checker) event(l link) {
	if s := c.r.value(mSession); string(s) != c.session || c.session == "" {
		c.checkSession(l, string(s))
	}
	if s := c.r.value(mSensor); string(s) != c.sensor || c.of == nil {
		c.sensor = string(s)
		if c.of = c.sensors[c.sensor]; c.of == nil {
			c.of = &numbers{}
			c.sensors[c.sensor] = c.of
		}
	}
	if c.r.n == 0 {
		c.of.unnumbered++
	} else {
		c.of.add(interval{c.r.n, c.r.n})
	}
	if c.sensor != string(event.Record) {
		c.ordinary = l.line
	}
	switch string(c.r.value(mAction)) {
	case event.SessionStart, event.SessionEnd, event.RecordBegin, event.RecordBlind, event.RecordCut, event.RecordDrop:
		if e, err := c.r.Event(); err == nil {
			c.specials = append(c.specials, special{link: l, event: &e})
		}
	}
}

// add appends the numbers of the events that follow.
func (s *numbers) add(i interval) {
	if last := len(s.runs) - 1; last >= 0 && s.runs[last].to+1 == i.from {
		s.runs[last].to = i.to
		return
	}
	s.runs = append(s.runs, i)
}
