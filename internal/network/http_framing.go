package network

import "slices"

// framing follows a body through its bytes. The zero value is no body.
type framing struct {
	kind  framingKind
	state chunkState
	left  int64  // bytes of the body, or of the chunk
	digit int    // digits of the chunk's size so far
	line  []byte // of trailers, so far
	spent int    // bytes of trailers
}

type framingKind int

const (
	none framingKind = iota
	sized
	chunked
	complete
)

type chunkState int

const (
	chunkSize chunkState = iota
	chunkSizeEnd
	chunkData
	chunkDataCR
	chunkDataLF
	trailerLine
	trailerEnd
)

const (
	sizeDigits   = 15 // of a chunk's size: below 2^60
	trailerBytes = 16 << 10
)

// more reports whether bytes of the body are to come.
func (f framing) more() bool {
	return f.kind == chunked || f.kind == sized && f.left > 0
}

// feed takes bytes and returns how many of them belong to the body.
func (f *framing) feed(b []byte) (int, *denial) {
	if f.kind == sized {
		n := int(min(int64(len(b)), f.left))
		f.left -= int64(n)
		return n, nil
	}
	for i := 0; i < len(b); {
		if f.state == chunkData {
			n := int(min(int64(len(b)-i), f.left))
			f.left -= int64(n)
			i += n
			if f.left == 0 {
				f.state = chunkDataCR
			}
			continue
		}
		if bad := f.step(b[i]); bad != nil {
			return i, bad
		}
		i++
		if f.kind == complete {
			return i, nil
		}
	}
	return len(b), nil
}

// step takes one byte of the framing around the data.
func (f *framing) step(c byte) *denial {
	switch f.state {
	case chunkSize:
		return f.size(c)
	case chunkSizeEnd:
		if c != '\n' {
			return smuggling("the size of a chunk does not end in CR LF")
		}
		f.digit = 0
		if f.state = chunkData; f.left == 0 {
			f.state = trailerLine
		}
	case chunkDataCR, chunkDataLF:
		if c != "\r\n"[f.state-chunkDataCR] {
			return smuggling("a chunk is longer than its size")
		}
		if f.state++; f.state > chunkDataLF {
			f.state = chunkSize
		}
	case trailerLine:
		return f.trailer(c)
	case trailerEnd:
		return f.endTrailer(c)
	}
	return nil
}

func (f *framing) size(c byte) *denial {
	var v byte
	switch {
	case '0' <= c && c <= '9':
		v = c - '0'
	case 'a' <= c && c <= 'f':
		v = c - 'a' + 10
	case 'A' <= c && c <= 'F':
		v = c - 'A' + 10
	case c == '\r' && f.digit > 0:
		f.state = chunkSizeEnd
		return nil
	case c == ';':
		return smuggling("a chunk has an extension")
	default:
		return smuggling("the size of a chunk is not a number")
	}
	if f.digit++; f.digit > sizeDigits {
		return smuggling("the size of a chunk has more than %d digits", sizeDigits)
	}
	f.left = f.left<<4 | int64(v)
	return nil
}

func (f *framing) trailer(c byte) *denial {
	if f.spent++; f.spent > trailerBytes {
		return smuggling("the trailers are larger than %d bytes", trailerBytes)
	}
	switch c {
	case '\n':
		return smuggling("a trailer ends in a bare line feed")
	case '\r':
		f.state = trailerEnd
	default:
		f.line = append(f.line, c)
	}
	return nil
}

func (f *framing) endTrailer(c byte) *denial {
	if c != '\n' {
		return smuggling("a trailer contains a bare carriage return")
	}
	f.state = trailerLine
	if len(f.line) == 0 {
		f.kind = complete
		return nil
	}
	name, _, bad := parseField(f.line)
	if bad != nil {
		return bad
	}
	if name = canonicalField(name); slices.Contains(notTrailers, name) || dropped(name) {
		return smuggling("the header %s is in a trailer", name)
	}
	f.line = f.line[:0]
	return nil
}

// notTrailers are fields that a server must have seen before the body: framing,
// routing, credentials and what describes the body (RFC 9110, 6.5.1).
var notTrailers = []string{
	"authorization", "cache-control", "connection", "content-encoding", "content-length",
	"content-range", "content-type", "cookie", "expect", "host", "keep-alive", "max-forwards",
	"range", "set-cookie", "te", "trailer", "transfer-encoding", "upgrade",
}
