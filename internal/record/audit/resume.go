package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// tailRead is how much of the end of a log is read to continue it, in bytes.
const tailRead = 1 << 20

// Errors of Resume after which another log can be begun.
var (
	ErrEnded  = errors.New("the record has ended")
	ErrBroken = errors.New("the record ends in the middle of a line")
)

// Resume appends to a record that its last writer left with Leave. It waits while
// another process writes it. last returns the number of the last event of a sensor.
func Resume(dir string, o Options) (l *Log, last func(event.Sensor) uint64, err error) {
	if err := o.complete(dir); err != nil {
		return nil, nil, fmt.Errorf("resuming a record: %w", err)
	}
	path := filepath.Join(dir, o.Session+suffix)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|openPlain, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("resuming a record: %w", err)
	}
	t, err := takeOver(f)
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("resuming a record: %w", err)
	}
	k, err := loadKey(o.Keys)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	l = newLog(f, path, k, o, t.head)
	l.seq, l.size, l.signed, l.own = t.seq, t.size, t.signed, max(t.last[event.Record], 1)
	l.keeper.named = true
	go l.keeper.run()
	return l, func(s event.Sensor) uint64 { return t.last[s] }, nil
}

// tail is the end of a log.
type tail struct {
	seq, signed uint64
	head        string
	size        int64
	last        map[event.Sensor]uint64
}

// takeOver waits for the log and reads its end.
func takeOver(f *os.File) (tail, error) {
	if err := lockFile(f); err != nil {
		return tail{}, err
	}
	st, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	if !st.Mode().IsRegular() {
		return tail{}, errors.New("it is not a regular file")
	}
	from := max(0, st.Size()-tailRead)
	data, err := io.ReadAll(io.NewSectionReader(f, from, st.Size()-from))
	if err != nil {
		return tail{}, err
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	return readTail(data, st.Size())
}

func readTail(data []byte, size int64) (tail, error) {
	t := tail{size: size, last: map[event.Sensor]uint64{}}
	for len(data) > 0 {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		var r Record
		if !whole || parseLine(line, &r) != nil {
			return tail{}, ErrBroken
		}
		t.seq = r.seq
		if r.checkpoint.to != 0 {
			t.signed = r.seq
			c, err := parseCheckpoint(r.decode(r.checkpoint), note.VerifierList())
			if err != nil || c.end {
				return tail{}, ErrEnded
			}
		} else {
			t.last[event.Sensor(r.stringMember(mSensor))] = r.n
		}
		if len(rest) == 0 {
			sum := sha256.Sum256(line)
			t.head = hex.EncodeToString(sum[:])
		}
		data = rest
	}
	if t.seq == 0 {
		return tail{}, ErrBroken
	}
	return t, nil
}

// Leave ends writing, but not the record: what is written gets signed, and
// Resume can append to it.
func (l *Log) Leave() error {
	_, err := l.stop(func() error {
		if l.signed == l.seq {
			return nil
		}
		return l.checkpoint(false, true)
	})
	if err != nil {
		return fmt.Errorf("leaving the record: %w", err)
	}
	return nil
}
