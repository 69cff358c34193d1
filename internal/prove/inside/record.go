//go:build linux

package inside

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func recordActions() map[string]Action {
	all := map[string]Action{
		"record-read":           each(recordRead),
		"record-change":         recordChange,
		"record-live":           recordLive,
		"record-tools":          recordTools,
		"listeners":             listeners,
		"own-filter":            ownFilter,
		"hidden":                hidden,
		"hidden-child":          hiddenChild,
		"root-device":           rootDevice,
		"outlive":               outlive,
		"heartbeat":             heartbeat,
		"denials":               denials,
		"talk":                  talk,
		"tell-secrets":          tellSecrets,
		"event-flood":           eventFlood,
		"forge-lines":           forgeLines,
		"refused-storm":         refusedStorm,
		"register-race":         registerRace,
		"path-race":             pathRace,
		"exec-storm":            execStorm,
		"reconstruct":           reconstruct,
		"reconstruct-requests":  reconstructRequests,
		"reconstruct-decisions": reconstructDecisions,
	}
	maps.Copy(all, recordCalls())
	return all
}

// recordRead reads a file or lists a directory, by every name that may lead there.
func recordRead(p *Probe, path string) {
	roots := []string{"", "/proc/self/root", "/proc/1/root", "/proc/" + itoa(os.Getppid()) + "/root", "/proc/1/cwd/../../../../../../.."}
	for _, root := range roots {
		p.Read("read "+root+path, func() ([]byte, error) {
			b, err := os.ReadFile(root + path)
			if !errors.Is(err, unix.EISDIR) {
				return b, err
			}
			entries, err := os.ReadDir(root + path)
			for _, e := range entries {
				b = append(b, e.Name()+"\n"...)
			}
			if err == nil && len(b) == 0 {
				err = unix.ENOENT // an empty directory of ours
			}
			return b, err
		})
	}
	link, second := p.In("W", "to-"+filepath.Base(path)), p.In("W", "second-"+filepath.Base(path))
	p.Read("read "+path+" through a link", func() ([]byte, error) {
		if err := os.Symlink(path, link); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
		return os.ReadFile(link)
	})
	p.Read("read "+path+" by a second name", func() ([]byte, error) {
		if err := os.Link(path, second); err != nil {
			return nil, err
		}
		return os.ReadFile(second)
	})
}

// recordChange does to paths what would falsify or remove a record: first, to all
// of them, what leaves them in place, before anything is moved.
func recordChange(p *Probe) {
	paths := strings.Split(p.Arg("path"), "\n")
	type change struct {
		name string
		do   func(path string) error
	}
	phases := [][]change{{
		{"append to", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(mark)
			return err
		}},
		{"attribute of", func(path string) error { return unix.Setxattr(path, "user.probe", []byte(mark), 0) }},
		{"time of", func(path string) error { return os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)) }},
		{"mode of", func(path string) error { return os.Chmod(path, 0o777) }},
		{"truncate", func(path string) error { return os.Truncate(path, 0) }},
	}, {
		{"make beside", func(path string) error {
			return create(filepath.Join(filepath.Dir(path), "99991231T235959-ffffffffffff.jsonl"))
		}},
		{"replace", func(path string) error { return renameOver(p, path) }},
		{"move away", func(path string) error { return os.Rename(path, p.In("W", "moved")) }},
		{"link over", func(path string) error { return errors.Join(os.Remove(path), os.Symlink(p.In("W", "ok.txt"), path)) }},
		{"remove", os.Remove},
	}, {
		{"move the directory of", func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+"-moved") }},
		{"link at the directory of", func(path string) error { return os.Symlink(p.Arg("W"), filepath.Dir(path)) }},
	}}
	for _, phase := range phases {
		for _, path := range paths {
			for _, c := range phase {
				p.Try(c.name+" "+path, func() error { return c.do(path) })
			}
		}
	}
}

func renameOver(p *Probe, path string) error {
	from := p.In("W", "replacement")
	if err := os.WriteFile(from, []byte(mark), 0o644); err != nil {
		return err
	}
	return os.Rename(from, path)
}

// recordLive waits until the outside has listed the parts of the running
// launcher, one per line: "path P", "socket P", "pid N" and "fd PID/N".
func recordLive(p *Probe) {
	var listing []byte
	p.Control("say that it is up", func() error { return create(p.In("W", "up")) })
	for range 600 {
		if b, err := os.ReadFile(p.In("W", "live")); err == nil && strings.HasSuffix(string(b), "\nend\n") {
			listing = b
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.Control("the outside has said what there is", func() error {
		if listing == nil {
			return unix.ENOENT
		}
		return nil
	})
	for line := range strings.Lines(string(listing)) {
		kind, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "path":
			recordRead(p, what)
			p.Try("append to "+what, func() error {
				f, err := os.OpenFile(what, os.O_WRONLY|os.O_APPEND, 0)
				if err == nil {
					f.Close()
				}
				return err
			})
		case "socket":
			giveOrder(p, what)
		case "pid":
			atLauncher(p, int(number(what)))
		case "fd":
			descriptorOf(p, what)
		}
	}
}

// giveOrder uses a control socket as its owner does.
func giveOrder(p *Probe, path string) {
	for _, root := range []string{"", "/proc/1/root", "/proc/self/root"} {
		p.Read("order at "+root+path, func() ([]byte, error) {
			c, err := net.DialTimeout("unix", root+path, time.Second)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = c.Write([]byte(`{"Do":"reload"}` + "\n"))
			b := make([]byte, 256)
			n, err := c.Read(b)
			return b[:n], err
		})
	}
}

// atLauncher does to a process what would stop, slow or read it. Only harmless
// signals are used.
func atLauncher(p *Probe, pid int) {
	at := "/proc/" + itoa(pid)
	p.Try("signal "+itoa(pid), func() error { return unix.Kill(pid, unix.SIGWINCH) })
	p.Try("signal the group of "+itoa(pid), func() error { return unix.Kill(-pid, unix.SIGWINCH) })
	p.Try("trace "+itoa(pid), func() error {
		if err := unix.PtraceSeize(pid); err != nil {
			return err
		}
		return unix.PtraceDetach(pid)
	})
	p.Try("priority of "+itoa(pid), func() error { _, err := unix.Getpriority(unix.PRIO_PROCESS, pid); return err })
	p.Try("processors of "+itoa(pid), func() error {
		var set unix.CPUSet
		return unix.SchedGetaffinity(pid, &set)
	})
	p.Try("limits of "+itoa(pid), func() error {
		var lim unix.Rlimit
		return unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &lim)
	})
	for _, file := range []string{"oom_score_adj", "mem", "environ", "syscall", "timens_offsets", "cmdline"} {
		p.Try("open "+at+"/"+file, func() error {
			f, err := os.Open(at + "/" + file)
			if err == nil {
				f.Close()
			}
			return err
		})
	}
}

// descriptorOf takes "PID/FD" of another process.
func descriptorOf(p *Probe, what string) {
	owner, of, _ := strings.Cut(what, "/")
	pid, fd := int(number(owner)), int(number(of))
	p.Try("open descriptor "+what, func() error {
		f, err := os.OpenFile("/proc/"+owner+"/fd/"+of, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			f.Close()
		}
		return err
	})
	p.Try("take descriptor "+what, func() error {
		h, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(h)
		got, err := unix.PidfdGetfd(h, fd, 0)
		if err == nil {
			unix.Close(got)
		}
		return err
	})
}

// recordTools has programs do it: a shell, and the launcher itself if the
// workspace has a copy.
func recordTools(p *Probe) {
	state := p.In("H", ".local", "state", "holdfast")
	lines := []string{"rm -rf " + state + "/log", "rm -rf " + state, "mv " + state + " " + p.In("W", "gone"), "for f in " + state + "/*/*; do : >$f; done",
		"find " + state + " -type f -delete"} // and never beyond: without a sandbox this is the host
	if _, err := os.Stat(p.In("W", "launcher")); err == nil {
		for _, args := range []string{"log prune --runs 0", "log prune --older 0s", "log key rotate", "log show", "log list", "log verify --all", "reload"} {
			lines = append(lines, p.In("W", "launcher")+" "+args)
		}
	}
	for _, line := range lines {
		c := exec.Command("sh", "-c", line)
		c.Dir = p.Arg("W")
		out, err := c.CombinedOutput()
		p.Note(line+": "+fmt.Sprint(err), out)
	}
	p.Try("have programs do it", func() error { return nil })
}

// rootDevice tries to reach the device that serves the root of the view.
func rootDevice(p *Probe) {
	p.Try("open /dev/fuse", func() error {
		fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	p.Try("make the device", func() error {
		path := p.In("W", "fuse")
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))); err != nil {
			return err
		}
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	connections, _ := filepath.Glob("/sys/fs/fuse/connections/*/abort")
	for _, path := range append(connections, "/sys/fs/fuse/connections") {
		p.Try("reach "+path, func() error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
	for fd := 0; fd < 256; fd++ {
		to, err := os.Readlink(procFD(fd))
		if err == nil && strings.Contains(to, "fuse") {
			p.Try("descriptor "+itoa(fd)+" leads to "+to, func() error { return nil })
		}
	}
	p.Try("write to the root", func() error { return unix.Access("/", unix.W_OK) })
}

// outlive starts a process that does something repeatedly, in a session of its
// own, and waits to be ended.
func outlive(p *Probe) {
	c := exec.Command(os.Args[0], "-child", p.nonce, "heartbeat", "W="+p.Arg("W"))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.Control("start a process", c.Start)
	time.Sleep(30 * time.Second)
}

// heartbeat makes a file now and then: each is a reported call.
func heartbeat(p *Probe) {
	for i := range 3000 {
		_ = os.WriteFile(p.In("W", "beat"), []byte(strconv.Itoa(i)), 0o644)
		_, _ = os.Stat("/no-such-name-" + strconv.Itoa(i))
		time.Sleep(10 * time.Millisecond)
	}
}

// denials tries something that each layer refuses.
func denials(p *Probe) {
	p.Read("read outside", func() ([]byte, error) { return os.ReadFile(p.In("O", "canary")) })
	p.Try("write outside", func() error { return overwrite(p.In("O", "canary")) })
	p.Try("write what is shown", func() error { return overwrite(p.In("R", "canary")) })
	p.Try("write what the host would execute", func() error { return overwrite(p.In("W", ".mcp.json")) })
	p.Try("make a name outside", func() error { return os.Mkdir(p.In("O", "made"), 0o755) })
	p.Try("personality", func() error { return personality(addrNoRandomize) })
	p.Try("key ring", func() error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	})
	_ = os.WriteFile(p.In("W", "made"), []byte(mark), 0o644)
	_ = os.Rename(p.In("W", "made"), p.In("W", "renamed"))
	_ = os.Chmod(p.In("W", "renamed"), 0o600)
	_ = os.Symlink(p.In("O", "canary"), p.In("W", "symbolic"))
	_ = os.Remove(p.In("W", "renamed"))
	_ = exec.Command(os.Args[0], "-child", p.nonce, "nothing", "seen=by-the-record").Run()
}

const addrNoRandomize = 0x0040000

// personality sets one and restores the old one.
func personality(to uintptr) error {
	old, _, errno := unix.Syscall(unix.SYS_PERSONALITY, to, 0, 0)
	if errno != 0 {
		return errno
	}
	_, _, _ = unix.Syscall(unix.SYS_PERSONALITY, old, 0, 0)
	return nil
}

// talk makes every kind of call that names the peer of a socket. No peer answers.
func talk(p *Probe) {
	noteErrno := func(name string, f func() error) { p.Note(name, []byte(ErrnoName(f()))) }
	tcp := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}
	udp := &unix.SockaddrInet4{Port: 7, Addr: [4]byte{127, 0, 0, 1}}
	with := func(family, kind int, f func(fd int) error) func() error {
		return func() error { return withSocket(family, kind|unix.SOCK_CLOEXEC, 0, f) }
	}
	noteErrno("connect", with(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error { return unix.Connect(fd, tcp) }))
	noteErrno("send", with(unix.AF_INET, unix.SOCK_DGRAM, func(fd int) error { return unix.Sendto(fd, []byte("x"), 0, udp) }))
	noteErrno("bind", with(unix.AF_INET, unix.SOCK_STREAM, func(fd int) error {
		return unix.Bind(fd, &unix.SockaddrInet4{Port: 47011, Addr: [4]byte{127, 0, 0, 1}})
	}))
	noteErrno("connect by name", with(unix.AF_UNIX, unix.SOCK_STREAM, func(fd int) error {
		return unix.Connect(fd, &unix.SockaddrUnix{Name: "@probe-nobody"})
	}))
	p.Try("talk", func() error { return nil })
}

// tellSecrets puts secrets into arguments of programs and names of files.
func tellSecrets(p *Probe) {
	for secret := range strings.SplitSeq(p.Arg("secrets"), "\n") {
		_ = exec.Command(os.Args[0], secret).Run()
		_ = exec.Command(os.Args[0], "-H", secret, "not-a-secret").Run()
		if strings.Contains(secret, "/") {
			continue // it is not a file name
		}
		_ = os.WriteFile(p.In("W", secret), nil, 0o644)
		_, _ = os.ReadFile("/" + secret)
		_ = os.Remove(p.In("W", secret))
	}
	p.Try("say what it knows", func() error { return nil })
}
