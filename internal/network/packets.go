package network

import "net/netip"

// Packets are name queries that come as datagrams and through no socket, as a
// network stack in user space hands them out.
type Packets interface {
	// Read waits for a query. Asked is the address that it was sent to, client
	// where the answer goes. An error is the end.
	Read(b []byte) (n int, asked, client netip.AddrPort, err error)
	Write(b []byte, asked, client netip.AddrPort) error
}

// servePackets answers queries until there are no more.
func (s *nameServer) servePackets(p Packets) {
	buf := make([]byte, streamQuery)
	for {
		n, asked, client, err := p.Read(buf)
		if err != nil {
			return
		}
		if answer := s.answer(buf[:n], plainSize, packetSize); answer != nil {
			p.Write(answer, asked, client) // one that is lost is asked for again
		}
	}
}
