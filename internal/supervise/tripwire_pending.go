//go:build linux

package supervise

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pendingCall is what a waiting thread asked of the kernel, as read from its memory:
// good for a record, never for a decision.
type pendingCall struct {
	pid, tid int    // in our pid namespace; 0 when it is not known
	call     string // name of the system call; "" when it is not known
	path     string // as asked; "" when it is not known
	dir      string // what path is relative to, absolute; "" when it is not known or not needed
	cwd      bool   // dir is the working directory
	executes bool   // the call executes a program
	creates  bool   // the call is there to make what is missing
	reads    bool   // the call opens a file for reading alone

	second, secondDir string // the other path of a call that has two, as path and dir
}

// absolute is the path without dots, "" when it is not known.
func (a pendingCall) absolute() string { return fromDir(a.dir, a.path) }

func fromDir(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	if name == "" || dir == "" {
		return ""
	}
	return path.Join(dir, name)
}

// pathCall says where a system call has a path.
type pathCall struct {
	name   string
	dir    int // argument with the directory; -1 for the working directory
	path   int
	second int // -1, or the argument with a second path; its directory is the one before, if dir is one
	socket bool
}

// inspect reads what a thread that waits is asking for.
func (t *Tripwire) inspect(tid int) pendingCall {
	var a pendingCall
	a.pid, a.tid = t.pids.outer(tid)
	if a.tid == 0 {
		return a
	}
	// One server is left for what the others may have to wait for: it waits for
	// them a moment at most.
	select {
	case t.asking <- struct{}{}:
	default:
		select {
		case t.asking <- struct{}{}:
		case <-time.After(inspectPatience):
			return a
		}
	}
	a.read()
	<-t.asking
	return a
}

const (
	inspectPatience = 5 * time.Millisecond
	inspectTries    = 100 // of inspectPause: the thread may not have gone to sleep yet, after it woke us
	inspectPause    = 20 * time.Microsecond
)

// read fills in what the thread waits in.
func (a *pendingCall) read() {
	nr, args, ok := currentCall(a.tid)
	if !ok {
		return
	}
	c, ok := pathCalls()[nr]
	if !ok {
		a.call = strconv.Itoa(nr)
		return
	}
	a.call, a.executes = c.name, c.name == "execve" || c.name == "execveat"
	a.creates, a.reads = makes(c.name, args), reads(c.name, args)
	m := newMemory()
	if c.socket {
		a.path = m.socketPath(a.tid, args[c.path], args[c.path+1])
	} else {
		a.path = m.path(a.tid, args[c.path])
	}
	if a.path != "" && a.path[0] != '/' {
		a.dir, a.cwd = startOf(a.tid, c.dir, args)
	}
	if c.second < 0 {
		return
	}
	a.second = m.path(a.tid, args[c.second])
	if a.second != "" && a.second[0] != '/' {
		dir := c.second - 1
		if c.dir < 0 {
			dir = -1
		}
		a.secondDir, _ = startOf(a.tid, dir, args)
	}
}

// makes reports whether a call makes a name that was not there.
func makes(call string, args [6]uint64) bool {
	switch call {
	case "open":
		return args[1]&unix.O_CREAT != 0
	case "openat":
		return args[2]&unix.O_CREAT != 0
	case "creat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat", "rename", "renameat", "renameat2", "bind":
		return true
	}
	return false
}

// reads reports whether a call opens a file for reading alone.
func reads(call string, args [6]uint64) bool {
	const other = unix.O_ACCMODE | unix.O_CREAT | unix.O_TRUNC
	switch call {
	case "open":
		return args[1]&other == 0
	case "openat":
		return args[2]&other == 0
	}
	return false
}

// startOf finds the directory that a path is relative to: that of argument dir,
// or the working directory.
func startOf(tid, dir int, args [6]uint64) (at string, cwd bool) {
	link := "cwd"
	if dir >= 0 && int32(args[dir]) != unix.AT_FDCWD {
		link = "fd/" + strconv.Itoa(int(int32(args[dir])))
	}
	at, err := os.Readlink("/proc/" + strconv.Itoa(tid) + "/" + link)
	if err != nil || !strings.HasPrefix(at, "/") {
		return "", false
	}
	return at, link == "cwd"
}

// currentCall reads the number and arguments of the system call that a thread
// waits in (proc_pid_syscall(5)).
func currentCall(tid int) (nr int, args [6]uint64, ok bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/syscall", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, args, false
	}
	defer unix.Close(fd)
	var line [256]byte
	for range inspectTries {
		n, err := unix.Pread(fd, line[:], 0)
		if err != nil {
			return 0, args, false
		}
		if line[0] != 'r' { // "running"
			return parseCall(string(line[:n]))
		}
		time.Sleep(inspectPause)
	}
	return 0, args, false
}

func parseCall(line string) (nr int, args [6]uint64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 7 { // "running", or waiting outside a call
		return 0, args, false
	}
	nr, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0, args, false
	}
	for i := range args {
		if args[i], err = strconv.ParseUint(fields[i+1], 0, 64); err != nil {
			return 0, args, false
		}
	}
	return nr, args, true
}

// path reads a path of a thread; "" when it cannot be read or does not end.
func (m *memory) path(tid int, addr uint64) string {
	var buf [unix.PathMax]byte
	text, whole, _ := m.text(tid, addr, buf[:])
	if !whole {
		return ""
	}
	return string(text)
}

// socketPath reads the path of a struct sockaddr_un (unix(7)).
func (m *memory) socketPath(tid int, addr, size uint64) string {
	buf := make([]byte, min(size, 110))
	n, _ := m.read(tid, addr, buf)
	if n < 3 || buf[0] != unix.AF_UNIX || buf[1] != 0 || buf[2] == 0 {
		return ""
	}
	name, _, _ := bytes.Cut(buf[2:n], []byte{0})
	return string(name)
}
