package audit

import (
	"context"
	"fmt"
	"os"
)

// DamageError is the error for lines of a log that are no records. All other lines were
// read.
type DamageError struct {
	Lines int   // how many
	Line  int   // the first of them, from 1
	Err   error // what is wrong with it
	Torn  bool  // it is the last line, without its end: its writer was interrupted
}

func (e *DamageError) Error() string {
	if e.Torn {
		return fmt.Sprintf("line %d has no end: its writer was interrupted", e.Line)
	}
	return fmt.Sprintf("%d lines are no records, the first is line %d: %v", e.Lines, e.Line, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// scanned is what was found in a block.
type scanned struct {
	records []Record // that match
	lines   int
	bad     int   // lines that are no records
	first   int   // the first of them, from 0
	err     error // what is wrong with it
	torn    bool  // the last line of the block has no newline
}

// Scan reads the events of a log: it asks match for each, from several
// goroutines at once (workers of them), and calls each with those that match,
// in order and one after the other. A nil match is one that always does. It
// stops at the first error of theirs, or of ctx. Lines that are no records are
// passed over; a *DamageError says so at the end.
//
// What a log says may be false unless Verify vouches for it.
func Scan(ctx context.Context, path string, workers int, match func(*Record) (bool, error), each func(*Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading a record: %w", err)
	}
	defer f.Close()
	open := locked(f)
	var damage DamageError
	line := 1
	err = pipeline(ctx, f, workers, func(b *block[scanned]) error { return scanBlock(b, match) }, func(b *block[scanned]) error {
		s := &b.result
		for i := range s.records {
			if err := each(&s.records[i]); err != nil {
				return err
			}
		}
		if s.bad > 0 && damage.Lines == 0 {
			damage.Line, damage.Err = line+s.first, s.err
			damage.Torn = s.torn && s.bad == 1
		}
		damage.Lines += s.bad
		line += s.lines
		return nil
	})
	if err != nil {
		return err
	}
	if damage.Lines > 0 && !(open && damage.Torn) { // a line may be on its way to the file
		return &damage
	}
	return nil
}

func scanBlock(b *block[scanned], match func(*Record) (bool, error)) error {
	s := &b.result
	*s = scanned{records: s.records[:0]}
	var r Record
	return b.lines(func(line []byte, _ int64, whole bool) error {
		s.lines++
		err := parseLine(line, &r)
		if err == nil && !whole {
			err = &errForm{len(line), "the line has no end"}
		}
		if err != nil {
			if s.bad++; s.bad == 1 {
				s.first, s.err, s.torn = s.lines-1, err, !whole
			}
			return nil
		}
		if r.checkpoint.to != 0 {
			return nil
		}
		if match != nil {
			ok, err := match(&r)
			if err != nil {
				return fmt.Errorf("record %d: %w", r.seq, err)
			}
			if !ok {
				return nil
			}
		}
		s.records = append(s.records, r)
		return nil
	})
}
