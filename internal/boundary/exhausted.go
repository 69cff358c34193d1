package boundary

import (
	"errors"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
)

// Exhausted returns what to do about an error that means that something is used up:
// room on a disk, or what this user may have of processes, descriptors, memory or bytes
// of a file. It returns "" for other errors. Exhaustion does not show what the host can
// enforce, so no loss may be accepted by name because of it.
func Exhausted(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC) && strings.Contains(err.Error(), "into new namespaces"):
		return "" // a limit of the host on namespaces (namespaces(7)), and no disk
	case strings.Contains(err.Error(), "inotify_init") && errors.Is(err, syscall.EMFILE):
		return "end some runs, or allow this user more watchers (sysctl fs.inotify.max_user_instances=1024) or this shell more files (ulimit -n 4096)"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room where the message says (see: df -h" + errorDirectory(err) + "), or put the state of holdfast on another disk with XDG_STATE_HOME"
	case errors.Is(err, syscall.EFBIG):
		return "allow larger files in this shell: ulimit -f unlimited"
	case errors.Is(err, syscall.EMFILE):
		return "allow more open files in this shell: ulimit -n 4096"
	case errors.Is(err, syscall.ENFILE):
		return "the machine has no open files left: end programs that hold many, or raise fs.file-max"
	case errors.Is(err, syscall.ENOMEM):
		return "the machine, or the control group of this shell, has no memory left: end some programs, or allow more"
	case errors.Is(err, syscall.EAGAIN) && forks(err):
		return "allow more processes in this shell (ulimit -u 4096), or end some of this user's"
	}
	return ""
}

// errorDirectory is the path that an error is about, behind a space; "" for none.
func errorDirectory(err error) string {
	var path *fs.PathError
	if !errors.As(err, &path) || !strings.HasPrefix(path.Path, "/") {
		return ""
	}
	return " " + path.Path[:strings.LastIndex(path.Path, "/")+1]
}

// forks reports whether an error is that of making a process.
func forks(err error) bool {
	var program *exec.Error
	return errors.As(err, &program) || strings.Contains(err.Error(), "fork/exec") || strings.Contains(err.Error(), "clone")
}
