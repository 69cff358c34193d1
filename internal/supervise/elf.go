//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	elfHeader  = 64 // size of Elf64_Ehdr
	elfProgram = 56 // size of Elf64_Phdr
	elfMost    = 64 << 10 / elfProgram
	ptInterp   = 3
)

// loader reads which dynamic loader a program of 64 bits names (elf(5),
// PT_INTERP), as load_elf_binary does; "" for none.
func loader(fd int) string {
	var head [elfHeader]byte
	if n, _ := unix.Pread(fd, head[:], 0); n != len(head) || !bytes.HasPrefix(head[:], []byte("\x7fELF\x02\x01")) {
		return ""
	}
	le := binary.LittleEndian
	if at, size, count := le.Uint64(head[32:]), le.Uint16(head[54:]), int(le.Uint16(head[56:])); size == elfProgram && count <= elfMost {
		table := make([]byte, elfProgram*count)
		n, _ := unix.Pread(fd, table, int64(at))
		for ; n >= elfProgram; table, n = table[elfProgram:], n-elfProgram {
			if le.Uint32(table) == ptInterp {
				return loaderName(fd, int64(le.Uint64(table[8:])), le.Uint64(table[32:]))
			}
		}
	}
	return ""
}

// loaderName reads the text of size bytes, whose last byte is zero.
func loaderName(fd int, at int64, size uint64) string {
	if size < 2 || size > pathMax {
		return ""
	}
	text := make([]byte, size)
	n, _ := unix.Pread(fd, text, at)
	name, _, whole := bytes.Cut(text[:max(n, 0)], []byte{0})
	if !whole {
		return ""
	}
	return string(name)
}
