//go:build linux

package review

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// limits bound what one review holds in memory. What exceeds them is counted as unseen,
// and the review says so.
type limits struct {
	changes int
	names   int   // bytes of all paths
	compare int64 // bytes that are read to distinguish touched from changed, and to find renames
	unseen  int   // rows
}

func defaultLimits() limits {
	return limits{changes: 2_000_000, names: 512 << 20, compare: 16 << 30, unseen: 1000}
}

// job is one directory that remains to be looked at.
type job struct {
	path  string
	which int
	perm  uint32         // of the directory in what the run left, 07777
	look  workspace.Look // where in the rules
	over  *Flag          // what all below is flagged with
}

// Which trees a job is about.
const (
	both      = iota // the directory was there and is
	onlyUpper        // it is new
	onlyLower        // it was deleted
)

// collector finds the changes. Directories are opened by their path from the
// top, so that depth costs no descriptors; a stack of them, and not recursion,
// holds what remains.
type collector struct {
	ctx    context.Context
	t      *trees
	mode   Mode
	root   string                        // the workspace
	began  int64                         // ns
	apart  map[string]bool               // paths over which something else was mounted
	copied map[string]workspace.Identity // of a copy: all that it held before the run; nil: not known
	lim    limits
	rules  *workspace.Rules

	mu      sync.Mutex
	more    sync.Cond
	stack   []job
	busy    int
	err     error
	changes []*Change
	used    int // bytes of names
	read    int64
	unseen  []Unseen
	passed  int // changes beyond the limits
	missed  int // rows beyond those of unseen
}

func (c *collector) run(first job) error {
	c.more.L = &c.mu
	c.stack = []job{first}
	var wg sync.WaitGroup
	for range min(max(runtime.GOMAXPROCS(0), 2), 8) {
		wg.Go(c.takeJobs)
	}
	wg.Wait()
	return c.err
}

func (c *collector) takeJobs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for len(c.stack) == 0 && c.busy > 0 && c.err == nil {
			c.more.Wait()
		}
		if len(c.stack) == 0 || c.err != nil {
			c.more.Broadcast()
			return
		}
		j := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		c.busy++
		c.mu.Unlock()
		v := comparison{collector: c, job: j}
		err := v.directory()
		c.mu.Lock()
		c.busy--
		c.changes = append(c.changes, v.found...)
		c.stack = append(c.stack, v.subs...)
		if err == nil {
			err = c.ctx.Err()
		}
		if c.err == nil {
			c.err = err
		}
		c.more.Broadcast()
	}
}

// reserve takes what a change of path needs off the limits; false: they are reached.
func (c *collector) reserve(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lim.changes == 0 || c.used+len(path) > c.lim.names {
		c.passed++
		return false
	}
	c.lim.changes--
	c.used += len(path)
	return true
}

// mayRead takes n bytes of what may be read to compare; false: too much.
func (c *collector) mayRead(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read+n > c.lim.compare {
		return false
	}
	c.read += n
	return true
}

// addUnseen notes a path that was not looked at.
func (c *collector) addUnseen(path, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unseen) >= c.lim.unseen {
		c.missed++
		return
	}
	c.unseen = append(c.unseen, Unseen{workspace.Name(path), fmt.Sprintf(format, args...)})
}

// finish completes the list of what was not looked at.
func (c *collector) finish() {
	if c.passed > 0 {
		c.unseen = append(c.unseen, Unseen{"", fmt.Sprintf("%d more changes than one review can hold", c.passed)})
	}
	if c.missed > 0 {
		c.unseen = append(c.unseen, Unseen{"", fmt.Sprintf("%d more places that were not looked at", c.missed)})
	}
}

// comparison compares one directory of what the run left with what was there.
type comparison struct {
	*collector
	job
	l        *level
	subs     []job
	found    []*Change
	fresh    []string // new names, to be compared with their neighbours
	hasNames bool
}

func (v *comparison) directory() error {
	l, opened, err := v.t.openLevel(v.path, v.which != onlyLower, v.which != onlyUpper)
	if err != nil {
		v.addUnseen(v.path, "the directory cannot be read: %v", err)
		return nil
	}
	v.l = l
	defer l.close()
	if opened {
		defer v.noteOpened()
	}
	if v.repository() {
		v.look = v.look.Repository()
	}
	if v.which == onlyLower {
		return v.listError(l.oldNames(v.addDeleted))
	}
	all := v.mode == Copy
	hides := ""
	if v.mode == Overlay {
		hides = attribute(int(l.upper.Fd()), "opaque")
		all = hides == "y"
	}
	err = names(l.upper, func(n string) error { v.hasNames = true; return v.entry(n, hides == "x") })
	if err := v.listError(err); err != nil {
		return err
	}
	if v.which == onlyUpper && !v.hasNames && v.path != "" {
		v.keepChange(&Change{Path: workspace.Name(v.path), Kind: Added, Type: Dir, Mode: v.perm}, nil)
	}
	if v.which == both && all {
		var st unix.Statx_t
		err := l.oldNames(func(n string) error {
			if status(int(l.upper.Fd()), n, &st) == nil || !v.inCopy(n) {
				return nil
			}
			return v.addDeleted(n)
		})
		if err := v.listError(err); err != nil {
			return err
		}
	}
	return v.noteCase()
}

// listError notes a directory that cannot be listed as unseen. The error of an ended
// context is returned.
func (v *comparison) listError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	v.addUnseen(v.path, "the directory cannot be listed to its end: %v", err)
	return nil
}

func (v *comparison) noteOpened() {
	for _, c := range v.found {
		if string(c.Path) == v.path {
			c.Notes = append(c.Notes, "the run had closed this directory to its owner")
		}
	}
}

// attribute reads an attribute of overlayfs; "" for none.
func attribute(fd int, name string) string {
	var buf [8]byte
	for _, space := range []string{"user.", "trusted."} {
		if n, err := unix.Fgetxattr(fd, space+"overlay."+name, buf[:]); err == nil {
			return string(buf[:n])
		}
	}
	return ""
}

// repository reports whether the directory has the shape of a repository that
// is not named .git.
func (v *comparison) repository() bool {
	if v.look.Git() {
		return false
	}
	for _, n := range []string{"HEAD", "objects", "refs"} {
		var st unix.Statx_t
		if v.l.upper != nil && status(int(v.l.upper.Fd()), n, &st) == nil && !whiteout(&st) {
			continue
		}
		if v.which == onlyUpper {
			return false
		}
		if _, ok, err := v.l.old(n); !ok || err != nil {
			return false
		}
	}
	return true
}
