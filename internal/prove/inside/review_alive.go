//go:build linux

package inside

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// reviewAliveActions are for a run that is alive while changes of another one, in
// the same workspace, are applied.
func reviewAliveActions() map[string]Action {
	return map[string]Action{"exchange-prepared": exchangePrepared}
}

// exchangePrepared replaces each name that appears in the directories of the
// argument "path", except those of "skip", until the outside is done. It waits until
// the file is readable by others, because what is prepared gets its mode last: an
// earlier exchange may be noticed.
func exchangePrepared(p *Probe) {
	skip := append(strings.Split(p.Arg("skip"), "\n"), ready)
	known := map[string]bool{}
	dirs := map[int32]string{}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	for _, dir := range strings.Split(p.Arg("path"), "\n") {
		entries, rerr := os.ReadDir(dir)
		for _, e := range entries {
			known[filepath.Join(dir, e.Name())] = true
		}
		wd, werr := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_ATTRIB|unix.IN_CLOSE_WRITE)
		dirs[int32(wd)] = dir
		err = errors.Join(err, werr, rerr, makeReady(p, dir))
	}
	p.Control("watch", func() error { return err })
	var over atomic.Bool
	go func() { _ = p.await("over"); over.Store(true) }()
	p.Control("say that it runs", func() error { return create(p.In("W", "beside")) })
	done := 0
	for begun := time.Now(); !over.Load() && time.Since(begun) < time.Minute; {
		for _, made := range readAppeared(fd, dirs) {
			dir, name := filepath.Split(made)
			if known[made] || slices.Contains(skip, name) || !isReadable(made) {
				continue
			}
			known[made] = true
			if unix.Renameat2(unix.AT_FDCWD, dir+ready, unix.AT_FDCWD, made, unix.RENAME_EXCHANGE) == nil {
				done++
				_ = os.Remove(dir + ready) // it is what was prepared
				_ = makeReady(p, dir)
			}
		}
	}
	p.Try("exchange what is prepared", func() error {
		if done == 0 {
			return unix.ENOENT
		}
		return nil
	})
}

// ready is the name of the replacement. It is beside the replaced files, because the
// directory above may be a mount.
const ready = "ready"

// makeReady makes a file that will replace another.
func makeReady(p *Probe, dir string) error {
	return os.WriteFile(filepath.Join(dir, ready), []byte(p.Arg("evil")), 0o644)
}

// isReadable reports whether others may read path.
func isReadable(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode()&0o044 != 0
}

// readAppeared reads the events of directories, by watch descriptor (inotify(7)).
func readAppeared(fd int, dirs map[int32]string) (out []string) {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	for buf = buf[:n]; len(buf) >= unix.SizeofInotifyEvent; {
		dir := dirs[int32(binary.NativeEndian.Uint32(buf))]
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name, _, _ := bytes.Cut(buf[unix.SizeofInotifyEvent:end], []byte{0})
		out, buf = append(out, filepath.Join(dir, string(name))), buf[end:]
	}
	return out
}
