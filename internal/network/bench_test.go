package network

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

const bulkPiece = 256 << 10

// flood serves a client with as much as it takes.
func flood(c *net.TCPConn) {
	b := make([]byte, bulkPiece)
	for {
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// benchWorld is a server reached directly and through an engine.
func benchWorld(b *testing.B, serve func(*net.TCPConn)) (direct, through string) {
	w := start(b, func(c *Config) { c.Sink = nil }, permits("203.0.113.9", 22, policy.TCP))
	w.server("203.0.113.9:22", serve)
	return w.out.at["203.0.113.9:22"], w.door(netip.MustParseAddrPort("203.0.113.9:22"))
}

// BenchmarkBulk downloads over 1, 32 and 256 connections, directly and through
// the engine; all ends are in this process.
func BenchmarkBulk(b *testing.B) {
	for _, many := range []int{1, 32, 256} {
		for _, through := range []bool{false, true} {
			name := fmt.Sprintf("%d/direct", many)
			if through {
				name = fmt.Sprintf("%d/engine", many)
			}
			b.Run(name, func(b *testing.B) {
				at, engine := benchWorld(b, flood)
				if through {
					at = engine
				}
				conns := make([]net.Conn, many)
				for i := range conns {
					conns[i] = connect(b, at)
					conns[i].SetDeadline(time.Now().Add(5 * time.Minute))
				}
				b.SetBytes(1 << 20)
				b.ResetTimer()
				var wg sync.WaitGroup
				for i, c := range conns {
					share := b.N / many
					if i < b.N%many {
						share++
					}
					wg.Go(func() { drain(b, c, int64(share)<<20) })
				}
				wg.Wait()
			})
		}
	}
}

func drain(b *testing.B, c net.Conn, n int64) {
	buf := make([]byte, bulkPiece)
	for n > 0 {
		got, err := c.Read(buf[:min(n, bulkPiece)])
		if err != nil {
			b.Error(err)
			return
		}
		n -= int64(got)
	}
}

// BenchmarkConnect measures a connection with one question and one answer.
func BenchmarkConnect(b *testing.B) {
	direct, engine := benchWorld(b, func(c *net.TCPConn) {
		p := make([]byte, 1)
		c.Read(p)
		c.Write(p)
	})
	for name, at := range map[string]string{"direct": direct, "engine": engine} {
		b.Run(name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			p := make([]byte, 1)
			for b.Loop() {
				begun := time.Now()
				c, err := net.Dial("tcp", at)
				if err != nil {
					b.Fatal(err)
				}
				c.Write(p)
				if _, err := io.ReadFull(c, p); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begun))
				c.Close()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
		})
	}
}
