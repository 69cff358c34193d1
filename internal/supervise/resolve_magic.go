//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names that the kernel resolves for the process that asks: a look-up of ours would
// find our own.
var (
	procSelf   = []byte("/proc/self")
	procThread = []byte("/proc/thread-self")
	procDir    = []byte("/proc/")
	devFD      = []byte("/dev/fd")
	devStd     = [...][]byte{[]byte("/dev/stdin"), []byte("/dev/stdout"), []byte("/dev/stderr")}
)

// cutName takes name from the front of p, as whole components.
func cutName(p, name []byte) (rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(p, name)
	return rest, ok && (len(rest) == 0 || rest[0] == '/')
}

// magic replaces paths that refer to the process itself: /proc/self, /dev/fd and the
// links below /proc/PID that are not text. A nil path means that there was none. done
// means that out is complete: the path is a descriptor that has no name.
func (r *resolver) magic(p *proc, tid int, full []byte, follow bool, out *location) (at []byte, done bool) {
	if len(full) < len(devFD) || full[0] != '/' || full[1] != 'p' && full[1] != 'd' {
		return nil, false
	}
	if full[1] == 'd' {
		if at = r.device(full); at == nil {
			return nil, false
		}
		full = at
	}
	pid, rest, ok := ofProcess(full)
	if !ok {
		return at, false
	}
	link, rest := linkName(rest)
	if link == nil || len(rest) == 0 && !follow {
		return r.replaceSelf(p, pid, full, at), false
	}
	if pid != 0 && pid != p.number() {
		return at, false // of another process: as the view shows it
	}
	r.name = append(append(p.entry(r.name[:0], tid), link...), 0)
	text, errno := r.read(p, tid)
	if errno != 0 {
		if out.errno = errno; forbids(errno) {
			out.unknown, out.blind = "descriptor: "+unix.ErrnoName(errno), true
		}
		return nil, true
	}
	if len(text) == 0 || text[0] != '/' || bytes.HasSuffix(text, deleted) {
		out.setUnnamed(p.base(), r.name, text, len(rest) > 0)
		return nil, true
	}
	to := append(r.other[:0], text...)
	to = append(to, rest...)
	r.other, r.full = r.full, to
	return to, false
}

// setUnnamed completes a location that is a descriptor without a name.
func (s *location) setUnnamed(dir int, name, text []byte, more bool) {
	s.place, s.magic = string(text), true
	s.errno = fstatat(dir, name, &s.stat, 0)
	s.exists = s.errno == 0
	if more && s.exists {
		s.errno, s.exists = unix.ENOTDIR, false
		if s.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
			s.errno = syscall.ENOENT
		}
	}
}

// device replaces the links of /dev that lead to /proc/self.
func (r *resolver) device(full []byte) []byte {
	if rest, ok := cutName(full, devFD); ok {
		to := append(append(r.other[:0], "/proc/self/fd"...), rest...)
		r.other, r.full = r.full, to
		return to
	}
	for i, name := range devStd {
		if rest, ok := cutName(full, name); ok {
			to := strconv.AppendInt(append(r.other[:0], "/proc/self/fd/"...), int64(i), 10)
			to = append(to, rest...)
			r.other, r.full = r.full, to
			return to
		}
	}
	return nil
}

// ofProcess splits a path below /proc/PID; pid is 0 for the process itself.
func ofProcess(full []byte) (pid int, rest []byte, ok bool) {
	if rest, ok = cutName(full, procSelf); ok {
		return 0, rest, true
	}
	if rest, ok = cutName(full, procThread); ok {
		return 0, rest, true
	}
	rest, ok = bytes.CutPrefix(full, procDir)
	if !ok {
		return 0, nil, false
	}
	number, _, _ := bytes.Cut(rest, slash)
	pid = atoi(number)
	return pid, rest[len(number):], pid > 0
}

// linkName takes one of the links that are no text from the front of p.
func linkName(p []byte) (link, rest []byte) {
	for _, name := range [...]string{"/cwd", "/root", "/exe"} {
		if rest, ok := cutName(p, []byte(name)); ok {
			return p[1:len(name)], rest
		}
	}
	number, ok := bytes.CutPrefix(p, []byte("/fd/"))
	if !ok {
		return nil, nil
	}
	number, _, _ = bytes.Cut(number, slash)
	if len(number) == 0 {
		return nil, nil
	}
	n := len("/fd/") + len(number)
	return p[1:n], p[n:]
}

// replaceSelf puts the number of the process into a path in the place of self.
func (r *resolver) replaceSelf(p *proc, pid int, full, at []byte) []byte {
	if pid != 0 || p.number() == 0 {
		return at
	}
	rest, ok := cutName(full, procSelf)
	if !ok {
		rest, _ = cutName(full, procThread)
	}
	to := append(strconv.AppendInt(append(r.other[:0], procDir...), int64(p.number()), 10), rest...)
	r.other, r.full = r.full, to
	return to
}
