//go:build linux

package supervise

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxHashed = 1 << 30 // bytes: a larger file is not read
	maxHashes = 16384   // contents that are remembered
	// settled is how old the last change of a file must be, so that one more in
	// the same tick of the file system's clock would show.
	settled = time.Second
)

type digest [sha256.Size]byte

func (d digest) hex() string { return hex.EncodeToString(d[:]) }

// content is what a file was found to hold.
type content struct {
	sum     digest
	line    string // of a script
	loader  string // of a program, as it names it
	lasting bool   // nothing inside can write it, and its last change is old enough to rely on
}

// hashes remembers the content of files that nothing inside can write, by everything
// that changes with it. For other files the time of the last change proves nothing: a
// store through a shared mapping whose page was written to before does not change it
// (mmap(2), msync(2)), so they are read at each execution.
type hashes struct {
	file  string
	reads atomic.Uint64 // files that were read

	mu    sync.Mutex // guards what follows
	all   map[identity]content
	dirty bool
}

func newHashes(file string) *hashes {
	h := &hashes{file: file, all: map[identity]content{}}
	h.load()
	return h
}

// lookupContent gives what a file holds, where that is known.
func (h *hashes) lookupContent(is identity) (content, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.all[is]
	return c, ok && c.lasting
}

// lastDigest gives what a file held when it was read last: of a program that runs, what
// it was executed as.
func (h *hashes) lastDigest(is identity) (digest, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.all[is]
	return c.sum, ok
}

// errTooLarge and errChanged are why there is no hash.
var (
	errTooLarge = errors.New("the file is too large")
	errChanged  = errors.New("the file changed while it was read")
)

// sum reads a file that is open.
func (h *hashes) sum(fd int, is identity, lasting bool) (digest, error) {
	if is.size > maxHashed {
		return digest{}, errTooLarge
	}
	h.reads.Add(1)
	hash, buf, at := sha256.New(), make([]byte, 128<<10), int64(0)
	var head string
	for at <= is.size {
		n, err := unix.Pread(fd, buf, at)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return digest{}, errors.New(unix.ErrnoName(asErrno(err)))
		}
		if n == 0 {
			break
		}
		if at == 0 {
			head = interpreter(buf[:min(n, headSize)])
		}
		hash.Write(buf[:n])
		at += int64(n)
	}
	var st unix.Stat_t
	if errno := fstatat(fd, empty, &st, unix.AT_EMPTY_PATH); errno != 0 || identityOf(&st) != is {
		return digest{}, errChanged
	}
	lasting = lasting && time.Since(time.Unix(0, is.ctime)) > settled
	c := content{sum: digest(hash.Sum(nil)), line: head, loader: loader(fd), lasting: lasting}
	h.storeContent(is, c)
	return c.sum, nil
}

func (h *hashes) storeContent(is identity, c content) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.all) >= maxHashes {
		clear(h.all)
	}
	h.all[is] = c
	h.dirty = h.dirty || c.lasting
}

// running is the hash of the executable that p runs, "" with an error where it is not
// known and cannot be read.
func (h *hashes) running(p *proc, is identity) (string, error) {
	if known, ok := h.lookupContent(is); ok {
		return known.sum.hex(), nil
	}
	fd, err := unix.Openat(p.base(), string(p.entry(nil, p.pid))+"exe", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", errors.New(unix.ErrnoName(asErrno(err)))
	}
	defer unix.Close(fd)
	sum, err := h.sum(fd, is, false)
	if err != nil {
		return "", err
	}
	return sum.hex(), nil
}

const hashesHead = "holdfast hashes 2\n"

// load reads the file; a missing or broken one counts as empty, because it only saves
// work.
func (h *hashes) load() {
	if h.file == "" {
		return
	}
	f, err := os.Open(h.file)
	if err != nil {
		return
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, 16<<20))
	if line, err := in.ReadString('\n'); err != nil || line != hashesHead {
		return
	}
	for len(h.all) < maxHashes {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if is, c, ok := parseHash(line); ok {
			h.all[is] = c
		}
	}
}

// parseHash reads one line: device, inode, size, both times, hash, and the
// interpreter and the loader as Go quotes them.
func parseHash(line string) (is identity, c content, ok bool) {
	var sum string
	n, err := fmt.Sscanf(line, "%d %d %d %d %d %s %q %q\n", &is.dev, &is.ino, &is.size, &is.mtime, &is.ctime, &sum, &c.line, &c.loader)
	if err != nil || n != 8 || len(sum) != 2*len(c.sum) {
		return is, c, false
	}
	raw, err := hex.DecodeString(sum)
	if err != nil {
		return is, c, false
	}
	c.sum, c.lasting = digest(raw), true
	return is, c, true
}

// save writes what may be believed in the next run.
func (h *hashes) save() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file == "" || !h.dirty {
		return nil
	}
	var b strings.Builder
	b.WriteString(hashesHead)
	for is, c := range h.all {
		if c.lasting {
			fmt.Fprintf(&b, "%d %d %d %d %d %s %q %q\n", is.dev, is.ino, is.size, is.mtime, is.ctime, c.sum.hex(), c.line, c.loader)
		}
	}
	if err := writeFile(h.file, b.String()); err != nil {
		return fmt.Errorf("keeping the hashes of executables: %w", err)
	}
	return nil
}

// writeFile replaces a file as a whole. It syncs nothing: a broken file only costs work.
func writeFile(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".hashes-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
