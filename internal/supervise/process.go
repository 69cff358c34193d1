//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identity distinguishes one content of an executable from another.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // nanoseconds
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// file reports whether both are the same file, whatever it holds.
func (i identity) file(o identity) bool { return i.dev == o.dev && i.ino == o.ino }

// program is what a process runs, or ran.
type program struct {
	exec uint64 // number of the proc.exec event, 0 when it was not seen
	path string
	is   identity
}

// execution is a proc.exec that was allowed to continue and whose success is not known
// yet.
type execution struct {
	program
	before program
	doomed bool  // it was foreseen to fail
	tid    int   // thread that asked
	at     int64 // when it was allowed to continue

	// Of one that is compared with what runs then.
	judged   bool     // the rules of consent were asked about it
	argv     []string // that the kernel will give to the program
	cut      bool     // argv is only how they begin
	env      *texts   // that the kernel will give to it; nil where it was not judged
	untraced syscall.Errno
}

// proc is a process, with its threads.
type proc struct {
	pid     int
	inner   int // in the innermost pid namespace
	parent  int
	dir     int   // descriptor of /proc/PID, bound to this process and no later one of its pid; -1 for none
	proc    int   // descriptor of /proc
	pidfd   int   // -1 for none
	id      int32 // in the watch
	until   int64
	known   bool    // a record names it
	apart   bool    // its memory is not its parent's
	looked  bool    // the rules of consent were asked about what it runs, though nothing was seen of its beginning
	parents program // what the parent ran
	now     program
	earlier []program // what it ran before, for children that were forked then
	pending *execution
	refused *execCall // by a rule of consent, the last
	creds   creds
}

// maxEarlier bounds the memory of a process that executes without end.
const maxEarlier = 8

// thread is a thread that does not bear its process's number.
type thread struct {
	of    *proc
	until int64
}

// trust is how long a number in the table is believed without another look. A
// number is given out again when all others were, which takes longer; so does
// reading of a process's end from its pidfd.
const trust = 100 * time.Millisecond

// creds are what mode bits are checked against.
type creds struct {
	uid, gid      uint32
	groups        []uint32
	override      bool // CAP_DAC_OVERRIDE
	caps          uint64
	search, owner bool // CAP_DAC_READ_SEARCH, CAP_FOWNER
}

// hasCapability reports whether a capability is in effect.
func (c *creds) hasCapability(capability int) bool { return c.caps&(1<<capability) != 0 }

func (c *creds) inGroup(gid uint32) bool {
	if c.gid == gid {
		return true
	}
	for _, g := range c.groups {
		if g == gid {
			return true
		}
	}
	return false
}

// may reports whether mode bits let c do all of bits (4 read, 2 write, 1 execute).
func (c *creds) may(st *unix.Stat_t, bits uint32) bool {
	mode := st.Mode
	if c.override && (bits&1 == 0 || mode&0o111 != 0 || mode&unix.S_IFMT == unix.S_IFDIR) {
		return true
	}
	if c.search && (bits == 4 || bits&^5 == 0 && mode&unix.S_IFMT == unix.S_IFDIR) {
		return true
	}
	switch {
	case c.uid == st.Uid:
		mode >>= 6
	case c.inGroup(st.Gid):
		mode >>= 3
	}
	return mode&bits == bits
}

// status is what /proc/PID/status says.
type status struct {
	tgid, parent, inner int
	creds               creds
}

// parseStatus reads the lines that matter and passes over the others.
func parseStatus(b []byte) (s status, ok bool) {
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		b = rest
		key, value, found := bytes.Cut(line, []byte(":\t"))
		if !found {
			continue
		}
		switch string(key) {
		case "Tgid":
			s.tgid = atoi(value)
		case "PPid":
			s.parent = atoi(value)
		case "NSpid":
			s.inner = atoi(value[bytes.LastIndexByte(value, '\t')+1:])
		case "Uid":
			s.creds.uid = uint32(atoi(lastField(value)))
		case "Gid":
			s.creds.gid = uint32(atoi(lastField(value)))
		case "Groups":
			for _, g := range bytes.Fields(value) {
				s.creds.groups = append(s.creds.groups, uint32(atoi(g)))
			}
		case "CapEff":
			caps, err := strconv.ParseUint(string(value), 16, 64)
			if err != nil {
				return s, false
			}
			s.creds.caps = caps
			s.creds.override = caps&(1<<unix.CAP_DAC_OVERRIDE) != 0
			s.creds.search = caps&(1<<unix.CAP_DAC_READ_SEARCH) != 0
			s.creds.owner = caps&(1<<unix.CAP_FOWNER) != 0
		}
	}
	return s, s.tgid > 0
}

// lastField of the four ids is the one that the file system looks at.
func lastField(value []byte) []byte { return value[bytes.LastIndexByte(value, '\t')+1:] }

func atoi(b []byte) int {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// linkOf reads the link of p that has this name below /proc/TID, such as cwd or exe. The
// text is good until the next one.
func (r *resolver) linkOf(p *proc, tid int, name string) ([]byte, syscall.Errno) {
	r.name = append(append(p.entry(r.name[:0], tid), name...), 0)
	return readlinkat(p.base(), r.name, r.link[:])
}

// running looks at the executable that p runs.
func (r *resolver) running(p *proc) (identity, syscall.Errno) {
	var st unix.Stat_t
	r.name = append(p.entry(r.name[:0], p.pid), "exe\x00"...)
	errno := fstatat(p.base(), r.name, &st, 0)
	return identityOf(&st), errno
}

// readEntry reads a file of thread tid below /proc, as much of it as buf has room for
// and one read(2) gives.
func (p *proc) readEntry(tid int, name string, buf []byte) []byte {
	return readAt(p.base(), string(append(p.entry(nil, tid), name...)), buf)
}

// readAt reads a file by one read(2); nothing where that is not possible.
func readAt(dir int, name string, buf []byte) []byte {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, _ := unix.Read(fd, buf)
	return buf[:max(n, 0)]
}

// base is the descriptor that names made by entry are relative to.
func (p *proc) base() int {
	if p.dir >= 0 {
		return p.dir
	}
	return p.proc
}

// entry begins the name of a file below /proc/TID. A thread may have a working
// directory and descriptors of its own.
func (p *proc) entry(buf []byte, tid int) []byte {
	if p.dir < 0 {
		return append(strconv.AppendInt(buf, int64(tid), 10), '/')
	}
	if tid == p.pid {
		return buf
	}
	return append(strconv.AppendInt(append(buf, "task/"...), int64(tid), 10), '/')
}
