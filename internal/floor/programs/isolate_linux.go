package programs

import (
	"os"
	"os/exec"
	"syscall"
)

// Group lets cmd and what it starts be ended together.
func Group(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// Isolate prepares cmd to be ended with all that it starts and, alone, to see
// no network: its first process is init of its own namespace, whose end is the
// end of all.
func Isolate(cmd *exec.Cmd, alone bool) {
	Group(cmd)
	if !alone {
		return
	}
	a := cmd.SysProcAttr
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
}
