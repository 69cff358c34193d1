package network

import (
	"context"
	"sync/atomic"
	"time"
)

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	set(&l.Connections, min(2048, descriptors()/4)) // two descriptors each, and as many for everything else; a browser has some hundreds
	set(&l.HeadBytes, 64<<10)                       // what servers take ends at 8 to 32 KiB
	set(&l.HeadTime, 10*time.Second)                // of a whole head, not of each byte: slow senders hold a slot no longer
	set(&l.DialTime, 10*time.Second)                // three SYNs: at 0, 1 and 3 seconds
	set(&l.IdleTime, 124*time.Minute)               // RFC 5382, REQ-5: what programs that keep a connection (ssh, databases) are used to; keep-alives find dead peers before
	set(&l.Held, max(1, min(256, l.Connections/4))) // what is held must not keep what is allowed from its places
	set(&l.Queries, 200)
	set(&l.Labels, 40) // of the 63 that RFC 1035, 2.3.4 allows: names of people and machines are shorter
	set(&l.NamesMinute, 60)
	set(&l.BytesHour, 8<<10)
	return l
}

func set[T comparable](v *T, standard T) {
	var zero T
	if *v == zero {
		*v = standard
	}
}

const (
	slotWait     = time.Second            // for a free place before a connection is refused
	peekTimeHTTP = 10 * time.Second       // for the first data on the ports of HTTP before it is refused: a client may read its authorities first
	peekTime     = 500 * time.Millisecond // the same on other ports, where the server may speak first
	turnAwayTime = 10 * time.Second       // for a TLS handshake and a request that are refused
	lingerTime   = time.Second            // for a client to take in an answer before the connection is closed
	halfIdle     = 8                      // a half-closed connection is idle after an eighth of the time
	sweeps       = 4                      // looks at each connection within the idle time
	acceptPause  = 5 * time.Millisecond
	acceptPauses = time.Second // the longest
)

// slots bounds how many connections, or other uses, there may be at once.
type slots struct {
	free    chan struct{}
	starved atomic.Bool // a caller waited in vain, and no slot became free since
}

func newSlots(n int) *slots {
	p := &slots{free: make(chan struct{}, n)}
	for range n {
		p.free <- struct{}{}
	}
	return p
}

// acquire waits a little for a slot. If all are in use and one wait was in vain, later
// calls do not wait: a flood is answered at once and delays no other client.
func (p *slots) acquire(ctx context.Context) bool {
	select {
	case <-p.free:
		p.starved.Store(false)
		return true
	default:
	}
	if p.starved.Load() {
		return false
	}
	wait := time.NewTimer(slotWait)
	defer wait.Stop()
	select {
	case <-p.free:
		return true
	case <-ctx.Done():
	case <-wait.C:
		p.starved.Store(true)
	}
	return false
}

func (p *slots) release() { p.free <- struct{}{} }
