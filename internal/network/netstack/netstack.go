// Package netstack terminates TCP for a TUN device: every connection that the
// inside opens, to whatever address, comes out of a net.Listener, and the name
// queries among its datagrams come out as packets. Everything else is answered
// with "unreachable", so that a client falls back at once. It knows nothing of
// policy, and never sends to any place but the device.
//
// It is the rung of the ladder for hosts whose kernel cannot intercept by
// itself. The segments come from the inside and are hostile; what reaches the
// stack of gVisor is TCP over plain IPv4 and IPv6 headers, without fragments,
// options or extension headers.
package netstack

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// MTU is that of the device, in bytes. A whole segment of it fits into an IP packet
// beside the largest headers; the larger the segments are, the fewer trips through
// the device a byte costs.
const MTU = 65520

// limits bound what the inside can make a stack hold.
type limits struct {
	connections int // open at once, those that were not accepted yet and those that are still sending included; above it connections are refused
	halfOpen    int // handshakes at once; a SYN above it is dropped, and its sender tries again
}

// usual are the limits of a run.
var usual = limits{connections: 1024, halfOpen: 256}

// Stack is a network stack behind one TUN device.
type Stack struct {
	limits   limits
	device   *device
	stack    *stack.Stack
	listener *listener
	packets  *Packets
	done     chan struct{}  // closed when nothing is accepted any more
	reader   sync.WaitGroup // the loop that reads the device
	work     sync.WaitGroup // handshakes

	mu      sync.Mutex
	err     error                      // why done is closed; nil while it is open
	pending map[*waiter.Queue]struct{} // of handshakes, to wake them
	used    int                        // connections that count: pending, queued, open and leaving
	leaving map[tcpip.Endpoint]time.Time
	closing sync.Once
}

// nic is the number of the one interface.
const nic tcpip.NICID = 1

// New starts a stack on tun, the file of a TUN device that was attached with
// exactly IFF_TUN, IFF_NO_PI and IFF_VNET_HDR and that is in non-blocking mode.
// New sets the device's offloads. It owns tun whether or not it fails.
//
// No other process may hold the device: a second reader takes packets away, and one
// inside could answer in the name of any address.
func New(tun *os.File) (*Stack, error) { return start(tun, usual) }

func start(tun *os.File, l limits) (*Stack, error) {
	d, err := openDevice(tun)
	if err != nil {
		tun.Close()
		return nil, fmt.Errorf("starting the network stack: %w", err)
	}
	s := &Stack{
		limits:  l,
		device:  d,
		done:    make(chan struct{}),
		pending: map[*waiter.Queue]struct{}{},
		leaving: map[tcpip.Endpoint]time.Time{},
	}
	s.listener = &listener{stack: s, queue: make(chan *conn, l.connections), closed: make(chan struct{})}
	s.packets = &Packets{stack: s, queue: make(chan datagram, queries)}
	if err := s.build(); err != nil {
		if s.stack != nil {
			s.stack.Destroy()
		}
		d.close()
		return nil, fmt.Errorf("starting the network stack: %w", err)
	}
	return s, nil
}

// silence keeps gVisor from writing to standard error, which is the user's.
var silence = sync.OnceFunc(func() { log.SetTarget(&log.MultiEmitter{}) })

// build makes the stack and starts to read.
func (s *Stack) build() error {
	silence()
	s.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	if err := tune(s.stack); err != nil {
		return err
	}
	forwarder := tcp.NewForwarder(s.stack, 0, s.limits.halfOpen, s.handle)
	s.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	l := &link{stack: s}
	if err := s.stack.CreateNIC(nic, l); err != nil {
		return named("making the interface", err)
	}
	// Promiscuous: segments to every address are ours. Spoofing: we answer from it.
	if err := s.stack.SetPromiscuousMode(nic, true); err != nil {
		return named("accepting every address", err)
	}
	if err := s.stack.SetSpoofing(nic, true); err != nil {
		return named("answering from every address", err)
	}
	s.stack.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nic},
		{Destination: header.IPv6EmptySubnet, NIC: nic},
	})
	s.reader.Go(l.run)
	return nil
}

// tune fits TCP to a link that is the memory of one machine: no segment is
// ever lost or reordered on it, and its other end is a kernel.
func tune(t *stack.Stack) error {
	sack := tcpip.TCPSACKEnabled(true)
	recovery := tcpip.TCPRecovery(0) // RACK keeps timers for losses that do not happen here
	moderate := tcpip.TCPModerateReceiveBufferOption(false)
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: window, Max: window}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: window, Max: window}
	wait := tcpip.TCPTimeWaitTimeoutOption(timeWait)
	linger := tcpip.TCPLingerTimeoutOption(finWait)
	retries := tcpip.TCPSynRetriesOption(synRetries)
	for _, o := range []tcpip.SettableTransportProtocolOption{&sack, &recovery, &moderate, &send, &receive, &wait, &linger, &retries} {
		if err := t.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return named(fmt.Sprintf("setting %T", o), err)
		}
	}
	return nil
}

const (
	window     = 1 << 18          // bytes each way of a connection: four segments, with which it is as fast as with sixteen, for a quarter of the memory
	timeWait   = time.Second      // no old segment travels longer on this link
	finWait    = 10 * time.Second // for a client to close its half after we closed both of ours
	lingering  = time.Minute      // for a client to take what was written before Close
	synRetries = 3                // SYN-ACKs again, after 1, 2 and 4 s: only a forger does not answer the first
	queries    = 256              // name queries that wait to be read
	queryBytes = 4096             // of one; RFC 6891, section 6.2.5 suggests as much for an answer, and a query is shorter
)

// named makes an error of one of the stack's, which have only a text.
func named(what string, err tcpip.Error) error {
	return fmt.Errorf("%s: %w", what, errors.New(err.String()))
}

// Listener hands out the connections, as *net.TCPListener would those of
// addresses of this host: LocalAddr of a connection is the address that was
// dialled, RemoteAddr the client's, both *net.TCPAddr. They have CloseWrite and
// SetLinger as *net.TCPConn does. After Close of the listener new
// connections are refused; those that were accepted stay.
func (s *Stack) Listener() net.Listener { return s.listener }

// Packets hands out name queries.
func (s *Stack) Packets() *Packets { return s.packets }

// Close resets every connection, closes the device and returns when no
// goroutine of the stack runs any more. It may be called more than once.
func (s *Stack) Close() error {
	s.closing.Do(func() {
		s.stop(net.ErrClosed)
		s.stack.Close()
		s.device.close()
		s.reader.Wait()
		s.settle()
		s.stack.Wait()
	})
	return nil
}

// settle waits for handshakes, which nothing else ends: their peer is gone, and
// the stack wakes them only when it gives up to repeat itself.
func (s *Stack) settle() {
	idle := make(chan struct{})
	go func() { s.work.Wait(); close(idle) }()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		s.mu.Lock()
		for q := range s.pending {
			q.Notify(waiter.EventHUp | waiter.WritableEvents)
		}
		s.mu.Unlock()
		select {
		case <-idle:
			return
		case <-again.C:
		}
	}
}

// stop ends Accept and Read with err and admits no new connection; the first call wins.
func (s *Stack) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.done)
	}
}

// fail is stop where the device is gone, as when the namespace was: every
// connection ends with an error. The owner still has to call Close.
func (s *Stack) fail(err error) {
	s.stop(fmt.Errorf("network stack: %w", err))
	for _, e := range s.stack.RegisteredEndpoints() {
		e.Abort()
	}
}

// cause is why the stack stopped.
func (s *Stack) cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
