package network

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/miekg/dns"

	"holdfast.dev/holdfast/internal/policy"
)

// TestCostOfAQuery sends what is expensive to parse: thousands of records whose names
// are pointers to a long one.
func TestCostOfAQuery(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 443, policy.TLS))
	query := make([]byte, 12)
	for range 126 {
		query = append(query, 1, 'a')
	}
	query = append(query, 0, 0, 1, 0, 1)
	records := 0
	for ; len(query) < 65000; records++ {
		query = append(query, 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 0, 0, 2, 0xc0, 12)
	}
	binary.BigEndian.PutUint16(query[4:], 1)
	for _, section := range []int{6, 8, 10} {
		clear(query[6:12])
		binary.BigEndian.PutUint16(query[section:], uint16(records))
		const many = 100
		best := time.Hour // of ten times: what else the machine does only slows some of them down
		for range 10 {
			begun := time.Now()
			for range many {
				answer := w.Engine.server.answer(query, plainSize, packetSize)
				if len(answer) != 12 || int(answer[3]&0xf) != dns.RcodeFormatError {
					t.Fatalf("answered %x", answer)
				}
			}
			best = min(best, time.Since(begun))
		}
		if best > many*time.Millisecond {
			t.Errorf("%d such queries took %v", many, best)
		}
	}
}
