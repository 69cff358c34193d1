//go:build linux

package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	maxHeldSum   = 64 << 20  // bytes of a quarantined file that is hashed
	maxHeldCopy  = 256 << 20 // bytes that one item may take where it cannot be renamed
	maxCopyDepth = 64        // directories that are kept of such an item
)

// quarantine is the directory of a session in which things are held that were
// moved out of a workspace: one numbered directory each, with the thing under
// its own name in "held" and a manifest.json beside it.
type quarantine struct {
	state string
	fd    int // of state/quarantine; opened when first needed
	open  bool
	next  int
}

func (q *quarantine) close() error {
	if !q.open {
		return nil
	}
	q.open = false
	if err := unix.Fsync(q.fd); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("writing quarantine: %w", err)
	}
	return unix.Close(q.fd)
}

func (q *quarantine) start() error {
	if q.open {
		return nil
	}
	dir := q.state + "/quarantine"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	q.fd, q.open = fd, true
	return nil
}

// slot makes the next numbered directory and returns descriptors of it and of
// "held" in it.
func (q *quarantine) slot() (slot, held int, name string, err error) {
	if err := q.start(); err != nil {
		return -1, -1, "", err
	}
	for {
		q.next++
		name = strconv.Itoa(q.next)
		err = unix.Mkdirat(q.fd, name, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EEXIST) {
			return -1, -1, "", err
		}
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if slot, err = unix.Openat(q.fd, name, flags, 0); err != nil {
		return -1, -1, "", err
	}
	if err = unix.Mkdirat(slot, "held", 0o700); err == nil {
		if held, err = unix.Openat(slot, "held", flags, 0); err == nil {
			return slot, held, name, nil
		}
	}
	unix.Close(slot)
	return -1, -1, "", err
}

// take moves the entry name of dir into a slot of its own and completes item.
func (q *quarantine) take(dir int, name string, item *Quarantined) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	slot, held, n, err := q.slot()
	if err != nil {
		return err
	}
	defer unix.Close(slot)
	defer unix.Close(held)
	err = move(dir, name, held)
	if errors.Is(err, unix.EXDEV) {
		defer loosen(dir)()
		c := copier{left: maxHeldCopy}
		if err = c.entry(dir, name, held, 0); err == nil {
			err = removeTree(dir, name)
		}
		item.Cut = c.cut
	}
	if err != nil {
		unix.Unlinkat(slot, "held", unix.AT_REMOVEDIR)
		unix.Unlinkat(q.fd, n, unix.AT_REMOVEDIR)
		return err
	}
	item.Held = Name(q.state + "/quarantine/" + n + "/held/" + name)
	item.Mode = st.Mode & 0o7777
	describe(held, name, st.Mode, item)
	return manifest(slot, item)
}

// describe completes item from what is held.
func describe(held int, name string, mode uint32, item *Quarantined) {
	item.Type = "special"
	switch mode & typeMask {
	case typeReg:
		item.Type = "file"
		item.Sum = sumAt(held, []byte(name), maxHeldSum)
		unix.Fchmodat(held, name, mode&0o666, 0) // nobody runs it by accident
	case typeDir:
		item.Type = "dir"
	case typeLink:
		item.Type = "link"
		buf := make([]byte, 4096)
		if n, err := unix.Readlinkat(held, name, buf); err == nil {
			item.Link = Name(buf[:n])
		}
	}
}

func manifest(slot int, item *Quarantined) error {
	fd, err := unix.Openat(slot, "manifest.json", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "manifest.json")
	enc := json.NewEncoder(f)
	enc.SetIndent("", "  ")
	return errors.Join(enc.Encode(item), f.Close())
}

// move renames an entry, and where permission bits of the tree are in the way,
// which the owner may change and did, it adds them for that long.
func move(dir int, name string, to int) error {
	err := unix.Renameat2(dir, name, to, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return err
	}
	defer loosen(dir)()
	if fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		chmodFD(fd, 0o700)
		unix.Close(fd)
	}
	return unix.Renameat2(dir, name, to, name, unix.RENAME_NOREPLACE)
}

// loosen lets the owner change a directory until the function that it returns
// is called.
func loosen(dir int) func() {
	var st unix.Stat_t
	if unix.Fstat(dir, &st) != nil || st.Mode&0o700 == 0o700 || unix.Fchmod(dir, st.Mode&0o7777|0o700) != nil {
		return func() {}
	}
	return func() { unix.Fchmod(dir, st.Mode&0o7777) }
}

// copier copies an entry to another file system without following a link or
// opening anything but regular files and directories.
type copier struct {
	left int64
	cut  bool
}

func (c *copier) entry(dir int, name string, to, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return gone(err)
	}
	switch st.Mode & typeMask {
	case typeReg:
		return c.file(dir, name, to)
	case typeLink:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return gone(err)
		}
		return unix.Symlinkat(string(buf[:n]), to, name)
	case typeDir:
		return c.dir(dir, name, to, depth)
	}
	return nil
}

func (c *copier) dir(dir int, name string, to, depth int) error {
	if depth > maxCopyDepth {
		c.cut = true
		return nil
	}
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return err
	}
	from, err := openForced(dir, name)
	if err != nil {
		return err
	}
	defer from.Close()
	into, err := unix.Openat(to, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(into)
	for {
		list, err := from.Readdirnames(1024)
		for _, n := range list {
			if err := c.entry(int(from.Fd()), n, into, depth+1); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *copier) file(dir int, name string, to int) error {
	src := openFile(dir, name)
	if src == nil {
		if p, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
			chmodFD(p, 0o400)
			unix.Close(p)
		}
		src = openFile(dir, name)
	}
	if src == nil {
		c.cut = true
		return nil
	}
	defer src.Close()
	fd, err := unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	dst := os.NewFile(uintptr(fd), name)
	n, err := io.Copy(dst, io.LimitReader(src, c.left))
	c.left -= n
	if st, e := src.Stat(); e == nil && st.Size() > n {
		c.cut = true
	}
	return errors.Join(err, dst.Close())
}

// openForced opens a directory for reading, after giving its owner the right to.
func openForced(dir int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	var st unix.Stat_t
	if errors.Is(err, unix.EACCES) || err == nil && unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
		if err == nil {
			unix.Close(fd)
		}
		p, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		err = chmodFD(p, 0o700)
		unix.Close(p)
		if err != nil {
			return nil, err
		}
		fd, err = unix.Openat(dir, name, flags, 0)
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), name), nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// removeTree removes an entry and all below it. Directories that lie deep are
// first brought up to the top of the tree, so that depth costs no descriptors.
func removeTree(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	top, err := openForced(dir, name)
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{top: int(top.Fd())}
	for {
		r.lifted = false
		if err := r.empty(top, 0); err != nil {
			return err
		}
		if _, err := top.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if !r.lifted {
			return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		}
	}
}

type remover struct {
	top    int
	n      int
	lifted bool
}

func (r *remover) empty(f *os.File, depth int) error {
	for {
		list, err := f.Readdirnames(1024)
		for _, n := range list {
			if err := r.remove(int(f.Fd()), n, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *remover) remove(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	sub, err := openForced(dir, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	if depth >= maxCopyDepth {
		for r.lifted = true; ; {
			r.n++
			err := unix.Renameat2(dir, name, r.top, ".holdfast-"+strconv.Itoa(r.n), unix.RENAME_NOREPLACE)
			if !errors.Is(err, unix.EEXIST) {
				return err
			}
		}
	}
	if err := r.empty(sub, depth+1); err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}
