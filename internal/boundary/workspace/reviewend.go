//go:build linux

package workspace

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what is kept of the originals.
const (
	baseFileMax  = 1 << 20   // bytes of one file
	baseBytesMax = 256 << 20 // of all
	baseFilesMax = 10_000
	sameBytesMax = 256 << 20 // bytes that are compared to find files that only look changed
)

// EndReview finishes the storage of a run that has ended: it keeps the originals of
// what was changed and sets the review to waiting; the storage of a run that changed
// nothing is removed, and kept is false. died says that the supervisor did not do it.
// It may be called again after a sudden death; a review that is not recorded as running
// is left alone.
func EndReview(ctx context.Context, dir string, died bool) (kept bool, err error) {
	r, err := ReadReview(dir)
	if err != nil || r.State != ReviewRunning {
		return err == nil && r.State != ReviewDropped, err
	}
	e := &reviewEnd{review: r, dir: dir, left: sameBytesMax, changed: map[string]bool{}}
	if err := e.open(); err != nil {
		return true, err
	}
	defer e.close()
	if r.Mode == ReviewCopy {
		err = e.compareCopy(ctx)
	} else {
		err = e.walk(ctx, e.upper, "", 0)
	}
	if err != nil {
		return true, fmt.Errorf("comparing what the run changed: %w", err)
	}
	if len(e.changed) == 0 {
		return false, RemoveTree(dir)
	}
	if err := e.keepOriginals(ctx); err != nil {
		return true, fmt.Errorf("keeping the originals of what the run changed: %w", err)
	}
	if err := RemoveTree(filepath.Join(dir, WorkDir)); err != nil {
		return true, err
	}
	r.State, r.Ended, r.Died = ReviewWaiting, time.Now().UTC(), died
	return true, r.Write(dir)
}

// reviewEnd is the end of one review.
type reviewEnd struct {
	review  Review
	dir     string
	upper   int
	lower   int // the workspace; -1 when another directory is in its place
	left    int64
	changed map[string]bool // paths whose originals are of interest, with all below them
}

func (e *reviewEnd) open() error {
	e.lower = -1
	dir, err := openState(e.dir)
	if err != nil {
		return fmt.Errorf("opening what the run changed: %w", err)
	}
	defer unix.Close(dir)
	upper, err := openHandle(dir, UpperDir)
	if err != nil {
		return fmt.Errorf("opening what the run changed: %w", err)
	}
	defer upper.close()
	if e.upper, err = upper.openOwned(); err != nil { // the run may have closed it to us
		return fmt.Errorf("opening what the run changed: %w", err)
	}
	fd, err := openResolved(string(e.review.Workspace), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil // gone: what was changed is still kept
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Dev != e.review.Dev || st.Ino != e.review.Ino {
		unix.Close(fd)
		return nil
	}
	e.lower = fd
	return nil
}

func (e *reviewEnd) close() {
	unix.Close(e.upper)
	if e.lower >= 0 {
		unix.Close(e.lower)
	}
}

// original opens what the workspace has at a path, if anything.
func (e *reviewEnd) original(path string, flags int) (int, error) {
	if e.lower < 0 {
		return -1, fs.ErrNotExist
	}
	return OpenBeneath(e.lower, path, flags|unix.O_NOFOLLOW)
}

func (e *reviewEnd) statOriginal(path string) (st unix.Stat_t, there bool) {
	fd, err := e.original(path, unix.O_PATH)
	if err != nil {
		return st, false
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st) == nil
}

// walk looks through a directory of the upper layer.
func (e *reviewEnd) walk(ctx context.Context, fd int, at string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := readNames(fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		path := joinPath(at, name)
		if st.Mode&typeMask != typeDir {
			if !e.sameAsLower(fd, name, path, &st) {
				e.changed[path] = true
			}
			continue
		}
		was, there := e.statOriginal(path)
		switch {
		case !there || was.Mode&typeMask != typeDir:
			e.changed[path] = true // new: what is in it is too
			continue
		case was.Mode&0o7777 != st.Mode&0o7777:
			e.changed[path+"/."] = true
		}
		if depth == factsDepth || len(path) > unix.PathMax {
			e.changed[path] = true
			continue
		}
		if err := e.merged(ctx, fd, name, path, depth); err != nil {
			return err
		}
	}
	return nil
}

// merged looks through a directory that is in both layers.
func (e *reviewEnd) merged(ctx context.Context, parent int, name, path string, depth int) error {
	pathFD, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pathFD)
	fd, err := openAt(pathFD, []byte(".\x00"))
	if err != nil { // closed to us: what is in it may be anything
		e.changed[path] = true
		return nil
	}
	defer unix.Close(fd)
	var value [4]byte
	if n, err := unix.Fgetxattr(fd, "user.overlay.opaque", value[:]); err == nil && n > 0 && value[0] == 'y' {
		e.changed[path] = true // it takes the place of another
		return nil
	}
	return e.walk(ctx, fd, path, depth+1)
}

// sameAsLower reports whether a file that is in the upper layer is what the workspace has:
// it was opened for writing, or given another time.
func (e *reviewEnd) sameAsLower(fd int, name, path string, st *unix.Stat_t) bool {
	was, there := e.statOriginal(path)
	if !there || was.Mode != st.Mode || was.Size != st.Size {
		return false
	}
	switch st.Mode & typeMask {
	case typeLink:
		now, then := make([]byte, unix.PathMax), make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, name, now)
		link, oerr := e.original(path, unix.O_PATH)
		if err != nil || oerr != nil {
			return false
		}
		defer unix.Close(link)
		m, err := unix.Readlinkat(link, "", then)
		return err == nil && string(now[:n]) == string(then[:m])
	case typeReg:
		if e.left -= st.Size; e.left < 0 {
			return false
		}
		now, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return false
		}
		defer unix.Close(now)
		then, err := e.original(path, unix.O_RDONLY|unix.O_NONBLOCK)
		if err != nil {
			return false
		}
		defer unix.Close(then)
		return SameContent(now, then, st.Size)
	}
	return false
}

// compareCopy finds what changed since the copy was made.
func (e *reviewEnd) compareCopy(ctx context.Context) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	listed := make(chan error, 1)
	go func() {
		listed <- errors.Join(WriteFacts(ctx, filepath.Join(e.dir, UpperDir), 0, w), w.Close())
	}()
	now := map[string]Fact{}
	_, rerr := ReadFacts(r, func(f Fact) error { now[f.Path] = f; return nil })
	r.Close()
	if err := errors.Join(<-listed, rerr); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(e.dir, CopyFile))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = ReadFacts(f, func(was Fact) error {
		is, there := now[was.Path]
		delete(now, was.Path)
		switch {
		case !there || is.Mode != was.Mode:
			e.changed[was.Path] = true
		case is.Mode&typeMask == typeDir || was.Same(is.Identity):
		default:
			st := unix.Stat_t{Mode: is.Mode, Size: is.Size}
			if !e.sameAsLower(e.upper, was.Path, was.Path, &st) {
				e.changed[was.Path] = true
			}
		}
		return nil
	})
	for path := range now {
		e.changed[path] = true
	}
	return err
}

// keepOriginals copies the originals that are still what they were when the run began.
func (e *reviewEnd) keepOriginals(ctx context.Context) error {
	base := filepath.Join(e.dir, BaseDir)
	if err := RemoveTree(base); err != nil { // of a death in the midst of this
		return err
	}
	if err := os.Mkdir(base, 0o700); err != nil {
		return err
	}
	to, err := openState(base)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	f, err := os.Open(filepath.Join(e.dir, StartFile))
	if err != nil {
		return err
	}
	defer f.Close()
	var files, bytes int64
	_, err = ReadFacts(bufio.NewReaderSize(f, 256<<10), func(was Fact) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind := was.Mode & typeMask
		if kind != typeReg && kind != typeLink || was.Size > baseFileMax || files == baseFilesMax || bytes+was.Size > baseBytesMax || !e.wasChanged(was.Path) {
			return nil
		}
		if e.keepOne(ctx, to, was) == nil { // what cannot be kept is lacking when it is asked for
			files, bytes = files+1, bytes+was.Size
		}
		return nil
	})
	return err
}

// wasChanged reports whether a path or something above it was changed.
func (e *reviewEnd) wasChanged(path string) bool {
	for {
		if e.changed[path] {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
	}
}

func (e *reviewEnd) keepOne(ctx context.Context, base int, was Fact) error {
	flags := unix.O_RDONLY | unix.O_NONBLOCK
	if was.Mode&typeMask == typeLink {
		flags = unix.O_PATH
	}
	fd, err := e.original(was.Path, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := stillIs(fd, was); err != nil {
		return err
	}
	to, err := makeBeneath(base, path.Dir(was.Path))
	if err != nil {
		return err
	}
	defer unix.Close(to)
	name := path.Base(was.Path)
	if was.Mode&typeMask == typeLink {
		text, err := (&handle{fd: fd}).link()
		if err != nil {
			return err
		}
		return unix.Symlinkat(text, to, name)
	}
	out, err := unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	if unix.IoctlFileClone(out, fd) != nil {
		err = copyContents(ctx, fd, out, was.Size, false)
	}
	if err == nil {
		err = stillIs(fd, was) // it may have been written to meanwhile
	}
	if err != nil {
		unix.Unlinkat(to, name, 0)
	}
	return err
}

// stillIs is nil when the file at fd is what it was.
func stillIs(fd int, was Fact) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !was.Same(Identity{Mode: st.Mode, Ctime: st.Ctim.Nano(), Dev: st.Dev, Ino: st.Ino}) {
		return errors.New("it changed in the meantime")
	}
	return nil
}
