package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// pollEvery is how often Follow reads a log. A read costs one system call.
const pollEvery = 25 * time.Millisecond

// ErrNoEnd is returned for a log without an end that no process writes any more: its run
// was interrupted.
var ErrNoEnd = errors.New("the run was interrupted: its record has no end")

// Follow calls each with the events of a log as they are written, until the end of the
// log (nil), the death of its writer (ErrNoEnd) or the end of ctx (its error). It skips
// lines that are no records, and returns a *DamageError for them at the end.
func Follow(ctx context.Context, path string, each func(*Record) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("following a record: %w", err)
	}
	defer f.Close()
	t := follower{each: each}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		open := locked(f) // checked before reading, so that everything the writer wrote before it exited is read
		ended, err := t.read(ctx, f)
		if err != nil {
			return err
		}
		if ended || !open {
			if t.damage.Lines > 0 {
				return &t.damage
			}
			if !ended {
				return ErrNoEnd
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// follower is how far a log has been read.
type follower struct {
	each   func(*Record) error
	rest   []byte // of an incomplete line
	line   int
	damage DamageError
}

// read reads new lines, and reports whether the log has ended.
func (t *follower) read(ctx context.Context, f io.Reader) (ended bool, err error) {
	buf := make([]byte, 64<<10)
	for ctx.Err() == nil {
		n, err := f.Read(buf)
		t.rest = append(t.rest, buf[:n]...)
		for {
			i := bytes.IndexByte(t.rest, '\n')
			if i < 0 {
				break
			}
			ended, err := t.handleLine(t.rest[:i])
			if ended || err != nil {
				return ended, err
			}
			t.rest = t.rest[i+1:]
		}
		t.rest = append([]byte(nil), t.rest...)
		if len(t.rest) > maxLine {
			return false, fmt.Errorf("following a record: line %d is too long", t.line+1)
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("following a record: %w", err)
		}
	}
	return false, ctx.Err()
}

func (t *follower) handleLine(line []byte) (ended bool, err error) {
	t.line++
	var r Record
	if err := parseLine(line, &r); err != nil {
		if t.damage.Lines++; t.damage.Lines == 1 {
			t.damage.Line, t.damage.Err = t.line, err
		}
		return false, nil
	}
	if r.checkpoint.to != 0 {
		text, _, _ := strings.Cut(r.decode(r.checkpoint), "\n\n")
		return strings.HasSuffix(text, "\n"+stateEnd), nil
	}
	return false, t.each(&r)
}
