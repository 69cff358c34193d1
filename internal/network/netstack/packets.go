package netstack

import (
	"fmt"
	"net"
	"net/netip"
)

// Packets are the datagrams to port 53 of every address.
type Packets struct {
	stack *Stack
	queue chan datagram
}

type datagram struct {
	asked, client netip.AddrPort
	payload       []byte
}

// Read waits for a query and copies it to b; what does not fit is cut off. No
// query is longer than 4096 bytes. Asked is the address that it was sent to,
// client that which wants the answer.
func (p *Packets) Read(b []byte) (n int, asked, client netip.AddrPort, err error) {
	select {
	case d := <-p.queue:
		return copy(b, d.payload), d.asked, d.client, nil
	case <-p.stack.done:
		return 0, netip.AddrPort{}, netip.AddrPort{}, &net.OpError{Op: "read", Net: "udp", Err: p.stack.cause()}
	}
}

// Write sends b from asked to client, which are what Read returned. As with
// every datagram, nil does not mean that it arrives.
func (p *Packets) Write(b []byte, asked, client netip.AddrPort) error {
	if asked.Addr().Is4() != client.Addr().Is4() || !asked.Addr().IsValid() || !client.Addr().IsValid() {
		return fmt.Errorf("answering %s from %s: addresses of two families", client, asked)
	}
	head, err := udpHead(asked, client, b)
	if err != nil {
		return fmt.Errorf("answering %s: %w", client, err)
	}
	if len(head)+len(b) > MTU {
		return fmt.Errorf("answering %s: %d bytes do not fit the MTU of %d", client, len(b), MTU)
	}
	return p.stack.device.write([][]byte{make([]byte, vnetSize), head, b})
}

// put queues a query; what finds no room is lost, as it would be in a socket.
func (p *Packets) put(d datagram) {
	select {
	case p.queue <- d:
	default:
	}
}
