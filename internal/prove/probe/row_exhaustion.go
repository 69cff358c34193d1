//go:build linux

package probe

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const classExhaustion = "res.exhaustion"

const mebi = 1 << 20

// spent are the errors of a resource of which there is no more.
var spent = append([]string{"EAGAIN", "ENOMEM", "ENOSPC", "EDQUOT", "EFBIG", "EMFILE", "ENFILE", "SIGKILL", "SIGXFSZ", "SIGSEGV"}, Denials...)

func exhaustionRows() []Row {
	rows := slices.Concat(exhaustionLimits(), exhaustionHost(), hiddenMemory(), hiddenDisk(), hostFiles(), settleRows())
	for i := range rows {
		rows[i].Class, rows[i].Promise = classExhaustion, "P8"
		if rows[i].Accept == nil {
			rows[i].Accept = spent
		}
		if len(rows[i].Refs) == 0 {
			rows[i].Refs = []string{"cgroups(7)", "setrlimit(2)"}
		}
	}
	return rows
}

func mostArg(n int) []string { return []string{"most=" + strconv.Itoa(n)} }

func exhaustionLimits() []Row {
	return []Row{
		{ID: "RES-001", Core: true, Kind: Sandbox, Title: "more processes are started than are allowed",
			Refs:    []string{"github.com/cdk-team/CDK pkg/evaluate", "github.com/multikernel/sandlock process_limit"},
			Options: Options{Processes: 64}, Drive: cutShort(nil),
			Action: "fork-many", Args: mostArg(160)},
		{ID: "RES-001b", Kind: Sandbox, Title: "processes in sessions of their own outlive the command",
			Refs: []string{"setsid(2)"}, Harmless: "they may be started; whether any is left is seen outside",
			Action: "leave-many", Args: mostArg(12)},
		{ID: "RES-002", Core: true, Kind: Sandbox, Title: "more memory is used than is allowed",
			Options: Options{Memory: 192 * mebi}, Drive: cutShort(nil),
			Action: "touch-memory", Args: mostArg(448 * mebi), Timeout: 60 * time.Second},
		{ID: "RES-002b", Kind: Sandbox, Title: "memory is used by files that only memory holds",
			Refs: []string{"memfd_create(2)"}, Options: Options{Memory: 192 * mebi}, Drive: cutShort(nil),
			Action: "hold-memfd", Args: mostArg(448 * mebi), Timeout: 60 * time.Second},
		{ID: "RES-003", Kind: Sandbox, Title: "private directories are filled beyond what is allowed",
			Options: Options{Disk: 32 * mebi, Memory: 512 * mebi}, Drive: cutShort(nil),
			Action: "fill-dirs", Args: []string{"path=/tmp\n/var/tmp\n/dev/shm", "most=" + strconv.Itoa(64*mebi)}, Timeout: 60 * time.Second},
		{ID: "RES-003b", Kind: Sandbox, Title: "the workspace is filled beyond what is allowed",
			Options: Options{Disk: 32 * mebi}, Drive: cutShort(nil),
			Action: "fill-dirs", Args: []string{"path=W", "most=" + strconv.Itoa(64*mebi)}, Timeout: 60 * time.Second},
		{ID: "RES-003c", Kind: Sandbox, Title: "private directories are filled with empty files",
			Refs: []string{"tmpfs(5) nr_inodes"}, Options: Options{Disk: 16 * mebi, Memory: 96 * mebi}, Drive: cutShort(nil),
			Action: "many-inodes", Args: []string{"path=/tmp\n/dev/shm", "most=100000"}, Timeout: 60 * time.Second},
		{ID: "RES-005", Kind: Sandbox, Title: "more descriptors are opened than are allowed, or the limit is raised",
			Refs:    []string{"github.com/multikernel/sandlock max_open_files"},
			Options: Options{Files: 64},
			Action:  "open-many", Args: mostArg(100)},
		{ID: "RES-006", Kind: Sandbox, Title: "a command that never ends keeps a core busy beyond its time",
			Options: Options{Time: 2 * time.Second}, Drive: cutShort(func(o Observation) error {
				if o.Took > 5*time.Second {
					return fmt.Errorf("it was ended after %v, not after 2 s", o.Took)
				}
				return nil
			}),
			Action: "spin", Args: mostArg(7), Timeout: 30 * time.Second},
		{ID: "RES-010", Kind: Sandbox, Title: "a file grows beyond what is allowed, without content too",
			Refs:    []string{"setrlimit(2) RLIMIT_FSIZE", "fallocate(2)"},
			Options: Options{FileSize: 16 * mebi}, Drive: cutShort(nil),
			Action: "big-file", Args: mostArg(24 * mebi)},
	}
}

// cutShort plays a row whose limit may end the command as a whole. That end is
// a defence like an error of the single attempt; a second command shows that
// the limits do not forbid everything. check may say that it was none.
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

func exhaustionHost() []Row {
	return []Row{
		{ID: "RES-008", Kind: Host, Title: "a line of 128 MiB is printed, and the launcher keeps it in memory",
			Refs: []string{"npm @anthropic-ai/sandbox-runtime maxBuffered"},
			Setup: func(w *World) error {
				launch, err := w.helper()
				if err != nil {
					return err
				}
				w.Under = []string{launch, "-child", "x", "measure", "--"}
				return nil
			},
			Drive:  floodSession,
			Action: "flood", Args: mostArg(128 * mebi), Timeout: 120 * time.Second,
			Bare: "there is no launcher that could keep it"},
		{ID: "RES-012", Kind: Sandbox, Title: "objects of the kernel are left that outlive their process",
			Refs: []string{"sysvipc(7)", "mq_overview(7)", "shm_overview(7)"}, Setup: objectKey, Oracle: objectsLeft,
			Harmless: "they may be made where nobody else sees them", Action: "kernel-objects"},
		{ID: "RES-013", Kind: Sandbox, Title: "contexts of asynchronous input and output are taken, of which the machine has one pool",
			Refs: []string{"io_setup(2)", "/proc/sys/fs/aio-max-nr in proc_sys_fs(5)"}, Action: "aio-context"},
		{ID: "RES-014", Kind: Sandbox, Title: "a lease is held on a file of the workspace, so that who opens it outside waits",
			Refs: []string{"fcntl(2) F_SETLEASE"}, Action: "hold-lease"},
		{ID: "RES-015", Kind: Sandbox, Title: "most of what is counted for the user, or for all terminals, is taken by one run",
			Refs:  []string{"inotify(7)", "setrlimit(2) RLIMIT_SIGPENDING", "mq_overview(7)", "pty(7)"},
			Setup: sharesOfUser, Action: "take-shares",
			Alone: "it holds, for a moment, most of what other rows of the same user would ask for"},
	}
}

// sharesOfUser hands in three quarters of what the user may have, and a number
// of terminals that every machine has free.
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

// floodSession runs the flood, of which only the first MiB is looked at, and
// then something that can be judged. Under each runs measure, which says on
// standard error how much memory the largest process had.
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
		s.Fail(errors.New("there was no flood"))
	case n > 96<<10:
		s.Fail(fmt.Errorf("a process grew to %d KiB", n))
	}
}

// objectKey chooses a key that nobody has, and sees to it that what a row
// leaves outside is removed.
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

// manyKeys chooses 65536 keys that nobody has, for objects that one row makes in
// masses. The kernel keeps them beyond the process that made them (sysvipc(7)).
func manyKeys(w *World) error {
	first := 0x40000000 | rand.IntN(1<<12)<<16
	w.Arg("keys=" + strconv.Itoa(first))
	w.Defer(func() error { return removeObjects(func(k int) bool { return k>>16 == first>>16 }) })
	return nil
}

// removeObjects removes the System V objects whose key is one of those.
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
			if _, _, no := unix.Syscall(t.nr, args[0], args[1], args[2]); no != 0 {
				return no
			}
		}
	}
	return nil
}

// objectsOf lists the objects of a System V table whose key is one of those.
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
