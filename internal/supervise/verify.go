//go:build linux

package supervise

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// sleepsDeep reports whether a thread is in a sleep that only its death ends.
func sleepsDeep(stat string, buf []byte) bool {
	text := readAt(unix.AT_FDCWD, stat, buf)
	if text == nil {
		return true // it is dead
	}
	_, state, _ := bytes.Cut(text, []byte(") "))
	return len(state) > 0 && state[0] != 'S' && state[0] != 'R'
}

// verify holds what is about to run its first instruction against what was
// judged. False means that it must not.
func (s *Supervisor) verify(j *traced) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := j.call.proc
	is, errno := s.resolver.running(p)
	if errno != 0 {
		if forbids(errno) {
			s.recordUnseen(p)
		}
		return false
	}
	if p.pending == j.was {
		p.pending = nil
	}
	if is == j.was.is && !j.was.doomed && j.was.judged && s.runsWith(p, j.was) && s.runsIn(p, j.was) {
		p.now.is = is
		return true
	}
	return s.recordMismatch(j.call, p, j.was, is)
}

// runsWith reports whether the arguments of p are these, or begin with these where
// no more was read. It is for a program that did not run yet: they are its own
// memory.
func (s *Supervisor) runsWith(p *proc, was *execution) bool {
	return s.matchesList(p, "cmdline", was.argv, was.cut)
}

// runsIn does the same for the variables of p, if they were judged. Another thread of
// the caller may have written others before the kernel took them.
func (s *Supervisor) runsIn(p *proc, was *execution) bool {
	return was.env == nil || was.env.errno != 0 || s.matchesList(p, "environ", was.env.list, was.env.cut)
}

// matchesList reports whether a list that the kernel gave to p is this one, or begins with
// it where it is cut.
func (s *Supervisor) matchesList(p *proc, file string, list []string, cut bool) bool {
	want := make([]byte, 0, 512)
	for _, a := range list {
		want = append(append(want, a...), 0)
	}
	if cut {
		want = want[:max(len(want)-1, 0)]
	}
	got, whole := s.readList(p, file, len(want))
	return whole != cut && bytes.Equal(got, want)
}

// readList reads such a list, of the arguments ("cmdline") or the variables ("environ")
// of p, at most so many bytes. whole is false when there are more.
func (s *Supervisor) readList(p *proc, file string, most int) (text []byte, whole bool) {
	return readUpTo(p.base(), string(append(p.entry(nil, p.pid), file...)), most)
}

// readUpTo reads a file, at most so many bytes. whole is false when there are more, or
// it cannot be read.
func readUpTo(dir int, name string, most int) (text []byte, whole bool) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	buf := make([]byte, most+1)
	n := 0
	for n < len(buf) {
		k, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return buf[:n], false
		}
		if k == 0 {
			break
		}
		n += k
	}
	return buf[:min(n, most)], n <= most
}

// commandLine is the arguments that the kernel will give to the program of l:
// what interprets a script gets the script's name before them.
func (l *execCall) commandLine() []string {
	argv := l.event.Process.Argv
	if len(argv) == 0 {
		argv = []string{""}
	}
	name := l.name
	for i := 0; i+1 < len(l.images); i++ {
		line := l.images[i].line
		at := strings.IndexAny(line, " \t")
		if at < 0 {
			at = len(line)
		}
		front := []string{line[:at]}
		if arg := strings.Trim(line[at:], " \t"); arg != "" {
			front = append(front, arg)
		}
		front = append(front, name)
		argv = append(front, argv[1:]...)
		name = line[:at]
	}
	return argv
}
