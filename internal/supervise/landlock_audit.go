//go:build linux

package supervise

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// Why there is no LandlockAudit.
var (
	ErrAuditOff    = errors.New("the kernel's audit is not enabled (auditctl -e 1, or audit=1 at boot)")
	ErrAuditDenied = errors.New("reading the kernel's audit needs root")
)

// LandlockConfig is what a LandlockAudit needs to know.
type LandlockConfig struct {
	Sink Sink

	// Process returns what is known of a process besides its pid; nil for nothing.
	Process func(pid int) event.Process

	// Marked reports whether an event must not be summarised in a flood of others; nil
	// marks none.
	Marked func(event.Event) bool

	// Failed is called once, on a goroutine of its own, when events cannot be
	// recorded any more.
	Failed func(error)
}

// LandlockAudit reads the kernel's own records of what Landlock denied. Each is an
// event; and when a domain ends, the kernel says how many there were, so that
// a missing one shows.
type LandlockAudit struct {
	config LandlockConfig
	socket int
	stop   int
	flood  *flood

	served  chan struct{} // closed when Serve returned
	closing sync.Once
	failed  failure

	mu      sync.Mutex // guards what follows
	started bool
	closed  bool
	root    int // pid of the process that made our domain; 0 before it is known
	domains map[string]*landlockDomain
	open    map[string]*auditEvent // by serial: events that may have more records
	order   uint64                 // of the last event
	overrun bool                   // records were lost on the way to us
	stats   LandlockStats

	lostBefore uint32 // what the kernel's count of lost records was
	lost       func() uint32
}

// LandlockStats counts what a LandlockAudit saw.
type LandlockStats struct {
	Denials uint64 // that were received; an event each, except repetitions
	Kernel  uint64 // denials that the kernel counted, of domains that ended
	Lost    uint64 // that the kernel counted and did not report, or that were lost on the way
	Ended   bool   // every domain that denied something ended, and was compared, as far as is known
}

// landlockDomain is a domain that denied something.
type landlockDomain struct {
	known, ours, ended bool
	waiting            []auditEvent // denials, until it is known whose it is
	denials            uint64
}

// auditEvent is the records of one event.
type auditEvent struct {
	access []auditRecord
	call   auditRecord
	since  time.Time
	order  uint64 // of arrival
}

const (
	auditGroup    = 1                      // AUDIT_NLGRP_READLOG
	auditBuffer   = 8 << 20                // bytes that may wait in the socket
	auditSettle   = 100 * time.Millisecond // until an event without an end is taken to be whole
	auditFarewell = time.Second            // that Close waits for domains to end; the kernel frees them a little after their last process
	auditDomains  = 4096                   // that are remembered: any user of the machine may make them
	auditWaiting  = 1024                   // denials of a domain that is not known yet
)

// NewLandlockAudit listens to the kernel's audit. It must be called before the
// launch, whose domain it would otherwise miss.
func NewLandlockAudit(c LandlockConfig) (*LandlockAudit, error) {
	if c.Sink == nil {
		return nil, errors.New("listening to audit: no sink")
	}
	// The records have pids of the first pid namespace.
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != "pid:[4026531836]" {
		return nil, fmt.Errorf("listening to audit: %w: not in the first pid namespace", ErrAuditDenied)
	}
	enabled, lost, err := auditStatus()
	if err == nil && !enabled {
		err = ErrAuditOff
	}
	if err != nil {
		return nil, fmt.Errorf("listening to audit: %w", err)
	}
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return nil, fmt.Errorf("listening to audit: %w", err)
	}
	unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, auditBuffer)
	if err := unix.Bind(socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: auditGroup}); err != nil {
		unix.Close(socket)
		if err == unix.EPERM {
			err = ErrAuditDenied
		}
		return nil, fmt.Errorf("listening to audit: %w", err)
	}
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(socket)
		return nil, fmt.Errorf("listening to audit: %w", err)
	}
	a := &LandlockAudit{config: c, socket: socket, stop: stop, served: make(chan struct{}), failed: failure{report: c.Failed},
		domains: map[string]*landlockDomain{}, open: map[string]*auditEvent{}, lostBefore: lost, lost: auditLost}
	a.flood = newFlood(a.observe, c.Marked)
	return a, nil
}

// auditLost is how many records the kernel has lost so far; all ones when it does
// not say.
func auditLost() uint32 {
	if _, lost, err := auditStatus(); err == nil {
		return lost
	}
	return 1<<32 - 1
}

// auditStatus asks the kernel whether it writes records, and how many were lost
// (AUDIT_GET).
func auditStatus() (enabled bool, lost uint32, err error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return false, 0, err
	}
	defer unix.Close(s)
	unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
	le := binary.LittleEndian
	ask := le.AppendUint32(nil, unix.NLMSG_HDRLEN)
	ask = le.AppendUint16(ask, auditGet)
	ask = le.AppendUint16(ask, unix.NLM_F_REQUEST)
	ask = append(ask, 1, 0, 0, 0, 0, 0, 0, 0)
	if err := unix.Sendto(s, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, 0, err
	}
	buf := make([]byte, 4096)
	for {
		n, _, err := unix.Recvfrom(s, buf, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false, 0, err
		}
		for kind, body := range netlinkMessages(buf[:n]) {
			switch {
			case kind == unix.NLMSG_ERROR && len(body) >= 4 && le.Uint32(body) != 0:
				if errno := unix.Errno(-int32(le.Uint32(body))); errno != unix.EPERM {
					return false, 0, errno
				}
				return false, 0, ErrAuditDenied
			case kind == auditGet && len(body) >= 28:
				return le.Uint32(body[4:]) != 0, le.Uint32(body[24:]), nil // struct audit_status
			}
		}
	}
}

// netlinkMessages splits messages. What is cut off is left out.
func netlinkMessages(b []byte) func(func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.NLMSG_HDRLEN {
			n := int(binary.LittleEndian.Uint32(b))
			kind := binary.LittleEndian.Uint16(b[4:])
			if n < unix.NLMSG_HDRLEN {
				return
			}
			// The audit of some kernels leaves the header out of the length.
			end := min(n, len(b))
			if kind >= auditSyscall {
				end, n = len(b), len(b)
			}
			if !yield(kind, b[unix.NLMSG_HDRLEN:end]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// Domain sets which process makes the domain of the run: the first process inside, by
// its pid. It must wait for that before it restricts itself.
func (a *LandlockAudit) Domain(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.root = pid
}

// Serve reads records until Close is called. It wants a goroutine of its own and
// may be called once.
func (a *LandlockAudit) Serve() {
	if !a.begin() {
		return
	}
	defer close(a.served)
	buf := make([]byte, 64<<10)
	for {
		fds := []unix.PollFd{{Fd: int32(a.socket), Events: unix.POLLIN}, {Fd: int32(a.stop), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, int(a.patience()/time.Millisecond))
		if err != nil && err != unix.EINTR {
			a.failed.set(fmt.Errorf("listening to audit: %w", err))
			return
		}
		for {
			n, from, err := unix.Recvfrom(a.socket, buf, 0)
			if err == unix.ENOBUFS { // the count at the end says how many
				a.mu.Lock()
				a.overrun = true
				a.mu.Unlock()
				continue
			}
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				break
			}
			if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 { // not the kernel
				continue
			}
			for kind, body := range netlinkMessages(buf[:n]) {
				a.handleRecord(kind, string(body), time.Now())
			}
		}
		a.settle(time.Now().Add(-auditSettle))
		if fds[1].Revents != 0 {
			return
		}
	}
}

// patience is how long to wait for more records; negative for ever.
func (a *LandlockAudit) patience() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) > 0 {
		return auditSettle
	}
	return -time.Millisecond
}

// begin reports whether to serve: not when Close came first, as the descriptors may
// be others' by now.
func (a *LandlockAudit) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started = !a.closed
	return a.started
}

// Close waits a moment for domains to end, and compares. Call it when
// everything inside is dead.
func (a *LandlockAudit) Close() (LandlockStats, error) {
	a.closing.Do(func() {
		a.mu.Lock()
		a.closed = true
		started := a.started
		a.mu.Unlock()
		for deadline := time.Now().Add(auditFarewell); started && a.lingering() && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		unix.Write(a.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		if started {
			<-a.served
		}
		unix.Close(a.socket)
		unix.Close(a.stop)
		a.settle(time.Now().Add(time.Hour))
		a.flood.close()
		a.remain()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats, a.failed.err()
}
