package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How the writer batches.
const (
	flushEvery      = 8 * time.Millisecond // an observed event waits for others at most this long
	flushAt         = 256 << 10            // bytes; the caller whose event fills them writes them, and waits for a slow disk
	checkpointAfter = time.Second          // a record waits for a signature this long
	checkpointAt    = 1024                 // records
)

// file is what the writer needs of the file of a log.
type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

// Log is the record of one run. Its methods can be called from several
// goroutines at once.
type Log struct {
	session   string
	path      string
	key       note.Signer
	failed    func(error)
	notifying sync.WaitGroup // of noted
	max       int64          // bytes of the file
	keeper    *keeper
	now       func() time.Time

	encoders sync.Pool

	writing sync.Mutex // held while the file is written to; taken before mu
	file    file
	spare   []byte // guarded by writing

	mu     sync.Mutex // guards what follows
	buf    []byte     // lines that are not written yet
	seq    uint64     // of the last line
	head   [hashLen]byte
	size   int64  // of the file, with buf
	signed uint64 // the last line that is a checkpoint
	own    uint64 // events of the log itself
	budget budget
	losses losses
	timers timers
	noted  func(event.Event) // may be nil
	err    error             // sticky: we no longer know what is on disk; writing on would fork the chain
	closed bool
}

// timers run only while there is something to do.
type timers struct {
	flush, checkpoint, losses *time.Timer
}

var errClosed = errors.New("the record of this run has ended")

// newLog is a log whose last line has the hash head.
func newLog(f file, path string, k note.Signer, o Options, head string) *Log {
	l := &Log{
		session: o.Session, path: path, key: k, failed: o.Failed, noted: o.Noted, max: o.MaxBytes, file: f, now: time.Now,
		encoders: sync.Pool{New: func() any { return new(encoder) }},
	}
	copy(l.head[:], head)
	l.budget = newBudget(o.MaxBytes/4*3, l.now())
	l.keeper = newKeeper(l, filepath.Join(o.Heads, o.Session+headSuffix), o.Anchors)
	return l
}

// begin writes the first record.
func begin(f file, path string, k note.Signer, o Options) (*Log, error) {
	l := newLog(f, path, k, o, zeroHash)
	detail := map[string]string{"format": origin}
	maps.Copy(detail, o.Detail)
	l.mu.Lock()
	_, err := l.appendOwn(event.RecordBegin, o.Session, detail)
	l.mu.Unlock()
	if err == nil {
		err = l.flush()
	}
	if err != nil {
		return nil, err
	}
	go l.keeper.run()
	return l, nil
}

// Path is where the record is.
func (l *Log) Path() string { return l.path }

// Emit records an event and returns when it is written, so that it survives
// this process. An error means that it is not recorded: a caller that guards a
// privileged action must not let it happen.
func (l *Log) Emit(e event.Event) error {
	_, err := l.Put(e)
	return err
}

// Put is Emit, and returns the number of the record in the log.
func (l *Log) Put(e event.Event) (seq uint64, err error) {
	if seq, err = l.addLine(e, false); err == nil {
		err = l.flush()
	}
	if err != nil {
		return 0, fmt.Errorf("recording an event: %w", err)
	}
	return seq, nil
}

// Observe records an event that decides nothing. It is written soon after; beyond the
// limits of a run it is counted and summarised. An error means that the log has failed.
func (l *Log) Observe(e event.Event) error {
	_, err := l.PutLater(e)
	return err
}

// PutLater is Observe, and returns the number of the record in the log; 0 if
// the event is only summarised.
func (l *Log) PutLater(e event.Event) (seq uint64, err error) {
	if seq, err = l.addLine(e, true); err != nil {
		return 0, fmt.Errorf("recording an event: %w", err)
	}
	return seq, nil
}

// addLine appends a line for e and returns its number, 0 for none. An observed
// event is written later.
func (l *Log) addLine(e event.Event, observed bool) (uint64, error) {
	e.Session = l.session
	if e.Time.IsZero() {
		e.Time = l.now()
	}
	limit(&e)
	c := l.encoders.Get().(*encoder)
	defer l.encoders.Put(c)
	var body []byte
	var err error
	ours := e.Sensor == event.Record // the log numbers its own events
	if !ours {
		body, err = c.body(&e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return 0, err
	}
	if ours {
		l.own++
		e.N = l.own
		body, err = c.body(&e)
	}
	if err != nil {
		l.countLoss(event.RecordDrop, &e, "it cannot be written")
	} else if err = l.admit(&e, len(body), observed); err == nil {
		l.appendLine(body)
	}
	if err != nil {
		if observed {
			return 0, nil // its loss gets recorded
		}
		return 0, err
	}
	seq := l.seq
	if s := severe(&e); s || l.seq-l.signed >= checkpointAt {
		if err := l.checkpoint(false, s); err != nil {
			return 0, err
		}
	}
	if observed {
		return seq, l.scheduleFlush()
	}
	return seq, nil
}

// errCut means that an observed event is only summarised.
var errCut = errors.New("more events came than are recorded one by one")

// admit returns why there is no room for e, and then counts it. mu is held.
func (l *Log) admit(e *event.Event, body int, observed bool) error {
	if observed {
		if reason := l.budget.reserve(e, body); reason != "" {
			l.countLoss(event.RecordCut, e, reason)
			return errCut
		}
		return nil
	}
	if l.size+int64(body) > l.max && !strings.HasPrefix(e.Action, "session.") {
		l.countLoss(event.RecordDrop, e, "the log is full")
		return fmt.Errorf("the record of this run has reached its limit of %d MiB", l.max>>20)
	}
	return nil
}

// usable returns why nothing can be recorded. mu is held.
func (l *Log) usable() error {
	if l.err != nil {
		return l.err
	}
	if l.closed {
		return errClosed
	}
	return nil
}

// severe reports whether e is worth a signature of its own.
func severe(e *event.Event) bool {
	if e.Action != event.AlertRaise {
		return false
	}
	s := e.Detail["severity"]
	return s == "high" || s == "critical"
}

// appendOwn records an event of the log itself. mu is held.
func (l *Log) appendOwn(action, object string, detail map[string]string) (event.Event, error) {
	l.own++
	e := event.Event{Time: l.now(), Session: l.session, Sensor: event.Record, N: l.own, Action: action, Object: object, Detail: detail}
	limit(&e)
	c := l.encoders.Get().(*encoder)
	defer l.encoders.Put(c)
	body, err := c.body(&e)
	if err != nil {
		return e, err
	}
	l.appendLine(body)
	e.Seq = l.seq
	return e, nil
}

// appendLine appends a line to buf: body is what follows "prev". mu is held.
func (l *Log) appendLine(body []byte) {
	start := len(l.buf)
	l.seq++
	l.buf = append(l.buf, `{"seq":`...)
	l.buf = strconv.AppendUint(l.buf, l.seq, 10)
	l.buf = append(l.buf, `,"prev":"`...)
	l.buf = append(l.buf, l.head[:]...)
	l.buf = append(l.buf, '"')
	l.buf = append(l.buf, body...)
	sum := sha256.Sum256(l.buf[start:])
	hex.Encode(l.head[:], sum[:])
	l.buf = append(l.buf, '\n')
	l.size += int64(len(l.buf) - start)
	if l.timers.checkpoint == nil {
		l.arm(&l.timers.checkpoint, checkpointAfter, func() error { return l.checkpoint(false, false) })
	}
}

// checkpoint appends a signed line, and has it kept elsewhere, at once if it is
// urgent. mu is held.
func (l *Log) checkpoint(end, urgent bool) error {
	l.disarm(&l.timers.checkpoint)
	c := checkpoint{session: l.session, lines: l.seq, head: string(l.head[:]), time: l.now(), end: end}
	signed, err := c.sign(l.key)
	if err != nil {
		return l.fail(fmt.Errorf("signing: %w", err))
	}
	body, _ := AppendString([]byte(`,"checkpoint":`), string(signed))
	l.appendLine(append(body, '}'))
	l.disarm(&l.timers.checkpoint) // nothing is left to be signed
	l.signed = l.seq
	l.keeper.offer(signed, urgent)
	return nil
}

// fail keeps the first failure: nothing is recorded after it. mu is held.
func (l *Log) fail(err error) error {
	if l.err == nil {
		l.err = fmt.Errorf("the record of this run failed: %w", err)
		if l.failed != nil {
			go l.failed(l.err)
		}
	}
	return l.err
}

// Close ends the record with a signature, and removes old ones: here no command
// waits to start. An error means that the record is not whole, or that it is
// not kept everywhere.
func (l *Log) Close() error {
	first, err := l.stop(func() error { return l.checkpoint(true, true) })
	if err != nil {
		return fmt.Errorf("ending the record of the run: %w", err)
	}
	if !first {
		return nil
	}
	return pruneOld(filepath.Dir(l.path), filepath.Dir(l.keeper.path), l.path)
}

// stop ends writing: it reports losses, signs with sign, and waits until all of
// it is on disk and kept elsewhere. first is false if it was stopped before.
func (l *Log) stop(sign func() error) (first bool, err error) {
	l.mu.Lock()
	l.noted = nil
	l.mu.Unlock()
	l.notifying.Wait() // noted may record events of its own
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false, nil
	}
	err = l.err
	if err == nil {
		err = l.reportLosses()
	}
	if err == nil {
		l.keeper.expectEnd()
		err = sign()
	}
	l.closed = true
	for _, t := range []**time.Timer{&l.timers.flush, &l.timers.checkpoint, &l.timers.losses} {
		l.disarm(t)
	}
	l.mu.Unlock()
	if err == nil {
		err = l.flush()
	}
	return true, errors.Join(err, l.keeper.end(err == nil), l.file.Close())
}
