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

	budget *Budget // nil for none
}

// afford is spend; without a budget everything can be afforded.
func (q *quarantine) afford(n int64) bool { return q.budget == nil || q.budget.spend(n) }

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
	fd, err := openState(dir)
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

// maxExchanged bounds how often something else may be put under a name while it
// is being moved out of the tree.
const maxExchanged = 64

var errExchanged = errors.New("it was replaced again and again: another run is changing the same tree")

// moveToSlot moves the file with a name of dir into a slot of its own and completes item
// from what was in fact moved. exchanged reports that this is not the file that was there
// at first: that one may be back under the name.
func (q *quarantine) moveToSlot(dir int, name string, item *Quarantined) (exchanged bool, err error) {
	h, err := openHandle(dir, name)
	if err != nil {
		return false, err
	}
	defer h.close()
	slot, held, n, err := q.slot()
	if err != nil {
		return false, err
	}
	defer unix.Close(slot)
	defer unix.Close(held)
	is := h
	err = move(dir, name, held)
	if errors.Is(err, unix.EXDEV) {
		exchanged, err = q.moveByCopy(h, dir, name, held, item)
	} else if err == nil {
		if is, err = openHandle(held, name); err == nil {
			defer is.close()
			exchanged = !is.sameFile(h)
		}
	}
	if err != nil {
		unix.Unlinkat(slot, "held", unix.AT_REMOVEDIR)
		unix.Unlinkat(q.fd, n, unix.AT_REMOVEDIR)
		return false, err
	}
	if exchanged {
		item.Why += "; it was exchanged while it was moved out"
	}
	item.Held = Name(q.state + "/quarantine/" + n + "/held/" + name)
	q.describe(is, held, name, item)
	return exchanged, manifest(slot, item)
}

// moveByCopy is move for another file system: it removes what was copied, but nothing
// that took its place.
func (q *quarantine) moveByCopy(h *handle, dir int, name string, held int, item *Quarantined) (exchanged bool, err error) {
	defer loosen(dir)()
	c := copier{left: maxHeldCopy, afford: q.afford}
	err = c.copyTo(h, name, held, 0)
	item.Cut = c.cut
	switch {
	case err != nil:
		return false, err
	case !h.named(dir, name):
		return true, nil
	}
	return false, removeEntry(dir, name)
}

// describe completes item from what was moved; held may contain a copy of it.
func (q *quarantine) describe(h *handle, held int, name string, item *Quarantined) {
	item.Type, item.Mode = "special", h.st.Mode&0o7777
	switch h.st.Mode & typeMask {
	case typeReg:
		item.Type = "file"
		if h.st.Size <= maxHeldSum && q.afford(h.st.Size) {
			item.Sum = sumAt(held, []byte(name), maxHeldSum)
		}
		disarm(held, name, h.st.Mode)
	case typeDir:
		item.Type = "dir"
	case typeLink:
		item.Type = "link"
		if text, err := h.link(); err == nil {
			item.Link = Name(text)
		}
	}
}

// disarm removes the permissions by which a held file could be run by accident. A file
// with a second name is left as it is: that name may be anywhere.
func disarm(held int, name string, mode uint32) {
	h, err := openHandle(held, name)
	if err != nil {
		return
	}
	defer h.close()
	if h.is(typeReg) && h.st.Nlink == 1 {
		setMode(h.fd, mode&0o666)
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
	if h, err := openHandle(dir, name); err == nil {
		if h.is(typeDir) {
			chmodFD(h.fd, 0o700)
		}
		h.close()
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
	left   int64
	cut    bool
	modes  bool                   // copies have the permission bits too
	afford func(bytes int64) bool // nil: anything
}

func (c *copier) entry(dir int, name string, to, depth int) error {
	h, err := openHandle(dir, name)
	if err != nil {
		return ignoreGone(err)
	}
	defer h.close()
	return c.copyTo(h, name, to, depth)
}

// copyTo copies the file of a handle to a name.
func (c *copier) copyTo(h *handle, name string, to, depth int) error {
	switch h.st.Mode & typeMask {
	case typeReg:
		return c.file(h, name, to)
	case typeLink:
		text, err := h.link()
		if err != nil {
			return err
		}
		return unix.Symlinkat(text, to, name)
	case typeDir:
		return c.dir(h, name, to, depth)
	}
	return nil
}

func (c *copier) dir(h *handle, name string, to, depth int) error {
	if depth > maxCopyDepth {
		c.cut = true
		return nil
	}
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return err
	}
	from, err := h.openOwned()
	if err != nil {
		return err
	}
	defer unix.Close(from)
	into, err := openAt(to, append([]byte(name), 0))
	if err != nil {
		return err
	}
	defer unix.Close(into)
	names, err := readNames(from)
	for _, n := range names {
		if err := c.entry(from, n, into, depth+1); err != nil {
			return err
		}
	}
	if err == nil && c.modes {
		err = unix.Fchmod(into, h.st.Mode&0o777|0o700)
	}
	return err
}

func (c *copier) file(h *handle, name string, to int) error {
	if c.afford != nil && !c.afford(min(h.st.Size, c.left)) {
		c.cut = true
		return nil
	}
	src, err := h.read()
	if err != nil {
		chmodFD(h.fd, 0o400)
		src, err = h.read()
	}
	if err != nil {
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
	if c.modes {
		err = errors.Join(err, dst.Chmod(os.FileMode(h.st.Mode&0o777)))
	}
	return errors.Join(err, dst.Close())
}
