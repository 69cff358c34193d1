//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func racesActions() map[string]Action {
	return map[string]Action{
		"swap-and-write": swapAndWrite,
		"swap-only":      swapOnly,
		"grant-itself":   grantItself,
		"connect-first":  connectFirst,
		"leave-behind":   leaveBehind,
		"stay":           stay,
		"kill-launcher":  killLauncher,
	}
}

// swaps counts how often an exchange of names was tried, and how often it
// succeeded. A defence may prevent every one: for a race the tries count.
type swaps struct{ tried, done int }

func (s swaps) String() string { return itoa(s.done) + " of " + itoa(s.tried) }

// keepSwapping exchanges two names until stop is set.
func keepSwapping(stop *atomic.Bool, how, a, b string) (n swaps) {
	for !stop.Load() {
		var err error
		switch how {
		case "exchange":
			err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		case "rename":
			err = errors.Join(unix.Rename(a, a+".away"), unix.Rename(b, a), unix.Rename(a, b), unix.Rename(a+".away", a))
		default:
			err = errors.Join(os.RemoveAll(a), os.Symlink(b, a), os.Remove(a), os.Mkdir(a, 0o755))
		}
		n.tried++
		if err == nil {
			n.done++
		}
	}
	return n
}

// raced reports a race as one attempt: how often it was tried, and how long the
// raced operation takes undisturbed. Without that, a race that was never near its
// window would read as a lost one.
func (p *Probe) raced(name string, count int, honest time.Duration, f func() error) {
	r := Report{Attempt: name, Count: count, Honest: int64(honest), Text: fmt.Sprintf("%d times; the honest way takes %v", count, honest)}
	if err := f(); err != nil {
		r.Errno, r.Text = ErrnoName(err), err.Error()
	} else {
		r.Done = true
	}
	p.emit(r)
}

// goesOn reports whether a race that began then and was tried so often goes on: for
// usual, and on a busy machine until it was tried as often as its row demands.
func (p *Probe) goesOn(tried int, begun time.Time, usual time.Duration) bool {
	took := time.Since(begun)
	if took < usual {
		return true // at each turn of the race: nothing else may slow it
	}
	least, _ := strconv.Atoi(p.Arg("least"))
	return tried < least && took < usual+12*time.Second // before the row's time is up
}

// medianTime returns how long f takes: the median of several runs.
func medianTime(f func()) time.Duration {
	var took [21]time.Duration
	for i := range took {
		begun := time.Now()
		f()
		took[i] = max(time.Since(begun), 1)
	}
	slices.Sort(took[:])
	return took[len(took)/2]
}

// swapAndWrite writes and reads below a name that another thread keeps exchanging
// for a link to the outside.
func swapAndWrite(p *Probe) {
	name, other, how := p.Arg("path"), p.Arg("other"), p.Arg("how")
	file := name + "/canary"
	read, tried := 0, 0
	try := func() {
		if b, err := os.ReadFile(file); err == nil && !bytes.Equal(b, []byte(mark)) && len(b) > 0 {
			read++
			p.Note("read", b)
		}
		_ = os.WriteFile(file, []byte(mark), 0o644)
		tried++
	}
	honest := medianTime(try)
	var stop atomic.Bool
	swapped := make(chan swaps)
	go func() { swapped <- keepSwapping(&stop, how, name, other) }()
	tried = 0
	for begun := time.Now(); p.goesOn(tried, begun, 1500*time.Millisecond) && read <= 3; {
		try()
	}
	stop.Store(true)
	n := <-swapped
	if how == "remake" { // the link is there for a moment only: on a busy machine no try may have met it
		_, _ = os.RemoveAll(name), os.Symlink(other, name)
		try()
	}
	p.Note("swaps", []byte(n.String()))
	p.raced("write while the name is exchanged", min(tried, n.tried), honest, func() error { return nil })
}

// swapOnly exchanges names under another process, which passes how long the
// honest way takes.
func swapOnly(p *Probe) {
	var stop atomic.Bool
	swapped := make(chan swaps)
	go func() { swapped <- keepSwapping(&stop, p.Arg("how"), p.Arg("path"), p.Arg("other")) }()
	p.Control("say that it runs", func() error { return create(p.In("W", "ready")) })
	time.Sleep(2500 * time.Millisecond)
	stop.Store(true)
	honest, _ := time.ParseDuration(p.Arg("honest"))
	n := <-swapped
	p.Note("swaps", []byte(n.String()))
	p.raced("exchange names while a command starts", n.tried, honest, func() error { return nil })
	gone(p)
}

// grantItself writes a policy that grants access to the outside under every name
// that a launcher might read, and tries to use it in the same run.
func grantItself(p *Probe) {
	policy := fmt.Sprintf("version: 1\nworkspace: %q\nread: [%q, \"/\"]\nwrite: [%q]\nnetwork: all\n", p.Arg("W"), p.Arg("O"), p.Arg("O"))
	for _, name := range []string{"holdfast.yaml", ".holdfast.yaml", ".holdfast/policy.yaml", ".holdfast/config.yaml", ".config/holdfast/policy.yaml",
		".sandbox.json", ".claude/settings.json", ".codex/config.toml", ".srt-settings.json"} {
		if err := create(p.In("W", name)); err == nil {
			_ = os.WriteFile(p.In("W", name), []byte(policy), 0o644)
		}
		_ = create(p.In("H", name))
	}
	for range 3 {
		time.Sleep(100 * time.Millisecond)
		p.Read("read outside", func() ([]byte, error) { return os.ReadFile(p.In("O", "canary")) })
		p.Try("write outside", func() error { return overwrite(p.In("O", "canary")) })
	}
}

// connectFirst connects from its first moment, for half a second.
func connectFirst(p *Probe) {
	port, err := strconv.Atoi(p.Arg("port"))
	if err != nil {
		return
	}
	to := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	last, tried := error(nil), 0
	try := func() {
		tried++
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			last = err
			return
		}
		defer unix.Close(fd)
		if last = unix.Connect(fd, to); last != nil {
			return
		}
		// A gateway may accept every connection: only the answer counts.
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 2})
		b := make([]byte, 64)
		n, _ := unix.Read(fd, b)
		if n <= 0 {
			last = fmt.Errorf("connected, and nobody answered: %w", unix.ECONNREFUSED)
			return
		}
		p.Note("answer", b[:n])
	}
	begun := time.Now()
	try() // the first moment must not be spent on measuring
	honest := time.Since(begun)
	for last != nil && p.goesOn(tried, begun, 500*time.Millisecond) {
		try()
	}
	p.raced("connect outside", tried, honest, func() error { return last })
}

// leaveBehind starts a process that should continue, in the way that the argument
// names.
func leaveBehind(p *Probe) {
	way := p.Arg("way")
	if _, err := os.Lstat(p.In("W", "second")); err == nil {
		gone(p) // the launcher was started again to show that it still works
		return
	}
	c := exec.Command(os.Args[0], "-child", p.nonce, "stay", "path="+p.In("W", "alive"), "way="+way)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if way == "output" {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	p.Control("start it", c.Start)
	for range 100 {
		if info, err := os.Stat(p.In("W", "alive")); err == nil && info.Size() > 2 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if way == "stopped" {
		p.Control("stop it", func() error { return unix.Kill(c.Process.Pid, unix.SIGSTOP) })
	}
	p.Try("leave a process behind", func() error { return nil })
	if p.Arg("linger") != "" {
		_ = os.WriteFile(p.In("W", "second"), nil, 0o644)
		time.Sleep(1500 * time.Millisecond)
	}
}

// stay writes to a file until the file is deleted, or half a minute is over.
func stay(p *Probe) {
	signal.Ignore(unix.SIGHUP, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1)
	way := p.Arg("way")
	generation, _ := strconv.Atoi(p.Arg("generation"))
	if way == "double" && generation == 0 || way == "chain" && generation < 60 {
		// The parent ends at once; the child is reparented as an orphan.
		c := exec.Command(os.Args[0], "-child", p.nonce, "stay", "path="+p.Arg("path"), "way="+way, "generation="+itoa(generation+1))
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if way == "chain" {
			appendMark(p.Arg("path"))
			time.Sleep(50 * time.Millisecond)
		}
		_ = c.Start()
		return
	}
	f, err := os.OpenFile(p.Arg("path"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer f.Close()
	for begun := time.Now(); time.Since(begun) < 30*time.Second; time.Sleep(25 * time.Millisecond) {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink == 0 {
			return
		}
		if _, err := f.WriteString("."); err != nil {
			return
		}
	}
}

// appendMark appends to a file, which is created the first time.
func appendMark(path string) {
	if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
		_, _ = f.WriteString(".")
		f.Close()
	}
}

// killLauncher stops and ends the process that the row names, and its own parent
// if that is the first process of a namespace. Both were started for this row.
func killLauncher(p *Probe) {
	b, err := os.ReadFile(p.In("W", "launcher.pid"))
	p.Control("read the number of the launcher", func() error { return err })
	launcher, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil || launcher < 2 {
		return
	}
	aims := []int{launcher}
	if unix.Kill(launcher, 0) == unix.ESRCH && os.Getppid() == 1 {
		aims = append(aims, 1)
	}
	for _, pid := range aims {
		if pid == os.Getpid() {
			continue
		}
		p.Try("SIGSTOP to "+itoa(pid), func() error { return ownNamespace(pid, unix.SIGSTOP) })
		p.Try("SIGKILL to "+itoa(pid), func() error { return ownNamespace(pid, unix.SIGKILL) })
	}
	p.Read("read outside", func() ([]byte, error) { return os.ReadFile(p.In("O", "canary")) })
	p.Try("write outside", func() error { return overwrite(p.In("O", "canary")) })
}

// ownNamespace sends a signal. The first process of a namespace ignores signals
// from inside without a handler, and the kernel reports success.
func ownNamespace(pid int, s syscall.Signal) error {
	if err := unix.Kill(pid, s); err != nil || pid != 1 {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	state, err := os.ReadFile("/proc/1/stat")
	if err == nil && bytes.Contains(state, []byte(") T ")) {
		return nil
	}
	return unix.EPERM // it is alive, or this code would not run
}
