package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// headSuffix ends the name of a file with the newest checkpoint of a log.
const headSuffix = ".note"

// How often checkpoints leave the log at most, except urgent ones.
const (
	syncEvery   = 200 * time.Millisecond // to the disk, and to the directory of heads
	anchorEvery = 10 * time.Second       // to the anchors
	anchorWait  = 5 * time.Second        // how long the end of a run waits for them
)

// keeper brings checkpoints to where cutting the log short is noticed: first it
// syncs the log, then it writes the checkpoint to the directory of heads and to
// the anchors. What is kept there covers only what survives a power failure.
type keeper struct {
	log     *Log
	path    string // of the head
	anchors []*publisher
	wake    chan struct{} // there is a newer one; of capacity 1
	wakeNow chan struct{} // and it is urgent; likewise
	stop    chan struct{}
	done    chan struct{}
	named   bool // the name of the log is on disk; owned by the goroutine that keeps checkpoints

	mu     sync.Mutex // guards what follows
	newest []byte
	urgent bool
	ending bool // end is about to be called
}

func newKeeper(l *Log, path string, anchors []Anchor) *keeper {
	k := &keeper{
		log: l, path: path, wake: make(chan struct{}, 1), wakeNow: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for _, a := range anchors {
		k.anchors = append(k.anchors, &publisher{anchor: a, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})})
	}
	return k
}

// signal wakes a goroutine, unless a signal is pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// offer hands over a newer checkpoint. After expectEnd, end writes it.
func (k *keeper) offer(signed []byte, urgent bool) {
	k.mu.Lock()
	k.newest, k.urgent = signed, k.urgent || urgent
	ending := k.ending
	k.mu.Unlock()
	if ending {
		return
	}
	signal(k.wake)
	if urgent {
		signal(k.wakeNow)
	}
}

// expectEnd leaves later checkpoints to end.
func (k *keeper) expectEnd() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ending = true
}

// run keeps checkpoints until the end.
func (k *keeper) run() {
	defer close(k.done)
	for _, p := range k.anchors {
		go p.run()
	}
	for {
		select {
		case <-k.stop:
			return
		case <-k.wake:
		}
		k.keepNewest() // its failure is a failure of the log
		pause := time.NewTimer(syncEvery)
		select {
		case <-k.stop:
			return
		case <-k.wakeNow:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// sync brings the log, its name and a new head to disk, all at once: a
// journaling file system commits them together, so the caller waits once. Only
// then does the new head replace the old one. The replacement reaches the disk
// with the file system's next commit, without waiting for it.
func (k *keeper) sync(signed []byte) error {
	var next string
	steps := []func() error{
		k.log.file.Sync,
		func() (err error) { next, err = prepare(k.path, signed, 0o600); return err },
	}
	if !k.named {
		steps = append(steps, func() error { return syncDir(filepath.Dir(k.log.path)) })
	}
	errs := make([]error, len(steps))
	var all sync.WaitGroup
	for i, step := range steps {
		all.Go(func() { errs[i] = step() })
	}
	all.Wait()
	err := errors.Join(errs...)
	k.named = k.named || err == nil
	if err == nil {
		err = os.Rename(next, k.path)
	}
	if err != nil && next != "" {
		err = errors.Join(err, os.Remove(next))
	}
	return err
}

// keepNewest syncs the log, and writes the newest checkpoint to the directory of heads.
func (k *keeper) keepNewest() error {
	k.mu.Lock()
	signed, urgent := k.newest, k.urgent
	k.urgent = false
	k.mu.Unlock()
	if err := k.log.flush(); err != nil {
		return err
	}
	if err := k.sync(signed); err != nil {
		k.log.mu.Lock()
		defer k.log.mu.Unlock()
		return k.log.fail(err)
	}
	for _, p := range k.anchors {
		p.offer(signed, urgent)
	}
	return nil
}

// end waits for work in progress, and keeps the last checkpoint if the log is whole.
func (k *keeper) end(whole bool) error {
	close(k.stop)
	<-k.done
	var err error
	if whole {
		err = k.keepNewest()
	}
	limit := time.NewTimer(anchorWait)
	defer limit.Stop()
	for _, p := range k.anchors {
		close(p.stop)
	}
	for _, p := range k.anchors {
		err = errors.Join(err, p.end(limit.C))
	}
	return err
}

// publisher brings the newest checkpoint to one anchor: a slow or unreachable
// one blocks nothing.
type publisher struct {
	anchor Anchor
	wake   chan struct{} // of capacity 1
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	newest []byte
	sent   time.Time
	err    error // of the last attempt
}

// offer hands over a checkpoint, which a later one may replace before it is sent.
func (p *publisher) offer(signed []byte, urgent bool) {
	p.mu.Lock()
	p.newest = signed
	due := urgent || time.Since(p.sent) >= anchorEvery
	if due {
		p.sent = time.Now()
	}
	p.mu.Unlock()
	if due {
		signal(p.wake)
	}
}

func (p *publisher) run() {
	defer close(p.done)
	for {
		select {
		case <-p.wake:
			p.publish()
		case <-p.stop:
			p.publish()
			return
		}
	}
}

// publish sends the newest checkpoint unless the anchor has it.
func (p *publisher) publish() {
	p.mu.Lock()
	signed := p.newest
	p.mu.Unlock()
	if signed == nil {
		return
	}
	err := p.anchor.Publish(signed)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil && string(p.newest) == string(signed) {
		p.newest = nil
	}
}

// end waits until the anchor has the last checkpoint, or the limit is over.
func (p *publisher) end(limit <-chan time.Time) error {
	select {
	case <-p.done:
	case <-limit:
		return fmt.Errorf("anchoring to %s: no answer in %v", p.anchor.Name(), anchorWait)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return fmt.Errorf("anchoring to %s: %w", p.anchor.Name(), p.err)
	}
	return nil
}
