//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// maxThreads bounds the table of threads, which is a memory of what /proc says.
const maxThreads = 8192

// procTable knows the processes inside. The lock of its Supervisor guards it.
type procTable struct {
	procs   map[int]*proc
	threads map[int]thread
	root    int // first process inside
	self    int // this process
	dir     int // descriptor of /proc
	watch   *watch
	gone    func(*proc) // called for one that ended without its pidfd reporting it
	buf     []byte
	name    []byte

	unwatched int // processes in procs whose end no pidfd reports, at most
	sweep     int // when so many are, those that ended are looked for
	least     int // of sweep
}

// minSweep is how many processes without a pidfd may be in the table before
// they are looked through.
const minSweep = 512

func newProcTable(root int, w *watch) (*procTable, error) {
	dir, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /proc: %w", err)
	}
	return &procTable{procs: map[int]*proc{}, threads: map[int]thread{}, root: root, self: os.Getpid(), dir: dir, watch: w,
		buf: make([]byte, 4096), sweep: minSweep, least: minSweep}, nil
}

// find gives the process that a thread is of, nil when it is gone.
func (t *procTable) find(tid int, now int64) *proc {
	if p := t.procs[tid]; p != nil {
		if now < p.until || t.confirmAlive(p, now) {
			return p
		}
		t.gone(p)
	}
	if th, ok := t.threads[tid]; ok && now < th.until {
		return th.of
	}
	return t.load(tid, now, maxAncestors)
}

// confirmAlive makes sure that p is still the process of its number.
func (t *procTable) confirmAlive(p *proc, now int64) bool {
	if p.pidfd < 0 {
		// There were no descriptors left for it. Its two numbers come together
		// again in no process that we will see.
		st, ok := t.status(p.pid)
		if ok = ok && st.tgid == p.pid && st.inner == p.number(); ok {
			p.until = now + int64(trust)
		}
		return ok
	}
	err := unix.PidfdSendSignal(p.pidfd, 0, nil, 0)
	if err == nil || errors.Is(err, unix.EPERM) {
		p.until = now + int64(trust)
		return true
	}
	return false
}

// maxAncestors bounds how many parents are looked for that were not seen.
const maxAncestors = 32

// load reads a thread from /proc.
func (t *procTable) load(tid int, now int64, depth int) *proc {
	if p := t.inheritFork(tid, now); p != nil {
		t.watchProcess(p)
		t.inherit(p, now, depth)
		t.procs[tid] = p
		return p
	}
	st, ok := t.status(tid)
	if !ok {
		return nil
	}
	if st.tgid != tid {
		p := t.procs[st.tgid]
		if p == nil || now >= p.until && !t.confirmAlive(p, now) {
			if depth == 0 {
				return nil
			}
			if p = t.load(st.tgid, now, depth-1); p == nil {
				return nil
			}
		}
		if len(t.threads) >= maxThreads {
			clear(t.threads)
		}
		t.threads[tid] = thread{p, now + int64(trust)}
		return p
	}
	p := &proc{pid: tid, inner: st.inner, parent: st.parent, creds: st.creds, proc: t.dir, until: now + int64(trust)}
	t.open(p)
	if p.pidfd < 0 && p.dir < 0 && !t.exists(tid) {
		return nil
	}
	t.inherit(p, now, depth)
	t.procs[tid] = p
	if p.pidfd < 0 {
		t.unwatch(now)
	}
	return p
}

// unwatch counts one more process without a pidfd, and looks now and
// then for those that ended.
func (t *procTable) unwatch(now int64) {
	if t.unwatched++; t.unwatched < t.sweep {
		return
	}
	t.unwatched = 0
	for _, p := range t.procs {
		if p.pidfd >= 0 {
			continue
		}
		if t.confirmAlive(p, now) {
			t.unwatched++
		} else {
			t.gone(p)
		}
	}
	t.sweep = max(t.least, 2*t.unwatched)
}

func (t *procTable) exists(pid int) bool { return unix.Kill(pid, 0) != unix.ESRCH }

// status reads /proc/TID/status.
func (t *procTable) status(tid int) (status, bool) {
	return parseStatus(readAt(t.dir, strconv.Itoa(tid)+"/status", t.buf))
}

// open takes hold of p: what it opens stays with this process.
func (t *procTable) open(p *proc) {
	p.dir, p.pidfd = -1, -1
	if !t.watch.room() {
		return
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	p.pidfd = fd
	t.watchProcess(p)
}

// watchProcess keeps the directory of p, which has a pidfd, and waits for its end.
func (t *procTable) watchProcess(p *proc) {
	if dir, err := unix.Openat(t.dir, strconv.Itoa(p.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		p.dir = dir
	}
	t.watch.add(p)
}

// inherit finds out which program p runs.
func (t *procTable) inherit(p *proc, now int64, depth int) {
	var st unix.Stat_t
	t.name = append(p.entry(t.name[:0], p.pid), "exe\x00"...)
	if fstatat(p.base(), t.name, &st, 0) == 0 {
		p.now.is = identityOf(&st)
	}
	if t.parents(p, now, depth) {
		return
	}
	t.name = append(p.entry(t.name[:0], p.pid), "exe\x00"...)
	if text, errno := readlinkat(p.base(), t.name, t.buf); errno == 0 {
		p.now.path = string(text)
	}
}

// parents reports whether p runs a program that its parent runs or ran, as it does
// when it is the same file, for p executed nothing itself.
func (t *procTable) parents(p *proc, now int64, depth int) bool {
	// The parent of the first process inside is ours, and none of the record's.
	if depth == 0 || p.parent == 0 || p.parent == t.self || p.parent == 1 || p.pid == t.root {
		return false
	}
	parent := t.procs[p.parent]
	if parent == nil {
		if parent = t.load(p.parent, now, depth-1); parent == nil {
			return false
		}
	}
	p.parents = parent.now
	if parent.now.is.file(p.now.is) {
		p.now = parent.now
		return true
	}
	for i := len(parent.earlier) - 1; i >= 0; i-- {
		if e := parent.earlier[i]; e.is.file(p.now.is) {
			p.now = e
			return true
		}
	}
	return false
}

// drop forgets p.
func (t *procTable) drop(p *proc) {
	if t.procs[p.pid] == p {
		delete(t.procs, p.pid)
	}
	t.watch.forget(p)
	for _, fd := range []*int{&p.pidfd, &p.dir} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// runs notes that p executes something else from here on.
func (p *proc) runs(next program) {
	if len(p.earlier) == maxEarlier {
		p.earlier = append(p.earlier[:0], p.earlier[1:]...)
	}
	p.earlier = append(p.earlier, p.now)
	p.now = next
}

// eventProcess is the short form of p for events.
func (p *proc) eventProcess() event.Process { return event.Process{PID: p.pid, Exec: p.now.exec} }

// full is the long form.
func (p *proc) full() event.Process {
	return event.Process{PID: p.pid, Exec: p.now.exec, Parent: p.parent, ParentExec: p.parents.exec, Executable: p.now.path}
}
