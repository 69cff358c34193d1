package network

import (
	"context"
	"crypto/sha256"
	"io"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// through relays size bytes from one end to the other and says what is wrong.
func through(t *testing.T, w *world, seed uint64, size int) {
	client, a := tcpPair(t)
	server, b := tcpPair(t)
	done := make(chan error, 1)
	go func() { err := w.relay(context.Background(), a, b, nil); done <- err }()
	sent := make(chan [32]byte, 1)
	go func() {
		sum, err := pour(server, seed, size)
		if err != nil {
			t.Error(err)
		}
		sent <- sum
	}()
	client.CloseWrite()
	h := sha256.New()
	if _, err := io.Copy(h, client); err != nil {
		t.Error(err)
	}
	if got := [32]byte(h.Sum(nil)); got != <-sent {
		t.Errorf("relay %d: other bytes came out than went in", seed)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestManyRelaysAtOncePassTheSameBytesWhateverTheirPipes(t *testing.T) {
	testenv.NoGoroutines(t)
	w := start(t, nil)
	var all sync.WaitGroup
	for i := range 3 * widePipes {
		all.Go(func() { through(t, w, uint64(i), 4<<20+i) })
	}
	all.Wait()
	if n := w.relayPool.pipes.Load(); n != 0 {
		t.Errorf("%d pipes are still counted", n)
	}
}

func TestWhatIsLeftInAPipeReachesNobodyElse(t *testing.T) {
	w := start(t, nil)
	for range 2 * widePipes {
		client, a := tcpPair(t)
		server, b := tcpPair(t)
		done := make(chan error, 1)
		go func() { err := w.relay(context.Background(), a, b, nil); done <- err }()
		poured := make(chan struct{})
		go func() { pour(server, 1, 64<<20); close(poured) }() // breaks off, as it should
		if _, err := io.CopyN(io.Discard, client, 4*spliceAfter); err != nil {
			t.Fatal(err)
		}
		until(t, "it is spliced", func() bool { return w.relayPool.pipes.Load() > 0 })
		client.SetLinger(0)
		client.Close()
		<-done
		<-poured
	}
	through(t, w, 7, 8<<20)
}
