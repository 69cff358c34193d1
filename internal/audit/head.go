package audit

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// headSuffix ends the name of a file with the newest checkpoint of a log.
const headSuffix = ".note"

// How often checkpoints leave the log at most, but for urgent ones.
const (
	syncEvery   = 200 * time.Millisecond // to the disk, and to the directory of heads
	anchorEvery = 10 * time.Second       // to the anchors
	anchorWait  = 5 * time.Second        // the end of a run waits for them so long
)

// keeper brings checkpoints to where the log cannot be cut short unnoticed: the
// log to the disk first, then the checkpoint to the directory of heads and to
// the anchors. What is kept there speaks only of what survives a power failure.
type keeper struct {
	log     *Log
	path    string // of the head
	anchors []*publisher
	poke    chan struct{} // there is a newer one; of capacity 1
	hurry   chan struct{} // and it is urgent; likewise
	stop    chan struct{}
	done    chan struct{}
	named   bool // the name of the log is on the disk; owned by who keeps

	mu     sync.Mutex // guards what follows
	newest []byte
	urgent bool
}

func newKeeper(l *Log, path string, anchors []Anchor) *keeper {
	k := &keeper{
		log: l, path: path, poke: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	for _, a := range anchors {
		k.anchors = append(k.anchors, &publisher{anchor: a, poke: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})})
	}
	return k
}

// signal tells a goroutine, unless it was told already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keep takes a newer checkpoint.
func (k *keeper) keep(signed []byte, urgent bool) {
	k.mu.Lock()
	k.newest, k.urgent = signed, k.urgent || urgent
	k.mu.Unlock()
	signal(k.poke)
	if urgent {
		signal(k.hurry)
	}
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
		case <-k.poke:
		}
		k.now(false) // its failure is the log's
		pause := time.NewTimer(syncEvery)
		select {
		case <-k.stop:
			return
		case <-k.hurry:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// now keeps the newest checkpoint.
func (k *keeper) now(last bool) error {
	k.mu.Lock()
	signed, urgent := k.newest, k.urgent
	k.urgent = false
	k.mu.Unlock()
	if err := k.log.flush(); err != nil {
		return err
	}
	err := k.log.file.Sync()
	if err == nil && !k.named {
		err = syncDir(filepath.Dir(k.log.path))
		k.named = err == nil
	}
	if err == nil {
		err = replace(k.path, signed, 0o600, last)
	}
	if err != nil {
		k.log.mu.Lock()
		defer k.log.mu.Unlock()
		return k.log.fail(err)
	}
	for _, p := range k.anchors {
		p.take(signed, urgent)
	}
	return nil
}

// end waits for what is going on, and keeps the last checkpoint when the log is
// whole.
func (k *keeper) end(whole bool) error {
	close(k.stop)
	<-k.done
	var err error
	if whole {
		err = k.now(true)
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

// publisher brings the newest checkpoint to one anchor: one that is slow or away
// keeps nobody waiting.
type publisher struct {
	anchor Anchor
	poke   chan struct{} // of capacity 1
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	newest []byte
	sent   time.Time
	err    error // of the last attempt
}

// take offers a checkpoint, which may be passed over for a later one.
func (p *publisher) take(signed []byte, urgent bool) {
	p.mu.Lock()
	p.newest = signed
	due := urgent || time.Since(p.sent) >= anchorEvery
	if due {
		p.sent = time.Now()
	}
	p.mu.Unlock()
	if due {
		signal(p.poke)
	}
}

func (p *publisher) run() {
	defer close(p.done)
	for {
		select {
		case <-p.poke:
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

// end waits until the anchor has the last checkpoint, or for too long.
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
