package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestALargeAnswerIsNotHeldBack: what upstream has sent reaches the client while
// upstream sends nothing more.
func TestALargeAnswerIsNotHeldBack(t *testing.T) {
	pieces := []int{1, 1000, smallStep, 100_000, largeStep, 1<<20 + 7, 3}
	all := 0
	for _, n := range pieces {
		all += n
	}
	sent := bytes.Repeat([]byte("0123456789abcdef!"), all/17+1)[:all]
	for _, row := range []struct {
		name       string
		old, known bool
	}{{"HTTP/1.1", true, true}, {"HTTP/1.1 in chunks", true, false}, {"HTTP/2", false, true}} {
		t.Run(row.name, func(t *testing.T) {
			testenv.NoGoroutines(t)
			read := make(chan struct{})
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if row.known {
					w.Header().Set("Content-Length", strconv.Itoa(all))
				}
				rest := sent
				for _, n := range pieces {
					w.Write(rest[:n])
					w.(http.Flusher).Flush()
					rest = rest[n:]
					<-read
				}
			}), shopConfig{secure: true, old: row.old})
			resp, err := s.client.Get(s.url("/"))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got []byte
			for _, n := range pieces {
				piece := make([]byte, n)
				if _, err := io.ReadFull(resp.Body, piece); err != nil {
					t.Fatalf("after %d bytes: %v", len(got), err)
				}
				got = append(got, piece...)
				if n == 1<<20+7 && row.old && s.relayPool.large.Load() == 0 {
					t.Error("nothing was gathered")
				}
				read <- struct{}{}
			}
			if more, err := io.ReadAll(resp.Body); err != nil || len(more) > 0 || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes too many, %v", len(more), err)
			}
			until(t, "all buffers are given back", func() bool { return s.relayPool.large.Load() == 0 })
		})
	}
}

// sends is a connection that notes what is written at once.
type sends struct {
	net.Conn
	sizes []int
	fails error
}

func (s *sends) Write(p []byte) (int, error) {
	s.sizes = append(s.sizes, len(p))
	return len(p), s.fails
}

func TestGathering(t *testing.T) {
	under := &sends{}
	g := &gatherConn{wrapped: wrapped{under}, pool: newRelayPool()}
	write := func(n int) {
		t.Helper()
		if m, err := g.Write(make([]byte, n)); m != n || err != nil {
			t.Errorf("of %d bytes %d were written, %v", n, m, err)
		}
	}
	wants := func(sizes ...int) {
		t.Helper()
		if !slices.Equal(under.sizes, sizes) {
			t.Errorf("sent %v, want %v", under.sizes, sizes)
		}
	}
	write(5)
	wants(5)
	g.begin()
	for range 9 {
		write(16 << 10)
	}
	wants(5, 128<<10)
	g.flush()
	g.flush()
	wants(5, 128<<10, 16<<10)
	write(7)
	write(largeStep + 1)
	wants(5, 128<<10, 16<<10, 7, largeStep+1)
	write(8)
	g.end()
	write(9)
	wants(5, 128<<10, 16<<10, 7, largeStep+1, 8, 9)
	if n := g.pool.large.Load(); n != 0 {
		t.Errorf("%d buffers are in use", n)
	}
	g.begin()
	write(1)
	under.fails = errors.New("gone")
	g.end()
	if _, err := g.Write([]byte("x")); !errors.Is(err, under.fails) {
		t.Errorf("what was lost is not told of: %v", err)
	}
}
