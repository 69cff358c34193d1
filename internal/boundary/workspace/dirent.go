//go:build linux

package workspace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// readDirents reads all entries of a directory into buf, which it may make larger.
func readDirents(fd int, buf []byte) (all []byte, n int, err error) {
	for {
		if len(buf)-n < 4096 {
			buf = append(buf, make([]byte, len(buf))...)
		}
		m, err := unix.Getdents(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err == unix.ENOENT {
			return buf, 0, nil // the directory was removed meanwhile
		}
		if err != nil || m == 0 {
			return buf, n, err
		}
		n += m
	}
}

// readNames lists what a directory holds.
func readNames(fd int) ([]string, error) {
	buf, n, err := readDirents(fd, make([]byte, 32<<10))
	var names []string
	for list := buf[:n]; len(list) > 0; {
		var e entry
		if e, list = next(list); e.nameZ != nil {
			names = append(names, string(e.name()))
		}
	}
	return names, err
}

// next takes one entry off a getdents64 buffer; its name is nil for "." and "..".
func next(b []byte) (entry, []byte) {
	size := binary.NativeEndian.Uint16(b[16:])
	name := b[19:size]
	name = name[:bytes.IndexByte(name, 0)+1]
	if string(name) == ".\x00" || string(name) == "..\x00" {
		name = nil
	}
	return entry{nameZ: name, typ: b[18], ino: binary.NativeEndian.Uint64(b)}, b[size:]
}

// isRepository reports whether a directory has the shape that git asks for:
// HEAD, and objects and refs, or a commondir in their place.
func isRepository(list []byte, w *walker) bool {
	var head, objects, refs, common bool
	for len(list) > 0 {
		var e entry
		e, list = next(list)
		if n := len(e.nameZ); n < 5 || n > 32 || !startsLikeGit(e.nameZ[0]) {
			continue
		}
		switch string(fold(e.name(), w.fold)) {
		case "head":
			head = true
		case "objects":
			objects = true
		case "refs":
			refs = true
		case "commondir":
			common = true
		}
	}
	return head && (objects && refs || common)
}

// startsLikeGit reports whether a name with this first byte may be folded to one that
// isRepository looks for.
func startsLikeGit(c byte) bool {
	switch c {
	case 'h', 'H', 'o', 'O', 'r', 'R', 'c', 'C':
		return true
	}
	return c >= utf8.RuneSelf
}

// ignoreGone turns the errors of a name that was removed or replaced meanwhile into
// nil: what replaced it is looked at when the run ends.
func ignoreGone(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}
