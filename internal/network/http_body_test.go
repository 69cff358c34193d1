package network

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"
)

// alone is a body that notices when two read it at once.
type alone struct {
	busy atomic.Int32
	left int
	bad  atomic.Bool
}

func (a *alone) Read(p []byte) (int, error) {
	if a.busy.Add(1) != 1 {
		a.bad.Store(true)
	}
	defer a.busy.Add(-1)
	if a.left == 0 {
		return 0, io.EOF
	}
	a.left--
	return 1, nil
}

func (*alone) Close() error { return nil }

// TestABodyIsReadInTurn reads a body concurrently, as the upstream connection and the
// reader of its rest do. Under the race detector the counter also shows a race.
func TestABodyIsReadInTurn(t *testing.T) {
	under := &alone{left: 10_000}
	body := newSerialBody(under)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() { io.Copy(io.Discard, body) })
	}
	readers.Wait()
	if under.bad.Load() || under.left != 0 {
		t.Errorf("two read at once, or %d bytes were not read", under.left)
	}
}
