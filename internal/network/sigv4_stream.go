package network

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// v4Stream signs a body afresh that is signed chunk by chunk (Amazon S3 API
// Reference, "Transferring payload in multiple chunks"). Each signature stands
// for the one before it, so the first follows from the request's. Signatures are
// of one length: the body's length does not change.
type v4Stream struct {
	body   io.Closer
	in     *bufio.Reader
	signer *v4Signer
	before string // the signature before
	limit  int64  // bytes of a chunk
	tail   bool   // signed trailers follow
	ready  bytes.Buffer
	err    error // to return when ready is empty
}

const (
	v4ChunkMark = ";chunk-signature="
	v4TailMark  = "x-amz-trailer-signature:"
	v4TailMost  = 16 << 10 // bytes of all trailers
)

var errV4Chunk = errors.New("the body is not in signed chunks, as its header says")

func newV4Stream(body io.ReadCloser, signer *v4Signer, seed string, limit int64, tail bool) io.ReadCloser {
	if body == nil {
		body = io.NopCloser(strings.NewReader(""))
	}
	return &v4Stream{body: body, in: bufio.NewReaderSize(body, 4<<10), signer: signer, before: seed, limit: limit, tail: tail}
}

func (s *v4Stream) Close() error { return s.body.Close() }

func (s *v4Stream) Read(p []byte) (int, error) {
	for s.ready.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.ready.Reset()
		s.err = s.chunk()
		if s.err != nil && s.err != io.EOF {
			s.ready.Reset() // nothing of a chunk that is not whole
		}
	}
	return s.ready.Read(p)
}

// chunk reads one chunk and writes it with its new signature to ready. It
// returns io.EOF with the last one.
func (s *v4Stream) chunk() error {
	line, err := s.line()
	if err != nil {
		return err
	}
	size, signature, ok := strings.Cut(line, v4ChunkMark)
	if !ok || !isV4Signature(signature) || len(size) > 16 {
		return errV4Chunk
	}
	n, err := strconv.ParseUint(size, 16, 63)
	if err != nil {
		return errV4Chunk
	}
	if n > uint64(s.limit) {
		return fmt.Errorf("the body has a chunk of %d bytes; up to %d are read to sign it afresh", n, s.limit)
	}
	var data bytes.Buffer // grows with what arrives, not with what is announced
	if _, err := io.CopyN(&data, s.in, int64(n)); err != nil {
		return v4Cut(err)
	}
	s.before = s.signer.sign(v4Algorithm+"-PAYLOAD", s.before, v4Hash(nil), v4Hash(data.Bytes()))
	s.ready.WriteString(size + v4ChunkMark + s.before + "\r\n")
	if n == 0 && s.tail {
		return s.trailers()
	}
	s.ready.Write(data.Bytes())
	end, err := s.line()
	if err != nil {
		return err
	}
	if end != "" {
		return errV4Chunk
	}
	s.ready.WriteString("\r\n")
	if n == 0 {
		return s.end()
	}
	return nil
}

// trailers signs what follows the last chunk.
func (s *v4Stream) trailers() error {
	var canonical strings.Builder
	for {
		line, err := s.line()
		if err != nil {
			return err
		}
		if signature, ok := strings.CutPrefix(line, v4TailMark); ok {
			if !isV4Signature(signature) {
				return errV4Chunk
			}
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || !v4Token(strings.ToLower(name)) || canonical.Len() > v4TailMost {
			return errV4Chunk
		}
		s.ready.WriteString(line + "\r\n")
		canonical.WriteString(strings.ToLower(name) + ":" + v4Trim(value) + "\n")
	}
	s.before = s.signer.sign(v4Algorithm+"-TRAILER", s.before, v4Hash([]byte(canonical.String())))
	s.ready.WriteString(v4TailMark + s.before + "\r\n")
	switch line, err := s.line(); {
	case err != nil:
		return err
	case line != "":
		return errV4Chunk
	}
	s.ready.WriteString("\r\n")
	return s.end()
}

// end checks that nothing follows.
func (s *v4Stream) end() error {
	if _, err := s.in.ReadByte(); err != io.EOF {
		return errV4Chunk
	}
	return io.EOF
}

// line reads a line that ends in CR LF, without it. It has to fit the buffer.
func (s *v4Stream) line() (string, error) {
	text, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errV4Chunk
	}
	if err != nil {
		return "", v4Cut(err)
	}
	line, ok := bytes.CutSuffix(text, []byte("\r\n"))
	if !ok || bytes.ContainsAny(line, "\r\x00") {
		return "", errV4Chunk
	}
	return string(line), nil
}

// v4Cut says of a body that it ended too early.
func v4Cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the body ended within a signed chunk: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("reading a signed chunk: %w", err)
}

func isV4Signature(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}
