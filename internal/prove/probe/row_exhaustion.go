//go:build linux

package probe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const mebi = 1 << 20

// cutShort plays a row whose limit may end the whole command. That counts as a
// defence like an error of a single attempt; a second command shows that the
// limits do not forbid everything. check may return an error if it was not one.
func cutShort(check func(Observation) error) func(*Session) {
	return func(s *Session) {
		o := s.Run(Command{Options: s.Row.Options})
		said := parse(o)
		for _, a := range said.attempts {
			if a.Done && !a.Control {
				return
			}
		}
		if said.ended || !said.begun || o.Err != nil || o.Refused || o.TimedOut {
			return
		}
		if check != nil {
			if err := check(o); err != nil {
				s.Fail(err)
				return
			}
		}
		s.obs, s.cut = s.obs[:len(s.obs)-1], true
		s.Run(Command{Action: "nothing-denied", Options: s.Row.Options})
	}
}

// sharesOfUser passes three quarters of what the user may have, and a number of
// terminals that every machine has free.
func sharesOfUser(w *World) error {
	const terminals = 640
	for name, resource := range map[string]int{"signals": unix.RLIMIT_SIGPENDING, "queues": unix.RLIMIT_MSGQUEUE} {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return err
		}
		w.Arg(name + "=" + strconv.FormatUint(min(l.Cur, 1<<20)/4*3, 10))
	}
	raw, err := os.ReadFile("/proc/sys/user/max_inotify_instances")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	w.Arg("watchers=" + strconv.Itoa(min(n, 4096)/4*3))
	w.Arg("terminals=" + strconv.Itoa(terminals))
	return err
}

// floodSession runs the flood, of which only the first MiB is kept, and then
// something that can be judged. Each runs under measure, which prints the memory
// of the largest process on standard error.
func floodSession(s *Session) {
	o := s.Run(Command{})
	if o.Err == nil && !o.TimedOut && !o.Refused {
		s.obs = s.obs[:0]
	}
	s.Run(Command{Action: "nothing-denied"})
	_, kib, found := strings.Cut(string(o.Stderr), "largest process KiB ")
	n, err := strconv.Atoi(strings.TrimSpace(kib))
	switch {
	case !found || err != nil:
		s.Fail(errors.New("the memory of the launcher was not measured"))
	case len(o.Stdout) < outputCap:
		s.Fail(errors.New("the flood did not happen"))
	case n > 96<<10:
		s.Fail(fmt.Errorf("a process grew to %d KiB", n))
	}
}

// objectKey chooses an unused key, and makes sure that what a row leaves outside
// is removed.
func objectKey(w *World) error {
	key := 0x48460000 | os.Getpid()&0xffff
	name := "probe-" + hexes(8)
	w.Arg("key=" + strconv.Itoa(key))
	w.Arg("name=" + name)
	w.remembered = strconv.Itoa(key) + " " + name
	w.Defer(func() error {
		return errors.Join(removeObjects(func(k int) bool { return k == key }), removeQueue(name))
	})
	return nil
}

// manyKeys chooses 65536 unused keys, for the masses of objects that one row
// makes. The kernel keeps them after the process that made them has ended
// (sysvipc(7)).
func manyKeys(w *World) error {
	first := 0x40000000 | rand.IntN(1<<12)<<16
	w.Arg("keys=" + strconv.Itoa(first))
	w.Defer(func() error { return removeObjects(func(k int) bool { return k>>16 == first>>16 }) })
	return nil
}

// removeObjects removes the System V objects for whose key those is true.
func removeObjects(those func(key int) bool) error {
	for _, t := range []struct {
		table string
		nr    uintptr
	}{{"shm", unix.SYS_SHMCTL}, {"msg", unix.SYS_MSGCTL}, {"sem", unix.SYS_SEMCTL}} {
		for _, id := range objectsOf(t.table, those) {
			args := [3]uintptr{uintptr(id), unix.IPC_RMID, 0}
			if t.table == "sem" {
				args = [3]uintptr{uintptr(id), 0, unix.IPC_RMID}
			}
			if _, _, errno := unix.Syscall(t.nr, args[0], args[1], args[2]); errno != 0 {
				return errno
			}
		}
	}
	return nil
}

// objectsOf lists the objects of a System V table for whose key those is true.
func objectsOf(table string, those func(key int) bool) []int {
	b, err := os.ReadFile("/proc/sysvipc/" + table)
	if err != nil {
		return nil
	}
	var ids []int
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		key, err := strconv.Atoi(f[0])
		id, err2 := strconv.Atoi(f[1])
		if err == nil && err2 == nil && those(key) {
			ids = append(ids, id)
		}
	}
	return ids
}

func objectsLeft(w *World, _ Observation) []string {
	number, name, _ := strings.Cut(w.remembered, " ")
	key, _ := strconv.Atoi(number)
	var out []string
	for _, table := range []string{"shm", "msg", "sem"} {
		if len(objectsOf(table, func(k int) bool { return k == key })) > 0 {
			out = append(out, "an object was left in the host's table "+table)
		}
	}
	if exists(filepath.Join("/dev/shm", name)) {
		out = append(out, "a file was left in the host's /dev/shm")
	}
	if exists(filepath.Join("/dev/mqueue", name)) {
		out = append(out, "a queue was left in the host's /dev/mqueue")
	}
	return out
}

// endedInTime demands that a limit of two seconds has ended the run within five.
func endedInTime(o Observation) error {
	if o.Took > 5*time.Second {
		return fmt.Errorf("it was ended after %v, not after 2 s", o.Took)
	}
	return nil
}

// measured starts the launcher from a program that measures what it uses.
func measured(w *World) error {
	launch, err := w.helper()
	if err != nil {
		return err
	}
	w.Under = []string{launch, "-child", "x", "measure", "--"}
	return nil
}

// fileMarks returns the flags of W/marked.
func fileMarks(w *World) (string, error) {
	f, err := os.Open(filepath.Join(w.W, "marked"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return "", fmt.Errorf("the file system has no file attributes: %w", err)
	}
	return fmt.Sprintf("%#x", flags), err
}

func rememberMarks(w *World) (err error) {
	w.remembered, err = fileMarks(w)
	return err
}

func marksChanged(w *World, _ Observation) []string {
	now, err := fileMarks(w)
	switch {
	case err != nil:
		return []string{"the flags cannot be read: " + err.Error()}
	case now != w.remembered:
		return []string{"the flags of W/marked were " + w.remembered + " and are " + now}
	}
	return nil
}
