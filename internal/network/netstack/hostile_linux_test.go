package netstack

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
)

// A process that may write to the device, as root in a namespace of its own may with a
// raw socket, sends segments that no kernel would. They must neither end the supervisor
// nor disturb a connection that they do not belong to.
func TestRootForgedSegments(t *testing.T) {
	w := launch(t, limits{connections: 1024, halfOpen: 64})
	victim, _ := w.pair("198.51.100.7:443")
	quiet, here := w.pair("198.51.100.8:443")
	fd := w.socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	defer unix.Close(fd)
	src, dst := netip.MustParseAddr("10.77.0.2"), netip.MustParseAddr("198.51.100.7")
	_, to := sockaddr("198.51.100.7:0")
	port := uint16(victim.LocalAddr().(*net.TCPAddr).Port)
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	for i := range 30_000 {
		segment := make([]byte, headTCP+random.IntN(60))
		for j := range segment {
			segment[j] = byte(random.Uint32())
		}
		binary.BigEndian.PutUint16(segment[2:], 443)
		if i%2 == 0 { // of the victim, with flags at random
			binary.BigEndian.PutUint16(segment[0:], port)
		} else if i%4 == 1 { // a SYN with options at random
			segment[13] = 2
		}
		segment[12] = byte(5+random.IntN(11)) << 4 // also beyond its end
		b := make([]byte, head4+len(segment))
		ipHead(b, src, dst, tcpProto)
		copy(b[head4:], segment)
		binary.BigEndian.PutUint16(b[head4+checksumOfTCP:], 0)
		sum := checksum.Checksum(b[head4:], pseudo(src, dst, tcpProto, len(segment)))
		binary.BigEndian.PutUint16(b[head4+checksumOfTCP:], ^sum)
		if err := unix.Sendto(fd, b, 0, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := exchange(quiet, here, 1<<20); err != nil {
		t.Errorf("a connection beside it: %v", err)
	}
}
