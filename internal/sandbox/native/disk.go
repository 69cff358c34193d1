//go:build linux

package native

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// diskWatch bounds what a run takes of the host's file systems. Free space is
// asked for at every tick; only when half of the limit is gone is it measured
// whether the run has taken it: others write to the same file systems.
type diskWatch struct {
	process *process
	limit   int64  // bytes
	layer   uint64 // device of the files of the workspace's view; 0 for none
	disks   []*disk
}

// disk is one file system with the trees of it that are writable inside.
type disk struct {
	trees    []string
	id       unix.Fsid
	free     int64 // when the run began, or when it was last measured
	measured bool
	used     int64 // by the trees, when it was first measured
}

func newDiskWatch(p *process, parts []part, limit int64) *diskWatch {
	if limit <= 0 {
		return nil
	}
	w := &diskWatch{process: p, limit: limit}
	for _, part := range parts {
		if part.source == "" || part.access != policy.Write {
			continue
		}
		free, id, err := freeBytes(part.source)
		if err != nil {
			continue
		}
		var d *disk
		for _, known := range w.disks {
			if known.id == id {
				d = known
			}
		}
		if d == nil {
			d = &disk{id: id, free: free}
			w.disks = append(w.disks, d)
		}
		d.trees = append(d.trees, part.source)
	}
	if len(w.disks) == 0 {
		return nil
	}
	return w
}

// over names a tree that outgrew the limit.
func (w *diskWatch) over() string {
	if w == nil {
		return ""
	}
	for _, d := range w.disks {
		free, _, err := freeBytes(d.trees[0])
		if err != nil || d.free-free <= w.limit/2 {
			continue
		}
		used := unnamedBytes(descendants(w.process.first, nil), func(st *unix.Stat_t) bool { return unix.Major(st.Dev) != 0 || w.layer != 0 && st.Dev == w.layer })
		for _, t := range d.trees {
			used += allocated(t)
		}
		switch {
		case !d.measured:
			d.measured, d.used = true, used
		case used-d.used > w.limit/2:
			return d.trees[0]
		}
		d.free = free
	}
	return ""
}

func freeBytes(dir string) (int64, unix.Fsid, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, unix.Fsid{}, err
	}
	return int64(st.Bavail) * st.Bsize, st.Fsid, nil
}

// allocated is what the files of a tree take, in bytes.
func allocated(root string) int64 {
	var sum int64
	filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // gone meanwhile, or closed to us: it was not grown by what we can see
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return sum
}

// unnamedBytes is what open files without a name take that are of interest: they
// are in no tree.
func unnamedBytes(pids []int, interesting func(*unix.Stat_t) bool) int64 {
	var sum int64
	seen := map[[2]uint64]bool{}
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+e.Name(), &st) != nil || st.Nlink > 0 || st.Mode&unix.S_IFMT != unix.S_IFREG || !interesting(&st) {
				continue
			}
			if key := [2]uint64{st.Dev, st.Ino}; !seen[key] {
				seen[key] = true
				sum += st.Blocks * 512
			}
		}
	}
	return sum
}
