package realtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Names that the private network knows, including one that no rule allows.
const (
	filesHost    = "files.example.org"
	registryHost = "registry.example.org"
	indexHost    = "index.example.org"
	modulesHost  = "modules.example.org"
	cratesHost   = "crates.example.org"
	debianHost   = "debian.example.org"
	gitHost      = "git.example.org"
	streamHost   = "streams.example.org"
	otherHost    = "other.example.org"
	impostorHost = "impostor.example.org"
	companyHost  = "company.example.org"  // has a certificate of a company's own authority
	sixHost      = "six.example.org"      // has no IPv4 address
	intranetHost = "intranet.example.org" // has a private address
	metadataHost = "metadata.example.org" // has the address of a cloud's metadata service
)

// sites are the web servers of the private network, by name.
func sites(t *testing.T, repositories string) map[string]http.Handler {
	t.Helper()
	return map[string]http.Handler{
		filesHost:    filesSite(),
		registryHost: onePackage(t),
		indexHost:    pythonIndex(t),
		modulesHost:  goProxy(t),
		cratesHost:   crateRegistry(t),
		debianHost:   debianArchive(t),
		gitHost:      gitSite(repositories),
		streamHost:   streamSite(),
		privateHost:  privateSite(t, repositories),
		sixHost:      filesSite(),
		intranetHost: filesSite(),
		metadataHost: filesSite(),
		otherHost:    http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the other host\n") }),
	}
}

// byName passes a request to the site that its Host names.
func byName(sites map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.Host, ":")
		if name == addresses[filesHost] {
			name = filesHost
		}
		site, ok := sites[name]
		if !ok {
			http.Error(w, "no site "+name, http.StatusMisdirectedRequest)
			return
		}
		site.ServeHTTP(w, r)
		// Over HTTP/2 an unread body causes a reset, and curl 7.88 then drops the
		// answer.
		_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
	})
}

// filesSite reports what a client can see of its own request.
func filesSite() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello by %s\n", r.Proto) })
	mux.HandleFunc("GET /old", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/hello", http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET /bytes/{count}", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.PathValue("count"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(count))
		w.Write(bytes.Repeat([]byte{'x'}, count))
	})
	mux.HandleFunc("GET /packed", func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			io.WriteString(w, "not packed\n")
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, "packed\n")
		z.Close()
	})
	mux.HandleFunc("GET /hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/target/", func(w http.ResponseWriter, r *http.Request) {
		names := maps.Clone(r.Header)
		delete(names, "Connection") // hop-by-hop: a GET with a body closes the connection to the server
		fmt.Fprintf(w, "%s %q %q\n", r.Method, r.RequestURI, slices.Sorted(maps.Keys(names)))
	})
	mux.HandleFunc("/old-server", oldServer)
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) })
	mux.HandleFunc("POST /done", func(_ http.ResponseWriter, r *http.Request) { saw("page", r.URL.RawQuery) <- struct{}{} })
	mux.HandleFunc("GET /until", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-saw("page", r.URL.RawQuery):
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /socket", socket)
	mux.HandleFunc("GET /ranges", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "ranges.txt", epoch, strings.NewReader("0123456789\n"))
	})
	mux.HandleFunc("/count", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s of %d bytes %v\n", r.Method, n, err)
	})
	return mux
}

// page is a page on which a browser computes something from network data. The
// image arrives when it has finished, so that the page is not loaded before that.
const page = `<!doctype html><title>t</title><p id=p>nothing yet</p><img id=i><script>
i.src = '/until' + location.search;
const show = text => { p.textContent = text; fetch('/done' + location.search, { method: 'POST' }); };
fetch('/hello').then(answer => answer.text()).then(text => {
  const socket = new WebSocket('wss://' + location.host + '/socket');
  socket.onopen = () => socket.send('frame');
  socket.onerror = () => show('no socket');
  socket.onmessage = frame => show(text.trim() + ', and ' + frame.data);
}).catch(show);
</script>`

// oldServer answers like a server of the nineties: the answer ends with the
// connection.
func oldServer(w http.ResponseWriter, _ *http.Request) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer c.Close()
	io.WriteString(rw, "HTTP/1.0 200 OK\r\nServer: Old/0.9\r\nContent-type: text/plain\r\n\r\nwithout a length\n")
	rw.Flush()
}

// streamSite has answers that continue while the client sends. A proxy that
// buffers a part until more comes waits forever.
func streamSite() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /events/{id}", events)
	mux.HandleFunc("POST /seen/{id}/{n}", seen)
	mux.HandleFunc("POST /echo.Service/Talk", talk)
	mux.HandleFunc("GET /trailers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body before trailers\n")
		w.Header().Set("X-Sum", "21")
	})
	mux.HandleFunc("GET /socket", socket)
	return mux
}

// acknowledged has a channel for each event that a client has acknowledged.
var acknowledged sync.Map

func saw(id, n string) chan struct{} {
	c, _ := acknowledged.LoadOrStore(id+"/"+n, make(chan struct{}, 1))
	return c.(chan struct{})
}

// events sends each event after the client has acknowledged the previous one.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for n := range 5 {
		fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", n, n)
		if err := out.Flush(); err != nil {
			return
		}
		select {
		case <-saw(r.PathValue("id"), strconv.Itoa(n)):
		case <-r.Context().Done():
			return
		}
	}
	io.WriteString(w, "data: end\n\n")
}

func seen(w http.ResponseWriter, r *http.Request) {
	saw(r.PathValue("id"), r.PathValue("n")) <- struct{}{}
	w.WriteHeader(http.StatusNoContent)
}

// talk is a bidirectional stream in gRPC's format: a five-byte prefix before each
// message, the status in the trailers. Each message is answered before the next
// one is read.
func talk(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 || r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" {
		http.Error(w, "not gRPC", http.StatusUnsupportedMediaType)
		return
	}
	w.Header().Set("Content-Type", "application/grpc")
	out := http.NewResponseController(w)
	if err := out.Flush(); err != nil {
		return
	}
	for {
		message, err := readMessage(r.Body)
		if err == io.EOF {
			break
		}
		if err != nil {
			return
		}
		writeMessage(w, append([]byte("echo "), message...))
		if err := out.Flush(); err != nil {
			return
		}
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
	w.Header().Set(http.TrailerPrefix+"Grpc-Message", "bye")
}

func readMessage(r io.Reader) ([]byte, error) {
	var prefix [5]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	message := make([]byte, prefix[4])
	_, err := io.ReadFull(r, message)
	return message, err
}

// writeMessage is for messages of at most 255 bytes.
func writeMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append([]byte{0, 0, 0, 0, byte(len(message))}, message...))
	return err
}

// socket is a WebSocket (RFC 6455) that returns each short frame in upper case.
func socket(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "not a WebSocket", http.StatusUpgradeRequired)
		return
	}
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer c.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	for rw.Flush() == nil {
		text, err := readFrame(rw.Reader)
		if err != nil {
			return
		}
		rw.Write([]byte{0x81, byte(len(text))})
		rw.Write(bytes.ToUpper(text))
	}
}

// readFrame reads a masked text frame of at most 125 bytes.
func readFrame(r *bufio.Reader) ([]byte, error) {
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 0x81 || head[1]&0x80 == 0 || head[1]&0x7f > 125 {
		return nil, fmt.Errorf("frame %x", head[:2])
	}
	text := make([]byte, head[1]&0x7f)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	for i := range text {
		text[i] ^= head[2+i%4]
	}
	return text, nil
}
