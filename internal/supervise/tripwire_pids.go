//go:build linux

package supervise

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// The numbers of ioctls on a descriptor of a pid namespace (ioctl_nsfs(2), Linux
// 6.11): what a process there is called here.
const (
	nsPIDFrom  = 0x8004b706 // NS_GET_PID_FROM_PIDNS
	nsTGIDFrom = 0x8004b707 // NS_GET_TGID_FROM_PIDNS
)

// pidSpace translates pids of the inner pid namespace.
type pidSpace struct {
	ns   *os.File
	scan bool   // the kernel is older than the ioctl
	name string // of the namespace, as its link in /proc says
}

// newPIDSpace opens the pid namespace of a process.
func newPIDSpace(root int) (*pidSpace, error) {
	at := "/proc/" + strconv.Itoa(root) + "/ns/pid"
	if root == 0 {
		at = "/proc/self/ns/pid"
	}
	ns, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("opening the pid namespace: %w", err)
	}
	name, err := os.Readlink(at)
	if err != nil {
		ns.Close()
		return nil, fmt.Errorf("naming the pid namespace: %w", err)
	}
	return &pidSpace{ns: ns, name: name}, nil
}

func (p *pidSpace) close() { p.ns.Close() }

// outer returns the pid and thread id, in our namespace, of a thread whose id there is
// tid; zeros if there is none. The thread waits for us.
func (p *pidSpace) outer(tid int) (int, int) {
	if tid <= 0 { // the kernel itself
		return 0, 0
	}
	if p.scan {
		return p.search(tid)
	}
	thread, _, errno := unix.Syscall(unix.SYS_IOCTL, p.ns.Fd(), nsPIDFrom, uintptr(tid))
	if errno == unix.ENOTTY || errno == unix.EINVAL {
		return p.search(tid)
	}
	if errno != 0 {
		return 0, 0
	}
	group, _, errno := unix.Syscall(unix.SYS_IOCTL, p.ns.Fd(), nsTGIDFrom, uintptr(tid))
	if errno != 0 {
		return 0, int(thread)
	}
	return int(group), int(thread)
}

// search looks through /proc for a thread, which an older kernel needs.
func (p *pidSpace) search(tid int) (int, int) {
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0
	}
	for _, d := range procs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if name, err := os.Readlink("/proc/" + d.Name() + "/ns/pid"); err != nil || name != p.name {
			continue
		}
		tasks, err := os.ReadDir("/proc/" + d.Name() + "/task")
		if err != nil {
			continue
		}
		for _, task := range tasks {
			if innermost("/proc/"+d.Name()+"/task/"+task.Name()+"/status") == tid {
				thread, _ := strconv.Atoi(task.Name())
				return pid, thread
			}
		}
	}
	return 0, 0
}

// innermost is the last number of the line NSpid of a status file.
func innermost(status string) int {
	raw, err := os.ReadFile(status)
	if err != nil {
		return 0
	}
	fields := sys.StatusField(raw, "NSpid")
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return n
}
