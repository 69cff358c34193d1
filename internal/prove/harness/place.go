//go:build linux

package harness

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/prove/probe"
)

// Place is the directory in which worlds are made, with the prober that they
// copy: everything that a probe targets is inside it.
type Place struct {
	Dir    string
	Prober string

	lock *os.File // held while the directory is in use
}

// placePrefix begins the names of places, and placeMark is in each: nothing else
// is ever removed.
const (
	placePrefix = ".prove-"
	placeMark   = "made-by-holdfast-prove"
)

// ErrUnsafe is wrapped if a probe could touch something that is not its own.
var ErrUnsafe = errors.New("it is not safe to probe here")

// NewPlace makes a place below parent, which must be a directory of the user that
// no other user can write, and removes those that killed runs have left. prober
// is a static program to use; "" for the one that this binary carries.
func NewPlace(parent, prober string) (*Place, error) {
	// A home may be a link itself; what counts is where it leads.
	parent, err := Guarded(parent)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSafe(parent), checkNameable(parent)); err != nil {
		return nil, err
	}
	if err := removeLeftovers(parent); err != nil {
		return nil, err
	}
	// A short name: the path of a socket is limited to 108 bytes (unix(7)).
	dir := filepath.Join(parent, placePrefix+strings.ToLower(rand.Text()[:8]))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	p := &Place{Dir: dir, Prober: prober}
	// Others must be able to pass through: a target may run as another user.
	err = os.Chmod(dir, 0o755)
	if err == nil {
		p.lock, err = lockDir(dir)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, placeMark), nil, 0o600)
	}
	if err == nil && prober == "" {
		p.Prober, err = probe.WriteProber(dir)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close removes the place.
func (p *Place) Close() error {
	err := probe.RemoveAll(p.Dir)
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
	}
	return err
}

// checkSafe returns an error if worlds must not be made in dir.
func checkSafe(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%w: %s is not a directory", ErrUnsafe, dir)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%w: %s belongs to user %d and not to you", ErrUnsafe, dir, st.Uid)
	case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
		return fmt.Errorf("%w: other users can write to %s, and could place something real where a probe strikes", ErrUnsafe, dir)
	}
	if Private(dir) {
		return fmt.Errorf("%w: sandboxes mount a private directory over %s, so the rows would prove less than they seem to", ErrUnsafe, dir)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if name, far := remoteFileSystems[int64(fs.Type)]; far {
		return fmt.Errorf("%w: %s lies on %s, which other machines share", ErrUnsafe, dir, name)
	}
	return nil
}

// checkNameable returns an error if what the rows plant cannot name a path below dir:
// in shell lines, in make, in settings of editors, which all quote differently.
func checkNameable(dir string) error {
	for _, r := range dir {
		if !strings.ContainsRune("/.-_+@:,=%~", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return fmt.Errorf("%w: the path %q contains %q, which some programs that rows plant files for cannot use", ErrUnsafe, dir, r)
		}
	}
	return nil
}

// Guarded returns dir without links, if no other user can rename anything on the
// way to it: with write access to a directory above, a user could replace what is
// below.
func Guarded(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if err != nil {
		return "", err
	}
	for at := filepath.Dir(full); ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return "", &os.PathError{Op: "lstat", Path: at, Err: err}
		}
		switch {
		case int(st.Uid) != os.Geteuid() && st.Uid != 0 && !unmapped(st.Uid):
			return "", fmt.Errorf("%w: %s, on the way to %s, belongs to user %d, who could place something real where a probe strikes", ErrUnsafe, at, dir, st.Uid)
		case st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0:
			return "", fmt.Errorf("%w: other users can write to %s, on the way to %s, and could place something real where a probe strikes", ErrUnsafe, at, dir)
		case at == "/":
			return full, nil
		}
	}
}

// unmapped reports whether uid stands for all users outside of the user namespace
// of this process, such as the host's root (user_namespaces(7)).
func unmapped(uid uint32) bool {
	own, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || slices.Equal(strings.Fields(string(own)), []string{"0", "0", "4294967295"}) {
		return false
	}
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	return err == nil && strings.TrimSpace(string(overflow)) == fmt.Sprint(uid)
}

// Private reports whether dir is where sandboxes commonly have a directory of
// their own: targets there are hidden without any merit, and no record sees them.
func Private(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for _, top := range []string{"/tmp", "/var/tmp", "/run", "/dev"} {
		if paths.Within(top, real) {
			return true
		}
	}
	return false
}

// remoteFileSystems are file systems that are shared with other machines (statfs(2)).
var remoteFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.CODA_SUPER_MAGIC: "Coda",
}

// lockDir opens dir and locks it until the process ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", dir, err), f.Close())
	}
	return f, nil
}

// removeLeftovers removes what killed runs have left in parent.
func removeLeftovers(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), placePrefix) {
			continue
		}
		path := filepath.Join(parent, e.Name())
		if mark, err := os.Lstat(filepath.Join(path, placeMark)); err != nil || !mark.Mode().IsRegular() || checkSafe(path) != nil {
			continue
		}
		lock, err := lockDir(path)
		if err != nil {
			continue // in use
		}
		if err := errors.Join(probe.RemoveAll(path), lock.Close()); err != nil {
			return fmt.Errorf("removing what an earlier run left: %w", err)
		}
	}
	return nil
}
