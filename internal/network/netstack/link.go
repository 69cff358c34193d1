package netstack

import (
	"encoding/binary"
	"errors"
	"os"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// link is the device as the stack sees it. It claims checksum and segmentation offload:
// the other end is the kernel that computes them, and mostly does not, because what
// never leaves the machine needs neither.
type link struct {
	stack      *Stack
	dispatcher atomic.Pointer[stack.NetworkDispatcher]
	closed     func()
}

// The header before each packet on the device: struct virtio_net_hdr of
// linux/virtio_net.h, in the byte order of the machine.
const (
	vnetSize = 10

	needsChecksum    = 1 // flags
	gsoTCP4, gsoTCP6 = 1, 4
	checksumOfTCP    = 16 // offset in the TCP header
)

const packetBytes = 1 << 16 // no IP packet without jumbograms is longer

// run reads the device until it is closed or fails.
func (l *link) run() {
	head := make([]byte, vnetSize)
	view := buffer.NewViewSize(packetBytes)
	defer func() { view.Release() }()
	for {
		n, err := l.stack.device.read(head, view.AsSlice())
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				l.stack.fail(err)
			}
			return
		}
		p, what := inspectPacket(view.AsSlice()[:n])
		switch what {
		case segment:
			view = l.deliver(view, p)
		case query:
			if d, ok := p.datagram(); ok {
				l.stack.packets.put(d)
			}
		case refuse:
			_ = l.stack.device.write([][]byte{make([]byte, vnetSize), p.refusal()}) // a datagram: its loss is the client's timeout
		}
	}
}

// deliver gives a segment to the stack and returns the view to read into next.
// A large segment keeps its view; a small one is copied, so that it cannot hold
// a whole one of memory in a receive queue.
func (l *link) deliver(view *buffer.View, p packet) *buffer.View {
	d := l.dispatcher.Load()
	if d == nil {
		return view
	}
	var payload buffer.Buffer
	if len(p.bytes) > packetBytes/2 {
		view.CapLength(len(p.bytes))
		payload = buffer.MakeWithView(view)
		view = buffer.NewViewSize(packetBytes)
	} else {
		payload = buffer.MakeWithView(buffer.NewViewWithData(p.bytes))
	}
	version := header.IPv4ProtocolNumber
	if p.head == head6 {
		version = header.IPv6ProtocolNumber
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: payload})
	(*d).DeliverNetworkPacket(version, pkt)
	pkt.DecRef()
	return view
}

// WritePackets sends segments. Whatever else the stack sends on its own (multicast
// listeners, routers) is dropped.
func (l *link) WritePackets(list stack.PacketBufferList) (int, tcpip.Error) {
	sent := 0
	for _, pkt := range list.AsSlice() {
		if pkt.TransportProtocolNumber == header.TCPProtocolNumber && len(pkt.TransportHeader().Slice()) >= headTCP {
			if err := l.stack.device.write(l.frame(pkt)); err != nil {
				return sent, &tcpip.ErrNoBufferSpace{} // TCP sends it again
			}
		}
		sent++
	}
	return sent, nil
}

// frame puts the virtio header before pkt. The checksum of every segment is
// left to the kernel: the field holds the sum of the pseudo header, which the
// stack writes only for those that it segments.
func (l *link) frame(pkt *stack.PacketBuffer) [][]byte {
	ip, th := pkt.NetworkHeader().Slice(), pkt.TransportHeader().Slice()
	n := len(th) + pkt.Data().Size()
	network := pkt.Network()
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, network.SourceAddress(), network.DestinationAddress(), uint16(n))
	binary.BigEndian.PutUint16(th[checksumOfTCP:], sum)

	v := make([]byte, vnetSize)
	v[0] = needsChecksum
	binary.NativeEndian.PutUint16(v[6:], uint16(len(ip)))
	binary.NativeEndian.PutUint16(v[8:], checksumOfTCP)
	if gso := pkt.GSOOptions; gso.Type != stack.GSONone && pkt.Data().Size() > int(gso.MSS) {
		v[1] = gsoTCP4
		if pkt.NetworkProtocolNumber == header.IPv6ProtocolNumber {
			v[1] = gsoTCP6
		}
		binary.NativeEndian.PutUint16(v[2:], uint16(len(ip)+len(th)))
		binary.NativeEndian.PutUint16(v[4:], gso.MSS)
	}
	return append([][]byte{v}, pkt.AsSlices()...)
}

// The rest is what a stack.LinkEndpoint has to say about itself.

func (l *link) MTU() uint32                             { return MTU }
func (l *link) SetMTU(uint32)                           {}
func (l *link) MaxHeaderLength() uint16                 { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress          { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress)        {}
func (l *link) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)           {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (l *link) SupportedGSO() stack.SupportedGSO        { return stack.HostGSOSupported }
func (l *link) GSOMaxSize() uint32                      { return 1<<16 - 1 }
func (l *link) IsAttached() bool                        { return l.dispatcher.Load() != nil }
func (l *link) Wait()                                   { l.stack.reader.Wait() }
func (l *link) SetOnCloseAction(f func())               { l.closed = f }

func (l *link) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityTXChecksumOffload | stack.CapabilityRXChecksumOffload
}

// Attach takes the place that packets go to; nil means nowhere.
func (l *link) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		l.dispatcher.Store(nil)
		return
	}
	l.dispatcher.Store(&d)
}

// Close is called by the stack when it forgets the interface; the device is
// closed by Stack.Close, which owns it.
func (l *link) Close() {
	if l.closed != nil {
		l.closed()
	}
}
