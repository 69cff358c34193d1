//go:build linux

package probe

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// printOf returns everything about the object at path that a row may not change.
func printOf(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	s := fmt.Sprintf("inode %d mode %o owner %d:%d", st.Ino, st.Mode, st.Uid, st.Gid)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		s += fmt.Sprintf(" links %d mtime %d.%09d sha256 %x", st.Nlink, st.Mtim.Sec, st.Mtim.Nsec, sha256.Sum256(b))
	case unix.S_IFLNK:
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		s += " to " + to
	}
	return s + xattrs(path), nil
}

func xattrs(path string) string {
	buf := make([]byte, 4096)
	n, err := unix.Llistxattr(path, buf)
	if err != nil || n == 0 {
		return ""
	}
	return " xattr " + strings.Join(strings.Split(string(buf[:n]), "\x00"), ",")
}

// changes compares what was kept with what is there now.
func (w *World) changes() []string { return append(w.proof(), w.remains()...) }

// proof is what only something that got through can have done: it counts however
// the run ended.
func (w *World) proof() []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(w.kept)) {
		now, err := printOf(path)
		switch {
		case err != nil:
			out = append(out, fmt.Sprintf("%s is gone: %v", w.short(path), err))
		case now != w.kept[path]:
			out = append(out, fmt.Sprintf("%s changed: %s", w.short(path), differingFields(w.kept[path], now)))
		}
	}
	out = append(out, w.madeThere(false)...)
	for _, s := range w.seen {
		out = append(out, s.effects()...)
	}
	return append(out, w.newNames()...)
}

// remains is what a launcher removes at the end of a run: files of the workspace and
// processes. It counts if the run was complete.
func (w *World) remains() []string { return append(w.madeThere(true), w.survivors()...) }

// madeThere returns the names that must be absent but exist, in the workspace or
// everywhere else.
func (w *World) madeThere(workspace bool) (out []string) {
	for _, path := range w.absent {
		if _, err := os.Lstat(path); err == nil && paths.Below(w.W, path) == workspace {
			out = append(out, w.short(path)+" was made")
		}
	}
	return out
}

// survivors are processes that still run the prober of this world after the
// launcher has ended. They get five seconds to end, and are then killed.
func (w *World) survivors() []string {
	var out []string
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		pids := runningProbers(filepath.Base(w.B) + "/")
		if len(pids) == 0 {
			return out
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, pid := range pids {
			out = append(out, fmt.Sprintf("process %d was left behind", pid))
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		return out
	}
}

// runningProbers lists the probers whose program has part in its path. The path is
// random, so they can only be ours.
func runningProbers(part string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // not Glob, which stats each: this runs for every row
	var out []int
	to := make([]byte, unix.PathMax)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		n, err := unix.Readlinkat(int(proc.Fd()), name+"/exe", to)
		if err != nil {
			continue
		}
		exe := string(to[:n])
		if strings.Contains(exe, part) && strings.HasSuffix(strings.TrimSuffix(exe, " (deleted)"), "/prober") {
			out = append(out, pid)
		}
	}
	return out
}

// differingFields returns the fields in which two prints differ.
func differingFields(before, now string) string {
	a, b := strings.Fields(before), strings.Fields(now)
	var out []string
	for i := 0; i+1 < min(len(a), len(b)); i += 2 {
		if a[i] != b[i] || a[i+1] != b[i+1] {
			out = append(out, a[i])
		}
	}
	if len(out) == 0 {
		return "attributes"
	}
	return strings.Join(out, ", ")
}

// newNames returns names that appeared in the places outside that no row may
// write.
func (w *World) newNames() []string {
	var out []string
	for _, root := range []string{w.O, w.H, w.R} {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if w.launchers(p) || slices.Contains(w.shared, p) || p == w.W || p != root && (p == w.O || p == w.R) {
				return fs.SkipDir
			}
			if !w.known[p] && !w.leadsToRecords(p) {
				out = append(out, w.short(p)+" was made")
			}
			return nil
		})
	}
	return out
}

// records are where launchers keep their own files, below the home.
var records = []string{".local/state/holdfast", ".config/holdfast", ".cache/holdfast"}

// launchers reports whether path is one of the launcher's own records.
func (w *World) launchers(path string) bool {
	return slices.ContainsFunc(records, func(d string) bool { return path == filepath.Join(w.H, d) })
}

// leadsToRecords reports whether path is a directory above them.
func (w *World) leadsToRecords(path string) bool {
	return slices.ContainsFunc(records, func(d string) bool { return strings.HasPrefix(filepath.Join(w.H, d), path+"/") })
}

// adopt keeps everything that the set-up put outside.
func (w *World) adopt() error {
	var errs []error
	for _, root := range []string{w.O, w.H, w.R} {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if p == w.W || slices.Contains(w.shared, p) {
				return fs.SkipDir
			}
			if err == nil && !d.IsDir() && w.kept[p] == "" {
				errs = append(errs, w.Keep(p))
			}
			w.known[p] = true
			return nil
		})
	}
	return errors.Join(errs...)
}

// leaks looks for tokens in the output of the run.
func (w *World) leaks(obs []Observation) []string {
	var out []string
	for _, o := range obs {
		out = append(out, w.find("standard output", o.Stdout)...)
		out = append(out, w.find("standard error", o.Stderr)...)
	}
	for _, s := range w.seen {
		out = append(out, w.find("a listener outside", s.received())...)
	}
	_ = filepath.WalkDir(w.W, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || w.homes[p] || p == w.prober {
			return nil
		}
		if b, err := readSome(p); err == nil {
			out = append(out, w.find(w.short(p), b)...)
		}
		return nil
	})
	return out
}

func (w *World) find(where string, in []byte) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.tokens)) {
		if bytes.Contains(in, []byte(w.tokens[name])) {
			out = append(out, fmt.Sprintf("the token of %s was seen in %s", name, where))
		}
	}
	return out
}

// readSome reads a file of the workspace, which a hostile command may have
// written: no link, no FIFO, no more than 64 MiB.
func readSome(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<20))
}

// short returns a path of the world as a template, for messages.
func (w *World) short(path string) string {
	for _, r := range w.roots() {
		if paths.Within(r.path, path) {
			return r.name + strings.TrimPrefix(path, r.path)
		}
	}
	return path
}
