//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stage is a sacrificial view of the machine in which the programs of a human are
// played. It is made by a prober that was started in new namespaces for users,
// mounts, processes, network and System V objects, as their first process: when
// it ends, everything in them ends.
type Stage struct {
	World   string   // what is copied: the parent of workspace, home and everything else of a row
	Apart   string   // also copied: the parent of the workspace if it is elsewhere; "" for none
	Leave   []string // below World, not copied: records of a launcher, what a second run exchanges
	Marks   string   // a directory below World that is shown as Outside, writable: the only way out
	Outside string   // below World or Apart; hidden by Marks
	Home    string   // of the human
	Control []string // a command that must leave a mark, or nothing is proved
	Player  int      // user and group that the programs run as, in the namespace
	Lower   bool     // the prober's user differs from the programs' and it must change to theirs
	Steps   []Step
	Limit   time.Duration // of all steps together
}

// Step is one start of a program.
type Step struct {
	Name     string
	Argv     []string // the program is looked up in the system's directories
	Dir      string   // absolute
	Env      []string // in addition to what every human has
	Input    string   // on its standard input
	Terminal bool     // it is started on a terminal, on which Input is typed
	Limit    time.Duration
}

// Played is a stage's report on one step, as a line of JSON.
type Played struct {
	Name   string
	Exit   int    // status; 128+n for signal n
	Output string // the first bytes of its output
	Error  string // why it did not start
	Marks  int64  // size of the marks at its end, in bytes
	Took   time.Duration
}

// Names of the reports before and after the steps, of the first step, and of the
// file in Marks that tripwires append to.
const (
	StageReady   = "ready"
	StageOver    = "over"
	StageControl = "control"
	MarkFile     = "fired"
)

// PlayStage is the first process of the namespaces: it reads a Stage as JSON,
// makes it, and plays it. It writes one Played per line to out and returns an
// exit status.
func PlayStage(in io.Reader, out io.Writer) int {
	time.AfterFunc(longest, func() { os.Exit(4) })
	runtime.LockOSThread()
	enc := json.NewEncoder(out)
	var s Stage
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		_ = enc.Encode(Played{Error: "reading what to play: " + err.Error()})
		return 2
	}
	if err := s.build(); err != nil {
		_ = enc.Encode(Played{Error: err.Error()})
		return 3
	}
	if enc.Encode(Played{Name: StageReady}) != nil {
		return 1
	}
	s.play(func(p Played) { _ = enc.Encode(p) })
	_ = enc.Encode(Played{Name: StageOver, Marks: s.marks()})
	return 0
}

// system are the parts of the machine that are shown, read-only.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"}

// build makes the root that the programs see and enters it.
func (s *Stage) build() error {
	if os.Getpid() != 1 {
		return errors.New("making a stage: not the first process of a namespace")
	}
	// Descriptors that the harness inherited and left open are not for the programs.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping descriptors: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	var worlds []*os.Root // before a root is mounted over the first
	for _, dir := range []string{s.World, s.Apart} {
		if dir == "" {
			continue
		}
		world, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer world.Close()
		worlds = append(worlds, world)
	}
	marks, err := clone(s.Marks, 0)
	if err != nil {
		return fmt.Errorf("cloning the directory of marks: %w", err)
	}
	root := s.World
	if err := unix.Mount("stage", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=256m,nr_inodes=65536,mode=755"); err != nil {
		return fmt.Errorf("mounting a root: %w", err)
	}
	if err := furnishRoot(root); err != nil {
		return err
	}
	for _, world := range worlds {
		if err := s.copyWorld(world, root+world.Name()); err != nil {
			return fmt.Errorf("copying what is replayed: %w", err)
		}
	}
	if err := attachTree(marks, root+s.Outside); err != nil {
		return fmt.Errorf("moving the directory of marks: %w", err)
	}
	if err := s.accounts(root); err != nil {
		return fmt.Errorf("making an account: %w", err)
	}
	if err := enter(root); err != nil {
		return fmt.Errorf("entering the root: %w", err)
	}
	return s.lock()
}

// furnishRoot shows the system, and adds private directories to write to.
func furnishRoot(root string) error {
	for _, dir := range system {
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
			continue
		case st.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(dir)
			if err := errors.Join(err, os.Symlink(to, root+dir)); err != nil {
				return err
			}
			continue
		}
		if err := show(dir, root+dir); err != nil {
			return fmt.Errorf("showing %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/proc", "/dev", "/tmp", "/run", "/var"} {
		if err := os.Mkdir(root+dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir(root+"/var/tmp", 0o755), os.Chmod(root+"/tmp", 0o1777), os.Chmod(root+"/var/tmp", 0o1777)); err != nil {
		return err
	}
	if err := unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting proc: %w", err)
	}
	return devices(root + "/dev")
}

func devices(dev string) error {
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := os.WriteFile(filepath.Join(dev, name), nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+name, filepath.Join(dev, name), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("showing /dev/%s: %w", name, err)
		}
	}
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dev, "pts"), 0o755), os.Mkdir(filepath.Join(dev, "shm"), 0o755), os.Chmod(filepath.Join(dev, "shm"), 0o1777)); err != nil {
		return err
	}
	if err := unix.Mount("devpts", filepath.Join(dev, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0666"); err != nil {
		return fmt.Errorf("mounting devpts: %w", err)
	}
	return nil
}

// clone makes a detached copy of the mount at path, with attributes set
// recursively.
func clone(path string, attributes uint64) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: attributes | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func attachTree(tree int, at string) error {
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// show puts a part of the machine into view, read-only.
func show(path, at string) error {
	fd, err := clone(path, unix.MOUNT_ATTR_RDONLY)
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		err = os.Mkdir(at, 0o755)
	} else if err == nil {
		err = os.WriteFile(at, nil, 0o600)
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	return attachTree(fd, at)
}

// accounts makes an account for the human, which programs such as ssh need.
func (s *Stage) accounts(root string) error {
	for name, line := range map[string]string{
		"passwd": fmt.Sprintf("root:x:0:0::/nonexistent:/bin/false\nhuman:x:%d:%d::%s:/bin/sh\n", s.Player, s.Player, s.Home),
		"group":  fmt.Sprintf("root:x:0:\nhuman:x:%d:\n", s.Player),
	} {
		path := root + "/run/" + name
		if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(path, root+"/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func enter(root string) error {
	if err := errors.Join(os.Chdir(root), unix.PivotRoot(".", ".")); err != nil {
		return err
	}
	return errors.Join(unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
}

// lock removes what the programs do not need: privileges, ways to regain them,
// and more than a fair share of the machine.
func (s *Stage) lock() error {
	if err := errors.Join(loopback(), unix.Sethostname([]byte("replay"))); err != nil {
		return fmt.Errorf("preparing the namespaces: %w", err)
	}
	for _, l := range []struct {
		what int
		most uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 64 << 20}, {unix.RLIMIT_NOFILE, 1024}, {unix.RLIMIT_NPROC, 256},
		{unix.RLIMIT_DATA, 2 << 30}, {unix.RLIMIT_CPU, 30}, {unix.RLIMIT_MEMLOCK, 8 << 20},
	} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.most, Max: l.most}); err != nil {
			return fmt.Errorf("setting a limit: %w", err)
		}
	}
	for _, p := range [][2]uintptr{{unix.PR_SET_NO_NEW_PRIVS, 1}, {unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL}, {unix.PR_SET_DUMPABLE, 0}} {
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, p[0], p[1], 0, 0, 0, 0); errno != 0 {
			return fmt.Errorf("giving up privileges: %w", errno)
		}
	}
	syscall.Umask(0o022)
	return nil
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
