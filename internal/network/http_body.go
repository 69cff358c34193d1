package network

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// How much of an unneeded body is read: as much as net/http would, and no longer than a
// client needs that is already sending.
const (
	restBytes = 256 << 10
	restTime  = time.Second
)

// finish reads what is left of a request that was answered early. Otherwise an HTTP/2
// client gets RST_STREAM with NO_ERROR, which libcurl before 8 takes for a broken
// answer, and an HTTP/1.1 connection is closed under the next request. A client that
// waits for permission to send its body gets none.
func finish(w http.ResponseWriter, r *http.Request, body io.Reader) {
	if r.Header.Get("Expect") != "" || r.ContentLength == 0 {
		return
	}
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime)) != nil {
		return // the connection is another protocol's now
	}
	io.CopyN(io.Discard, body, restBytes)
	http.NewResponseController(w).SetReadDeadline(time.Time{})
}

// serialBody is the body of a request for two readers: what passes it on may go on
// after the answer, when what is left of it is read, and net/http's own body for
// HTTP/2 bears no two.
type serialBody struct {
	io.ReadCloser
	mu sync.Mutex
}

func newSerialBody(body io.ReadCloser) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body
	}
	return &serialBody{ReadCloser: body}
}

func (t *serialBody) Read(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ReadCloser.Read(p)
}
