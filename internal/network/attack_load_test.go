package network

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// open sends heads on n streams and waits for nothing.
func (f *second) open(n int, fields ...string) error {
	for i := range n {
		f.heads.Reset()
		for k := 0; k < len(fields); k += 2 {
			f.enc.WriteField(hpack.HeaderField{Name: fields[k], Value: fields[k+1]})
		}
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: f.heads.Bytes(), EndStream: true, EndHeaders: true})
		if err != nil {
			return err
		}
	}
	return nil
}

func getHead() []string {
	return []string{":method", "GET", ":scheme", "https", ":path", "/", ":authority", apiName}
}

// TestAnswersNobodyTakes has clients of HTTP/2 ask for long answers on all of
// their streams, and read none.
func TestAnswersNobodyTakes(t *testing.T) {
	var serving, most atomic.Int64
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := serving.Add(1)
		defer serving.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		piece := make([]byte, 64<<10)
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}), shopConfig{secure: true, config: func(c *Config) { c.Limits.Connections = 64 }})
	before := inUse()
	for range 10 {
		f := dialSecond(t, s)
		go func() {
			for { // what the server says is read, and never acknowledged
				if _, err := f.ReadFrame(); err != nil {
					return
				}
			}
		}()
		if err := f.open(100, getHead()...); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "what is too much is refused", func() bool {
		refused := 0
		for _, r := range s.Refusals() {
			if r.Reason == "too many requests are under way" {
				refused = r.Count
			}
		}
		return refused == 1000-64
	})
	if n := most.Load(); n > 64 {
		t.Errorf("%d requests were under way at once", n)
	}
	if got := inUse(); got > before+40<<20 {
		t.Errorf("memory in use went from %d to %d", before, got)
	}
}

// TestRapidResets opens streams and ends them at once (CVE-2023-44487).
func TestRapidResets(t *testing.T) {
	var seen atomic.Int64
	s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen.Add(1) }), shopConfig{secure: true})
	f := dialSecond(t, s)
	go func() {
		for {
			if _, err := f.ReadFrame(); err != nil {
				return
			}
		}
	}()
	begun := time.Now()
	for id := uint32(1); time.Since(begun) < patience/4; id += 2 {
		f.heads.Reset()
		for k, head := 0, getHead(); k < len(head); k += 2 {
			f.enc.WriteField(hpack.HeaderField{Name: head[k], Value: head[k+1]})
		}
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.heads.Bytes(), EndStream: true, EndHeaders: true}) != nil ||
			f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			break
		}
	}
	f.conn.Close() // a client that is slower than the server, as with a race detector, is not cut off
	until(t, "the connection ends", func() bool { return s.Stats().Open == 0 })
	if n := seen.Load(); n > 50_000 {
		t.Errorf("upstream saw %d requests", n)
	}
}

// TestContinuationFlood sends a head that does not end (VU#421644).
func TestContinuationFlood(t *testing.T) {
	s := newShop(t, http.NotFoundHandler(), shopConfig{secure: true})
	before := inUse()
	f := dialSecond(t, s)
	f.heads.Reset()
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: nil, EndStream: true})
	sent := 0
	for i := 0; sent < 256<<20; i++ {
		f.heads.Reset()
		f.enc.WriteField(hpack.HeaderField{Name: "x-" + strconv.Itoa(i), Value: strings.Repeat("a", 8000), Sensitive: true})
		sent += f.heads.Len()
		if f.WriteContinuation(1, false, f.heads.Bytes()) != nil {
			break
		}
	}
	if sent >= 256<<20 {
		t.Error("a head has no end")
	}
	if got := inUse(); got > before+8<<20 {
		t.Errorf("memory in use went from %d to %d", before, got)
	}
}
