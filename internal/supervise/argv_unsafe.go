//go:build linux

package supervise

import (
	"bytes"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	argvBatch = 128 // arguments that are read at once
	argvFirst = 128 // bytes of each that are read at first
)

// strings reads arguments until argvKept bytes are reached; left says that some
// was left out.
func (s *Supervisor) strings(tid int, at []uint64) (argv []string, left bool, errno syscall.Errno) {
	if len(at) == 0 {
		return nil, false, 0
	}
	argv = make([]string, 0, min(len(at), argvKept))
	room := argvKept
	for len(at) > 0 {
		batch := at[:min(len(at), argvBatch)]
		at = at[len(batch):]
		for i, part := range s.batch(tid, batch) {
			var text []byte
			if text, left, errno = s.argument(tid, batch[i], part, room); errno != 0 {
				return argv, true, errno
			}
			argv = append(argv, string(text))
			if room -= len(text) + 1; left || room <= 0 {
				return argv, left || i+1 < len(batch) || len(at) > 0, 0
			}
		}
	}
	return argv, false, 0
}

// batch reads the beginnings of some arguments in one call. Those that could
// not be read are empty.
func (s *Supervisor) batch(tid int, at []uint64) [][]byte {
	if s.parts == nil {
		s.parts, s.batchBuf = make([][]byte, argvBatch), make([]byte, argvBatch*argvFirst)
	}
	m, total := s.memory, 0
	for i, a := range at {
		size := int(min(argvFirst, m.page-a%m.page))
		m.remote[i] = unix.RemoteIovec{Base: uintptr(a), Len: size}
		s.parts[i] = s.batchBuf[total : total+size]
		total += size
	}
	m.local[0] = unix.Iovec{Base: unsafe.SliceData(s.batchBuf), Len: uint64(total)}
	got, _ := m.transfer(tid, 1, len(at))
	for i := range at {
		n := len(s.parts[i])
		if got < n {
			s.parts[i] = s.parts[i][:max(got, 0)]
		}
		got -= n
	}
	return s.parts[:len(at)]
}

// argument completes an argument of which a part is known.
func (s *Supervisor) argument(tid int, at uint64, part []byte, room int) (text []byte, left bool, errno syscall.Errno) {
	if i := bytes.IndexByte(part, 0); i >= 0 {
		if i > room {
			return part[:room], true, 0
		}
		return part[:i], false, 0
	}
	if len(s.long) < argvKept {
		s.long = make([]byte, argvKept)
	}
	text, whole, errno := s.memory.text(tid, at, s.long[:room])
	return text, !whole, errno
}
