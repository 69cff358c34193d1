package audit

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// DamageError is the error for lines of a log that are not records. All other
// lines were read.
type DamageError struct {
	Lines int   // how many
	Line  int   // the first of them, from 1
	Err   error // what is wrong with it
	Torn  bool  // it is the last line and incomplete: its writer was interrupted
}

func (e *DamageError) Error() string {
	if e.Torn {
		return fmt.Sprintf("line %d has no end: its writer was interrupted", e.Line)
	}
	return fmt.Sprintf("%d lines are not records, the first is line %d: %v", e.Lines, e.Line, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// blockScan is what was found in a block.
type blockScan struct {
	records []Record // that match
	lines   int      // that end
	bad     int      // lines that are not records
	first   int      // the first of them, from 0
	err     error    // what is wrong with it
	torn    bool     // it has no newline
}

// next returns a place for a record after the matching ones.
func (s *blockScan) next() *Record {
	s.records = slices.Grow(s.records, 1)
	return &s.records[:len(s.records)+1][len(s.records)]
}

// acceptNext adds the record at next to the matching ones.
func (s *blockScan) acceptNext() { s.records = s.records[:len(s.records)+1] }

// addBad notes that the next line is not a record.
func (s *blockScan) addBad(err error, torn bool) {
	if s.bad++; s.bad == 1 {
		s.first, s.err, s.torn = s.lines, err, torn
	}
}

// addTorn notes an incomplete line.
func (s *blockScan) addTorn(line []byte) {
	s.addBad(&errForm{len(line), "the line has no end"}, true)
}

// reader passes on what was found in blocks.
type reader struct {
	each   func(*Record) error
	lines  int
	damage DamageError
}

func (r *reader) passOn(s *blockScan) error {
	for i := range s.records {
		if err := r.each(&s.records[i]); err != nil {
			return err
		}
	}
	if s.bad > 0 && r.damage.Lines == 0 {
		r.damage.Line, r.damage.Err = r.lines+s.first+1, s.err
		r.damage.Torn = s.torn
	}
	r.damage.Lines += s.bad
	r.lines += s.lines
	return nil
}

// finish returns a *DamageError if lines were not records. In an open log, a
// line may still be being written.
func (r *reader) finish(open bool) error {
	if r.damage.Lines > 0 && !(open && r.damage.Torn) {
		return &r.damage
	}
	return nil
}

// Scan reads the events of a log: it calls match for each, from several goroutines at
// once (workers of them), and calls each with those that match, in order and one by
// one. A nil match always matches. It stops at the first error of either, or of ctx.
// Lines that are not records are skipped; a *DamageError at the end reports them.
//
// What a log says may be false unless it was verified: see ReadVerified.
func Scan(ctx context.Context, path string, workers int, match func(*Record) (bool, error), each func(*Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading a record: %w", err)
	}
	defer f.Close()
	open := locked(f)
	r := reader{each: each}
	err = pipeline(ctx, f, workers, func(b *block[blockScan]) error { return scanBlock(b, match) }, func(b *block[blockScan]) error { return r.passOn(&b.result) })
	if err != nil {
		return err
	}
	return r.finish(open)
}

func scanBlock(b *block[blockScan], match func(*Record) (bool, error)) error {
	s := &b.result
	*s = blockScan{records: s.records[:0]}
	return b.lines(func(line []byte, _ int64, whole bool) error {
		if !whole {
			s.addTorn(line)
			return nil
		}
		r := s.next()
		err := b.parse(line, r)
		if err != nil {
			s.addBad(err, false)
		}
		s.lines++
		if err != nil || r.checkpoint.to != 0 {
			return nil
		}
		if match != nil {
			ok, err := match(r)
			if err != nil {
				return fmt.Errorf("record %d: %w", r.seq, err)
			}
			if !ok {
				return nil
			}
		}
		s.acceptNext()
		return nil
	})
}
