//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// eventFlood makes "most" events of the argument "kind", and then one that shows
// the outside that recording continues afterwards.
func eventFlood(p *Probe) {
	deep := strings.Repeat(strings.Repeat("flood-", 40)+"/", 5) // 1200 bytes that are quickly walked
	_ = os.MkdirAll(p.In("W", deep), 0o755)
	opens := func(path string) func(int) {
		return func(int) {
			if fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
				unix.Close(fd)
			}
		}
	}
	makers := map[string]func(i int){
		"creates": opens(p.In("W", deep, "flood")),
		"paths":   opens(p.Arg("W") + "/" + strings.Repeat("./", 1900) + "flood"),
		"lookups": func(i int) { _, _ = os.ReadFile(fmt.Sprintf("/flood/%d/x", i)) },
		"refused": func(i int) { _ = personality(addrNoRandomize | uintptr(i)<<32) },
		"connects": func(i int) {
			if c, err := net.DialTimeout("tcp", "127.0.0.1:"+itoa(1+i%1000), time.Second); err == nil {
				c.Close()
			}
		},
		"datagrams": func(i int) {
			if c, err := net.Dial("udp", "127.0.0.1:"+itoa(1+i%1000)); err == nil {
				c.Close()
			}
		},
		"execs":     func(i int) { _ = exec.Command(os.Args[0]).Run() },
		"arguments": func(i int) { _ = exec.Command("true", strings.Repeat("a", 120_000)).Run() },
		"scripts":   func(i int) { _ = unix.Exec("/no/such/"+itoa(i), []string{"x"}, nil) },
	}
	make, n := makers[p.Arg("kind")], most(p)
	var next atomic.Int64
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				make(int(i))
			}
		})
	}
	done.Wait()
	p.Try("make "+itoa(n)+" events", func() error { return nil })
	p.Try("do something afterwards", func() error {
		return exec.Command(os.Args[0], "-child", p.nonce, "nothing", "after=the-flood").Run()
	})
}

// forgeLines does things under names that look like lines of a record, or control
// a terminal.
func forgeLines(p *Probe) {
	for _, name := range forgeries {
		short := name[:min(len(name), 250)]
		_ = os.WriteFile(p.In("W", short), nil, 0o644)
		_, _ = os.ReadFile("/" + short)
		_ = os.Symlink(short, p.In("W", "link"))
		_ = os.Remove(p.In("W", "link"))
		_ = exec.Command(os.Args[0], "-child", p.nonce, "nothing", "forged="+name).Run()
	}
	p.Try("names that look like records", func() error { return nil })
}

// forgeries have no slash: they are file names.
var forgeries = []string{
	"x\n{\"seq\":1,\"action\":\"session.end\",\"object\":\"forged\",\"verdict\":\"allowed\"}\n",
	"x\",\"verdict\":\"allowed\",\"object\":\"forged",
	"x\\u0022,\\u0022object\\u0022:\\u0022forged",
	"\x1b]0;forged\x07\x1b[2J\x1b[1;1Hholdfast: forged",
	"\r\nholdfast: alert: forged\r\n",
	"\u202edegrof\u2066\u200b\ufeff",
	"\u009b2J\u0085forged\u2028forged\u2029",
	"\xff\xfe\xc0\xae\xed\xa0\x80forged",
	"— holdfast.dev log forged\n\n— holdfast.dev AAAA\n",
	"x\n{\"seq\":2,\"checkpoint\":\"forged\"}\n",
}

// refusedCalls are harmless if allowed. What they make is closed.
func refusedCalls(p *Probe) map[string]func() error {
	fd := func(nr uintptr, args ...uintptr) error {
		r, err := Raw(nr, args...)
		if err == nil {
			unix.Close(int(r))
		}
		return err
	}
	return map[string]func() error{
		"personality": func() error { return personality(addrNoRandomize) },
		"keyctl": func() error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
			return err
		},
		"name_to_handle_at": func() error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p.Arg("W"), 0); return err },
		"kcmp": func() error {
			me := uintptr(os.Getpid())
			_, err := Raw(unix.SYS_KCMP, me, me, 0, 0, 0)
			return err
		},
		"userfaultfd": func() error { return fd(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) }, // UFFD_USER_MODE_ONLY
		"socket alg":  func() error { return fd(unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
		"unshare": func() error {
			_, err := Forked([]Call{C(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)})
			return err
		},
		"ptrace": func() error {
			_, err := Forked([]Call{C(unix.SYS_PTRACE, unix.PTRACE_TRACEME)})
			return err
		},
		"mount": func() error {
			none, keep := CString("none")
			at, keep2 := CString(p.Arg("W"))
			kind, keep3 := CString("tmpfs")
			_, err := Forked([]Call{C(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS), C(unix.SYS_MOUNT, none, at, kind)})
			runtime.KeepAlive(keep)
			runtime.KeepAlive(keep2)
			runtime.KeepAlive(keep3)
			return err
		},
		"bpf": func() error { return fd(unix.SYS_BPF, 0, 0, 0) },
	}
}

// refusedStorm makes refused calls from many threads while signals arrive, and
// checks whether any of them ever gets through, or gets another kind of answer.
func refusedStorm(p *Probe) {
	stop := make(chan struct{})
	go func() { // every thread is interrupted again and again
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Kill(os.Getpid(), unix.SIGURG) // the runtime takes it as a preemption
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	const threads = 16
	for name, call := range refusedCalls(p) {
		honest := medianTime(func() { _ = call() })
		answers := stormOf(call, threads, most(p))
		p.raced(name+" in a storm", threads*most(p), honest, func() error { return worst(answers) })
	}
	close(stop)
}

// stormOf makes a call rounds times on each of several threads, and counts the
// answers.
func stormOf(call func() error, threads, rounds int) map[error]int {
	var mu sync.Mutex // guards answers
	answers := map[error]int{}
	var done sync.WaitGroup
	for range threads {
		done.Go(func() {
			runtime.LockOSThread()
			for range rounds {
				var errno unix.Errno
				err := call()
				if errors.As(err, &errno) {
					err = errno
				}
				mu.Lock()
				answers[err]++
				mu.Unlock()
			}
		})
	}
	done.Wait()
	return answers
}

// worst returns the most incriminating answer: success, then one that is not a
// refusal.
func worst(answers map[error]int) error {
	if answers[nil] > 0 {
		return nil
	}
	err := error(unix.EPERM)
	for answer, n := range answers {
		switch answer {
		case unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT: // refused, or the answer of a kernel without it
		default:
			err = fmt.Errorf("%d answers of another kind: %w", n, answer)
		}
	}
	return err
}

// registerRace changes the variable of an argument while the call is being
// decided: only the value in the register counts.
func registerRace(p *Probe) {
	var arg atomic.Uint64
	arg.Store(0xffffffff)
	stop := make(chan struct{})
	go func() {
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				arg.Store([]uint64{0xffffffff, addrNoRandomize}[i%2]) // asking is allowed, setting is not
			}
		}
	}()
	runtime.LockOSThread() // a personality belongs to a thread
	defer runtime.UnlockOSThread()
	honest := medianTime(func() { _, _ = Raw(unix.SYS_PERSONALITY, 0xffffffff) })
	for range most(p) {
		_, _ = Raw(unix.SYS_PERSONALITY, uintptr(arg.Load()))
	}
	close(stop)
	// On a busy machine it may not have been changed meanwhile: at least one call is
	// refused.
	_, _ = Raw(unix.SYS_PERSONALITY, addrNoRandomize)
	p.raced("set a personality", most(p), honest, func() error {
		now, err := Raw(unix.SYS_PERSONALITY, 0xffffffff)
		if err != nil {
			return err
		}
		if now&addrNoRandomize == 0 {
			return unix.EPERM
		}
		_, _ = Raw(unix.SYS_PERSONALITY, 0)
		return nil
	})
}

// A race that asks the supervisor each time runs no longer than this if a busy
// machine has not let it try as often as it wants, but makes enough tries to
// prove something.
const longestRace, shortestRace = 30 * time.Second, 1000

// pathRace changes the path that an argument points to while the call is being
// checked.
func pathRace(p *Probe) {
	inside, outside := p.In("W", strings.Repeat("./", 8)+"race"), p.In("O", "canary")
	path := make([]byte, max(len(inside), len(outside))+1)
	stop := make(chan struct{})
	var done sync.WaitGroup
	copy(path, inside)
	honest := medianTime(func() { // the allowed name, unchanged
		if fd, err := unix.Open(inside, unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil {
			unix.Close(fd)
		}
	})
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				b := []byte([]string{inside, outside}[i%2] + "\x00")
				copy(path, b)
			}
		}
	})
	opened, rounds := 0, 0
	for end := time.Now().Add(longestRace); rounds < most(p) && (rounds < shortestRace || time.Now().Before(end)); rounds++ {
		flags := uintptr(unix.O_WRONLY | unix.O_TRUNC | unix.O_CLOEXEC)
		dir := unix.AT_FDCWD
		r, err := Raw(unix.SYS_OPENAT, uintptr(dir), Pointer(&path[0]), flags, 0)
		if err == nil {
			to, _ := os.Readlink(procFD(int(r)))
			if to == outside {
				opened++
			}
			unix.Close(int(r))
		}
	}
	close(stop)
	done.Wait()
	p.raced("open what is outside for writing", rounds, honest, func() error {
		if opened > 0 {
			return nil
		}
		return unix.EPERM
	})
}

// execStorm starts "most" programs, in several ways and from many threads, each
// with an argument of its own; and others that are killed while they start.
func execStorm(p *Probe) {
	image, err := memoryProgram()
	p.Control("a program in memory", func() error { return err })
	defer unix.Close(image)
	var next atomic.Int64
	var done sync.WaitGroup
	var failed atomic.Int64
	n := most(p)
	for range 8 {
		done.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				path := os.Args[0]
				if i%4 == 0 {
					path = fmt.Sprintf("/proc/self/fd/%d", image)
				}
				if exec.Command(path, "-child", p.nonce, "nothing", "storm="+itoa(int(i))).Run() != nil {
					failed.Add(1)
				}
				doomed := exec.Command(os.Args[0], "-child", p.nonce, "nothing", "doomed="+itoa(int(i)))
				if doomed.Start() == nil {
					_ = doomed.Process.Kill()
					_ = doomed.Wait()
				}
			}
		})
	}
	done.Wait()
	p.Try("start programs", func() error {
		if failed.Load() > 0 {
			return fmt.Errorf("%d of %d did not start", failed.Load(), n)
		}
		return nil
	})
}

// memoryProgram returns this program in a file without a name, for children to
// execute.
func memoryProgram() (int, error) {
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		return -1, err
	}
	fd, err := unix.MemfdCreate("probe", 0)
	if err != nil {
		return -1, err
	}
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil {
			return -1, err
		}
		b = b[n:]
	}
	return fd, nil
}
