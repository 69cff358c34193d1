//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The FUSE protocol as far as the tripwire speaks it: include/uapi/linux/fuse.h
// of the kernel. Numbers are in the byte order of the machine, which is little
// endian on both architectures that there is a build for.

// What the kernel asks.
const (
	fuseLookup      = 1
	fuseForget      = 2 // no answer
	fuseGetattr     = 3
	fuseSetattr     = 4
	fuseReadlink    = 5
	fuseSymlink     = 6
	fuseMknod       = 8
	fuseMkdir       = 9
	fuseUnlink      = 10
	fuseRmdir       = 11
	fuseRename      = 12
	fuseLink        = 13
	fuseRead        = 15
	fuseWrite       = 16
	fuseStatfs      = 17
	fuseRelease     = 18
	fuseInit        = 26
	fuseReaddir     = 28
	fuseReleasedir  = 29
	fuseInterrupt   = 36 // no answer
	fuseDestroy     = 38
	fuseBatchForget = 42 // no answer
	fuseRename2     = 45
)

// The version that is spoken. The kernel answers in an older one when it has to.
const (
	fuseMajor = 7
	fuseMinor = 31 // Linux 5.4: the first with all that is used
)

// What INIT agrees on.
const (
	fuseBigWrites     = 1 << 5
	fuseNoOpen        = 1 << 17 // ENOSYS as the answer to OPEN: not asked again, pages stay cached
	fuseParallelDirs  = 1 << 18
	fuseCacheSymlinks = 1 << 23
	fuseNoOpendir     = 1 << 24

	fuseFlags = fuseBigWrites | fuseNoOpen | fuseParallelDirs | fuseCacheSymlinks | fuseNoOpendir
)

const (
	fuseHeader   = 40 // struct fuse_in_header
	fuseReply    = 16 // struct fuse_out_header
	fuseMaxWrite = 128 << 10
	fuseBuffer   = fuseMaxWrite + 4096 // no request is longer
	fuseRoot     = 1
	fuseForever  = 1 << 30 // seconds that a name or attributes are good for
)

// Bits of fuse_setattr_in.valid.
const (
	fuseSetMode     = 1 << 0
	fuseSetUID      = 1 << 1
	fuseSetGID      = 1 << 2
	fuseSetSize     = 1 << 3
	fuseSetMtime    = 1 << 5
	fuseSetMtimeNow = 1 << 8
)

// fuseRequest is one request: the header's fields and what follows it.
type fuseRequest struct {
	op     uint32
	unique uint64
	node   uint64
	tid    int // in the pid namespace of the process that mounted; 0 for the kernel itself
	body   []byte
}

// parseFUSE splits a request. False means that raw is not one.
func parseFUSE(raw []byte) (fuseRequest, bool) {
	if len(raw) < fuseHeader || int(binary.LittleEndian.Uint32(raw)) != len(raw) {
		return fuseRequest{}, false
	}
	le := binary.LittleEndian
	r := fuseRequest{
		op:     le.Uint32(raw[4:]),
		unique: le.Uint64(raw[8:]),
		node:   le.Uint64(raw[16:]),
		tid:    int(int32(le.Uint32(raw[32:]))),
		body:   raw[fuseHeader:],
	}
	// Extensions follow the body, in units of eight bytes (7.38).
	if ext := 8 * int(le.Uint16(raw[36:])); ext <= len(r.body) {
		r.body = r.body[:len(r.body)-ext]
	} else {
		return fuseRequest{}, false
	}
	return r, true
}

// splitFixed returns the first n bytes of the body and what follows them.
func (r fuseRequest) splitFixed(n int) (head, rest []byte, ok bool) {
	if len(r.body) < n {
		return nil, nil, false
	}
	return r.body[:n], r.body[n:], true
}

// fuseString takes one string that ends with NUL.
func fuseString(b []byte) (s string, rest []byte, ok bool) {
	i := bytes.IndexByte(b, 0)
	if i < 0 {
		return "", nil, false
	}
	return string(b[:i]), b[i+1:], true
}

// fuseName takes the name of a directory's entry.
func fuseName(b []byte) (name string, rest []byte, errno unix.Errno) {
	name, rest, ok := fuseString(b)
	switch {
	case !ok || name == "" || name == "." || name == ".." || bytes.IndexByte([]byte(name), '/') >= 0:
		return "", nil, unix.EINVAL
	case len(name) > unix.NAME_MAX:
		return "", nil, unix.ENAMETOOLONG
	}
	return name, rest, 0
}

// fuseAnswer begins an answer in buf. finish fills in its length.
func fuseAnswer(buf []byte, unique uint64) []byte {
	buf = binary.LittleEndian.AppendUint32(buf[:0], 0)
	buf = binary.LittleEndian.AppendUint32(buf, 0)
	return binary.LittleEndian.AppendUint64(buf, unique)
}

func fuseFinish(answer []byte) []byte {
	binary.LittleEndian.PutUint32(answer, uint32(len(answer)))
	return answer
}

// fuseFailure is an answer that says no.
func fuseFailure(buf []byte, unique uint64, errno unix.Errno) []byte {
	buf = fuseAnswer(buf, unique)
	binary.LittleEndian.PutUint32(buf[4:], uint32(-int32(errno)))
	return fuseFinish(buf)
}

// fuseNothing answers that a name is not there, which the kernel remembers for as
// many seconds: a struct fuse_entry_out without a number.
func fuseNothing(buf []byte, unique, seconds uint64) []byte {
	buf = appendWords(fuseAnswer(buf, unique), 0, 0, seconds, 0)
	return fuseFinish(append(buf, make([]byte, 96)...))
}

// appendWords appends 64-bit values.
func appendWords(b []byte, vs ...uint64) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// appendHalves appends 32-bit values.
func appendHalves(b []byte, vs ...uint32) []byte {
	for _, v := range vs {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
