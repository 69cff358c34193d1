//go:build linux

package supervise

import "golang.org/x/sys/unix"

// unread is the number of a process in the innermost namespace that was not read yet.
const unread = -1

// inheritFork adds a process from the result of one call (PIDFD_GET_INFO, Linux 6.13) if its
// parent is known: it has its parent's rights while it has its parent's ids and these
// give it no capability that it could have dropped since. nil means that /proc must be
// read, which costs as much as everything else that is done for a process.
func (t *procTable) inheritFork(tid int, now int64) *proc {
	if !t.watch.room() {
		return nil
	}
	pidfd, err := unix.PidfdOpen(tid, 0)
	if err != nil { // a thread, among others
		return nil
	}
	info, ok := aboutProcess(pidfd)
	parent := t.procs[int(info.ppid)]
	if !ok || int(info.pid) != tid || int(info.tgid) != tid || parent == nil || parent.pidfd < 0 || !parent.creds.isPlain(info.fsuid, info.fsgid) {
		unix.Close(pidfd)
		return nil
	}
	return &proc{pid: tid, inner: unread, parent: parent.pid, creds: parent.creds, proc: t.dir, pidfd: pidfd, dir: -1, until: now + int64(trust)}
}

// isPlain reports whether c has these ids, without a capability that matters.
func (c *creds) isPlain(uid, gid uint32) bool {
	return c.uid == uid && c.gid == gid && !c.override && !c.search && !c.owner
}

// number is the pid of p in the innermost namespace, 0 if it is not known.
func (p *proc) number() int {
	if p.inner == unread {
		st, _ := parseStatus(p.readEntry(p.pid, "status", make([]byte, 4096)))
		p.inner = st.inner
	}
	return p.inner
}
