//go:build linux

package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// Started by root, a task runs under a user id of its own that owns nothing on
// the machine. The workspace's owner appears as that id through an idmapped
// mount (mount_setattr(2), kernel 5.12), so files keep their owner on disk.
const taskIDBase = 1_900_000_000 // above every range that distributions hand out

// realRoot reports whether this process is root of the machine. Root of a user
// namespace, as in a rootless container, is an ordinary user to everything
// outside it, and its boundary is an ordinary user's.
func realRoot() bool {
	raw, err := os.ReadFile("/proc/self/uid_map")
	return os.Geteuid() == 0 && (err != nil || slices.Equal(strings.Fields(string(raw)), []string{"0", "0", "4294967295"}))
}

var runs atomic.Int64

func sequence() int64 { return runs.Add(1) }

// taskID is unique among what runs: no two live supervisors share a pid, and
// one supervisor counts.
func taskID() int {
	return taskIDBase + os.Getpid()*16 + int(sequence()%16)
}

// prepareTaskID makes the detached, idmapped trees that the task will own.
func (l *launch) prepareTaskID() error {
	plan, f := l.spec.Plan, &l.facts
	f.mapped, f.gate = true, true
	if l.omit["task-id"] {
		return nil
	}
	id := taskID()
	ns, err := idmapNamespace(plan.Workspace, plan.File, id)
	if err == nil {
		defer ns.Close()
		err = l.mapTrees(ns)
	}
	var view *viewError
	var posture *boundary.PostureError
	if errors.As(err, &view) || errors.As(err, &posture) {
		return err
	}
	if err != nil {
		if plan.Accepts(policy.TaskID) {
			l.trees, f.trees = nil, map[string]int{}
			return nil
		}
		if boundary.Exhausted(err) != "" {
			return fmt.Errorf("giving the command an id of its own: %w", err)
		}
		return gap(policy.TaskID, err.Error())
	}
	f.uid, f.gid = id, id
	return nil
}

// openSame opens a path that contains no link, and that is still the file that it was
// when it was judged.
func openSame(path string, was policy.FileID) (fd int, st unix.Stat_t, err error) {
	if fd, err = openPlain(path); err != nil {
		return -1, st, err
	}
	if err = unix.Fstat(fd, &st); err != nil {
		err = fmt.Errorf("looking at %s: %w", path, err)
	} else if was != (policy.FileID{}) && was != (policy.FileID{Dev: st.Dev, Ino: st.Ino}) {
		err = asReplaced(sameSteps + path)
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}

// openPlain opens a path that contains no link: it was resolved before, and a link that
// is there now was added since.
func openPlain(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, fmt.Errorf("opening %s: %w", path, err)
	}
	return fd, nil
}

// mapTrees makes one tree for every path whose files belong to the task's user
// on disk: the workspace and what the policy names.
func (l *launch) mapTrees(ns *os.File) error {
	parts := taskParts(l.spec)
	if store := storePart(l.spec); store.at != "" {
		parts = append(parts, store)
	}
	for _, p := range parts {
		if l.facts.trees[p.at] != 0 {
			continue
		}
		was := judgedFile(l.spec, p)
		if l.omit["same-file"] {
			was = policy.FileID{}
		}
		tree, err := idmappedTree(p.source, was, ns, p.attributes(l.omit))
		var posture *boundary.PostureError
		if err != nil && !errors.As(err, &posture) && (p.layers || p.at == reviewStore) {
			return &viewError{err}
		}
		if err != nil {
			return err
		}
		l.onRelease(func() { tree.Close() })
		l.facts.trees[p.at] = fdTrees + len(l.trees)
		l.trees = append(l.trees, tree)
	}
	return nil
}

func idmappedTree(path string, was policy.FileID, ns *os.File, attrs uint64) (*os.File, error) {
	fd, _, err := openSame(path, was)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("cloning the mount of %s: %w", path, err)
	}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | attrs, Userns_fd: uint64(ns.Fd())})
	if err != nil {
		unix.Close(tree)
		return nil, fmt.Errorf("mapping the ids of %s, whose file system may not support it: %w", path, err)
	}
	return os.NewFile(uintptr(tree), path), nil
}

// idmapNamespace makes a user namespace that swaps the owner of dir with id and
// maps every other id to itself: an inode whose id has no mapping could not be
// written.
func idmapNamespace(dir string, was policy.FileID, id int) (*os.File, error) {
	fd, owner, err := openSame(dir, was)
	if err != nil {
		return nil, err
	}
	unix.Close(fd)
	// A namespace needs a process until it is open: one that waits for the
	// end of its standard input and does nothing else.
	p := newProgram()
	p.call("wait", unix.SYS_READ, []any{0, p.words(0), 8}, ignored())
	p.exit(0)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	proc, err := p.start([]*os.File{r}, &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: swap(int(owner.Uid), id), GidMappings: swap(int(owner.Gid), id),
		GidMappingsEnableSetgroups: true,
	})
	r.Close()
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("making a user namespace for the id map: %w", err)
	}
	ns, err := os.Open("/proc/" + strconv.Itoa(proc.Pid) + "/ns/user")
	w.Close()
	if _, werr := proc.Wait(); err == nil {
		err = werr
	}
	return ns, err
}

func swap(a, b int) []syscall.SysProcIDMap {
	if a > b {
		a, b = b, a
	}
	const all = 1<<32 - 1
	maps := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: 0, Size: a},
		{ContainerID: a, HostID: b, Size: 1},
		{ContainerID: a + 1, HostID: a + 1, Size: b - a - 1},
		{ContainerID: b, HostID: a, Size: 1},
		{ContainerID: b + 1, HostID: b + 1, Size: all - b - 1},
	}
	out := maps[:0]
	for _, m := range maps {
		if m.Size > 0 {
			out = append(out, m)
		}
	}
	return out
}

// writeMaps gives the namespace of a task its single id.
func (l *launch) writeMaps(pid int) error {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	for _, m := range []struct {
		file string
		id   int
	}{{"uid_map", l.facts.uid}, {"gid_map", l.facts.gid}} {
		if err := os.WriteFile(filepath.Join(dir, m.file), fmt.Appendf(nil, "%d %d 1", m.id, m.id), 0); err != nil {
			return fmt.Errorf("writing the task's id map: %w", err)
		}
	}
	return nil
}
