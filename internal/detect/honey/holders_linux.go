package honey

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Limits of the search for a process that has a file open. Inotify does not
// report it, and a process that reads a small file is soon done with it.
const (
	holdersMost = 8
	holdersTime = 10 * time.Millisecond
)

// holder is a process that has a file open.
type holder struct {
	pid        int
	executable string // as it is called inside
}

// holders are the processes inside that have the file open at this moment, if
// they are found in time.
func (w *Watcher) holders(inode fs.FileInfo) []holder {
	inside, err := os.Readlink(filepath.Join(filepath.Dir(w.root), "ns/mnt"))
	if err != nil {
		return nil
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []holder
	until := time.Now().Add(holdersTime)
	// The youngest are the likeliest.
	for i := len(names) - 1; i >= 0 && len(out) < holdersMost && time.Now().Before(until); i-- {
		pid, err := strconv.Atoi(names[i])
		if err != nil {
			continue
		}
		dir := "/proc/" + names[i]
		if ns, err := os.Readlink(dir + "/ns/mnt"); err != nil || ns != inside || !holds(dir+"/fd", inode, until) {
			continue
		}
		executable, err := os.Readlink(dir + "/exe")
		if err != nil {
			executable = "?"
		}
		out = append(out, holder{pid, executable})
	}
	return out
}

// holds reports whether one of the descriptors in dir is of the file.
func holds(dir string, inode fs.FileInfo, until time.Time) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	for time.Now().Before(until) {
		names, err := d.Readdirnames(64)
		for _, name := range names {
			// A file on a file system that does not answer would block us for
			// ever: only descriptors with a path are checked.
			to, err := os.Readlink(dir + "/" + name)
			if err != nil || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "/dev/") {
				continue
			}
			if st, err := os.Stat(dir + "/" + name); err == nil && os.SameFile(st, inode) {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
	return false
}
