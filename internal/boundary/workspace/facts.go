//go:build linux

package workspace

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"
)

// Fact is one file of a tree as it was at some moment.
type Fact struct {
	Path string // relative to the root, bytes as they are
	Identity
}

// Identity distinguishes two states of a file without reading it. No program can set
// the change time, so that a file that was written to has another identity.
type Identity struct {
	Mode  uint32 `json:"m"` // st_mode, with the type
	Ino   uint64 `json:"i"`
	Dev   uint64 `json:"d"`
	Size  int64  `json:"s"`  // bytes
	Mtime int64  `json:"mt"` // ns since 1970
	Ctime int64  `json:"ct"`
}

// IdentityOf is the identity of a file of that status.
func IdentityOf(st *unix.Statx_t) Identity {
	return Identity{Mode: uint32(st.Mode), Ino: st.Ino, Dev: unix.Mkdev(st.Dev_major, st.Dev_minor),
		Size: int64(st.Size), Mtime: nanos(st.Mtime), Ctime: nanos(st.Ctime)}
}

// Same reports whether a file is still what it was: nothing but a change of the
// clock sets a ctime back (stat(2)).
func (i Identity) Same(now Identity) bool {
	return i.Ino == now.Ino && i.Dev == now.Dev && i.Ctime == now.Ctime && i.Mode&typeMask == now.Mode&typeMask
}

// FactsHeader is the first line of a list of facts.
type FactsHeader struct {
	Version int   `json:"version"`
	Root    Name  `json:"root"`
	Began   int64 `json:"began"` // ns since 1970, a little before the walk
}

// factsDepth bounds how deep a tree is walked: each level is an open descriptor.
const factsDepth = 4096

// WriteFacts walks the tree at root, which no link leads to, and writes a line a
// file. Mount points in it are entered. A directory that cannot be read is
// listed, and what is in it is not.
func WriteFacts(ctx context.Context, root string, began int64, w io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("listing %s: %w", root, err)
		}
	}()
	fd, err := openResolved(root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	out := bufio.NewWriterSize(w, 1<<18)
	header, err := json.Marshal(FactsHeader{Version: 1, Root: Name(root), Began: began})
	if err != nil {
		return err
	}
	out.Write(append(header, '\n')) // errors are kept by the writer
	l := &lister{ctx: ctx, out: out, buf: make([]byte, 64<<10)}
	l.each = l.write
	if err := l.dir(fd, 0); err != nil {
		return err
	}
	return out.Flush()
}

// lister walks one tree and calls each for every file.
type lister struct {
	ctx  context.Context
	out  *bufio.Writer
	buf  []byte // of readDirents
	path []byte // of the directory, with a slash at its end; while each is called, of the file
	each func(*unix.Statx_t) error
	line []byte
}

// dir lists what the directory at fd holds.
func (l *lister) dir(fd, depth int) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	var n int
	var err error
	if l.buf, n, err = readDirents(fd, l.buf); err != nil {
		return err
	}
	names := appendNames(nil, l.buf[:n])
	base := len(l.path)
	for len(names) > 0 {
		end := bytes.IndexByte(names, 0) + 1
		nameZ := names[:end]
		names = names[end:]
		var st unix.Statx_t
		err := statAt(fd, nameZ, &st)
		if err != nil && ignoreGone(err) == nil {
			continue
		}
		l.path = append(l.path[:base], nameZ[:end-1]...)
		if err == nil {
			err = l.each(&st)
		}
		if err != nil {
			return err
		}
		if st.Mode&typeMask != typeDir || depth == factsDepth {
			continue
		}
		sub, err := openAt(fd, nameZ)
		if err != nil {
			continue // gone, or closed to us: then to what runs inside as well
		}
		l.path = append(l.path, '/')
		err = l.dir(sub, depth+1)
		unix.Close(sub)
		if err != nil {
			return err
		}
	}
	l.path = l.path[:base]
	return nil
}

// write adds the line of one file, whose path is set.
func (l *lister) write(st *unix.Statx_t) error {
	f := IdentityOf(st)
	line := append(l.line[:0], '[')
	line = appendPath(line, l.path)
	for _, n := range [...]int64{int64(f.Mode), f.Size, f.Mtime, f.Ctime, int64(f.Dev)} {
		line = append(line, ',')
		line = strconv.AppendInt(line, n, 10)
	}
	line = strconv.AppendUint(append(line, ','), f.Ino, 10)
	l.line = append(line, "]\n"...)
	l.out.Write(l.line) // errors are kept by the writer
	return nil
}

// appendPath appends a path as JSON.
func appendPath(line, path []byte) []byte {
	for _, c := range path {
		if c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, err := json.Marshal(Name(path))
			if err != nil {
				return append(line, `""`...) // a text is always encoded
			}
			return append(line, quoted...)
		}
	}
	line = append(line, '"')
	line = append(line, path...)
	return append(line, '"')
}

func appendNames(names, list []byte) []byte {
	for len(list) > 0 {
		var e entry
		if e, list = next(list); e.nameZ != nil {
			names = append(names, e.nameZ...)
		}
	}
	return names
}

// factsMax bounds a line: a path and six numbers.
const factsMax = 1 << 20

// ReadFacts reads what WriteFacts wrote and calls visit for each file in its order. The
// path stays valid after visit returns.
func ReadFacts(r io.Reader, visit func(Fact) error) (FactsHeader, error) {
	var h FactsHeader
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64<<10), factsMax)
	for n := 1; in.Scan(); n++ {
		var err error
		if n == 1 {
			if err = json.Unmarshal(in.Bytes(), &h); err == nil && h.Version != 1 {
				err = fmt.Errorf("unknown version %d", h.Version)
			}
		} else {
			var f Fact
			if f, err = parseFact(in.Bytes()); err == nil {
				err = visit(f)
			}
		}
		if err != nil {
			return h, fmt.Errorf("reading the list of files, line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return h, fmt.Errorf("reading the list of files: %w", err)
	}
	if h.Version == 0 {
		return h, errors.New("reading the list of files: it is empty")
	}
	return h, nil
}

// parseFact reads one line.
func parseFact(line []byte) (Fact, error) {
	var f Fact
	end := bytes.LastIndexByte(line, '"') + 1
	if end < 2 || len(line) < end+2 || line[0] != '[' || line[len(line)-1] != ']' {
		return f, errors.New("it does not describe a file")
	}
	var name Name
	if text := line[1:end]; bytes.IndexByte(text, '\\') < 0 {
		name = Name(text[1 : len(text)-1])
	} else if err := json.Unmarshal(text, &name); err != nil {
		return f, err
	}
	f.Path = string(name)
	rest := line[end : len(line)-1]
	var numbers [6]int64
	for i := range numbers {
		if len(rest) == 0 || rest[0] != ',' {
			return f, errors.New("it has too few numbers")
		}
		rest = rest[1:]
		stop := bytes.IndexByte(rest, ',')
		if stop < 0 {
			stop = len(rest)
		}
		n, err := strconv.ParseInt(string(rest[:stop]), 10, 64)
		if err != nil && i == 5 { // an inode has 64 bits
			var ino uint64
			ino, err = strconv.ParseUint(string(rest[:stop]), 10, 64)
			n = int64(ino)
		}
		if err != nil {
			return f, err
		}
		numbers[i], rest = n, rest[stop:]
	}
	f.Mode, f.Size, f.Mtime, f.Ctime = uint32(numbers[0]), numbers[1], numbers[2], numbers[3]
	f.Dev, f.Ino = uint64(numbers[4]), uint64(numbers[5])
	return f, nil
}
