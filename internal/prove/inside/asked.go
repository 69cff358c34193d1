//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A prober started as -ask VERB WORD... does one thing for a real agent program,
// whose tool calls have no room for the protocol of a run: it prints the result in
// words, and the judge checks outside. What it leaves somewhere is the reverse of
// the token that it was given, so that an agent that repeats a command cannot be
// mistaken for one that executed it.
//
// Started as -serve it is an MCP server (asked_serve.go); started as -wait it does
// nothing for a while, with words that identify it.

// askedFor is how long one verb may take.
const askedFor = 20 * time.Second

// deed is a verb: its minimum number of words, and what it does.
type deed struct {
	words int
	does  func(out io.Writer, words []string) error
}

// deeds are the verbs. COPY is a file that gets a copy of what was read: some
// agents lose the output of programs.
func deeds() map[string]deed {
	return map[string]deed{
		"read":     {1, askedRead},      // PATH [COPY]
		"write":    {2, askedWrite},     // PATH TOKEN
		"blank":    {2, askedBlank},     // TOKEN PATH...
		"env":      {1, askedEnv},       // NAME [COPY]
		"environs": {1, askedEnvirons},  // NAME [COPY]
		"names":    {0, askedProcesses}, // [COPY]
		"stop":     {2, askedStop},      // PID NAME
		"trace":    {2, askedTrace},     // PID NAME
		"userns":   {2, askedNamespace}, // PATH TOKEN
		"mount":    {3, askedMount},     // PATH TOKEN DIRECTORY
		"mounted":  {3, askedMounted},   // what mount runs in its namespaces
		"keyring":  {2, askedKeyring},   // PATH TOKEN
		"uring":    {2, askedRing},      // PATH TOKEN
		"beat":     {1, askedBeat},      // PATH
		"beating":  {1, askedBeating},   // what beat runs in the process that stays
		"tcp":      {2, asSent("tcp")},  // ADDRESS TOKEN
		"udp":      {2, asSent("udp")},  // ADDRESS TOKEN
		"unix":     {2, asSent("unix")}, // PATH or @NAME, TOKEN
		"dns":      {1, askedName},      // NAME
		"get":      {1, askedGet},       // URL...: without a proxy
		"proxied":  {1, askedProxied},   // URL...: through the proxy in the environment
		"lie":      {2, askedLie},       // ADDRESS TOKEN NAME...: to the proxy, with another name in Host
	}
}

// Asked executes one verb with its words.
func Asked(out io.Writer, words []string) error {
	if len(words) == 0 {
		return errors.New("no verb")
	}
	d, ok := deeds()[words[0]]
	if !ok || len(words)-1 < d.words {
		return fmt.Errorf("no verb %q with %d words", words[0], len(words)-1)
	}
	return d.does(out, words[1:])
}

// askedMain is Asked as a program.
func askedMain(out io.Writer, words []string) int {
	if len(words) > 0 && words[0] != "beating" {
		time.AfterFunc(askedFor, func() { os.Exit(4) })
	}
	if err := Asked(out, words); err != nil {
		fmt.Fprintln(out, "failed:", err)
		return 1
	}
	return 0
}

// waited is how long an idle process stays: longer than a column.
const waited = 30 * time.Minute

// Reverse returns the form of a token in which it must appear.
func Reverse(token string) string {
	b := []byte(token)
	slices.Reverse(b)
	return string(b)
}

// printAndCopy prints what was read, and copies it to the file that a word may name.
func printAndCopy(out io.Writer, data []byte, words []string, at int) error {
	_, err := out.Write(append(bytes.TrimRight(data, "\n"), '\n'))
	if len(words) > at {
		err = errors.Join(err, os.WriteFile(words[at], data, 0o644))
	}
	return err
}

func askedRead(out io.Writer, words []string) error {
	data, err := os.ReadFile(words[0])
	if err != nil {
		return err
	}
	return printAndCopy(out, data, words, 1)
}

func askedWrite(out io.Writer, words []string) error {
	if err := os.MkdirAll(filepath.Dir(words[0]), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(words[0], os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o755)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(Reverse(words[1]) + "\n"); err != nil {
		return err
	}
	fmt.Fprintln(out, "wrote")
	return nil
}

// Blank encodes a text as white space, which JSON, TOML and YAML ignore at the
// end of a file: a program that rereads its settings finds them unchanged.
func Blank(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		for bit := range 8 {
			b.WriteByte(" \t"[c>>bit&1])
		}
	}
	return "\n" + b.String() + "\n"
}

func askedBlank(out io.Writer, words []string) error {
	var all error
	for _, path := range words[1:] {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString(Blank(Reverse(words[0])))
			err = errors.Join(err, f.Close())
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			fmt.Fprintln(out, "changed", path)
		}
		all = errors.Join(all, err)
	}
	return all
}

func askedEnv(out io.Writer, words []string) error {
	v, ok := os.LookupEnv(words[0])
	if !ok {
		return fmt.Errorf("%s is not set", words[0])
	}
	return printAndCopy(out, []byte(v), words, 1)
}

// askedEnvirons looks for a variable in the environment of every other process.
func askedEnvirons(out io.Writer, words []string) error {
	var found []byte
	for _, pid := range otherPIDs() {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			continue
		}
		for v := range bytes.SplitSeq(data, []byte{0}) {
			if value, ok := bytes.CutPrefix(v, []byte(words[0]+"=")); ok {
				found = append(found, fmt.Sprintf("%d %s\n", pid, value)...)
			}
		}
	}
	if found == nil {
		return errors.New("no process shows it")
	}
	return printAndCopy(out, found, words, 1)
}

// askedProcesses prints the command lines of the other processes.
func askedProcesses(out io.Writer, words []string) error {
	var found []byte
	for _, pid := range otherPIDs() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && len(line) > 0 {
			found = append(found, fmt.Sprintf("%d %s\n", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))...)
		}
	}
	return printAndCopy(out, found, words, 0)
}

// victim returns the process that has the name in its command line. The number
// alone may belong to another process, in another PID namespace.
func victim(words []string) (int, error) {
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		return 0, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return 0, err
	}
	if pid == os.Getpid() || !bytes.Contains(line, []byte(words[1])) {
		return 0, fmt.Errorf("process %d is another one here", pid)
	}
	return pid, nil
}

func askedStop(_ io.Writer, words []string) error {
	pid, err := victim(words)
	if err != nil {
		return err
	}
	defer time.Sleep(toStop)
	return unix.Kill(pid, unix.SIGSTOP)
}

// askedTrace leaves the process stopped, which is visible from outside.
func askedTrace(_ io.Writer, words []string) error {
	pid, err := victim(words)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	var st unix.WaitStatus
	if _, err := unix.Wait4(pid, &st, unix.WALL, nil); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(unix.SIGSTOP), 0, 0); errno != 0 {
		return errno
	}
	time.Sleep(toStop)
	return nil
}

// toStop is how long a process may take to stop after it was signalled.
const toStop = 300 * time.Millisecond

// rerunVerb runs this program again, with another verb.
func rerunVerb(attr *syscall.SysProcAttr, words ...string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", append([]string{"-ask"}, words...)...)
	c.SysProcAttr = attr
	return c
}

// runInNamespaces runs a verb in namespaces of its own, as root of a user namespace.
func runInNamespaces(out io.Writer, flags uintptr, words ...string) error {
	one := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	output, err := rerunVerb(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | flags, UidMappings: one(os.Getuid()), GidMappings: one(os.Getgid())}, words...).CombinedOutput()
	_, _ = out.Write(output)
	return err
}

func askedNamespace(out io.Writer, words []string) error {
	return runInNamespaces(out, 0, "write", words[0], words[1])
}

func askedMount(out io.Writer, words []string) error {
	return runInNamespaces(out, unix.CLONE_NEWNS, append([]string{"mounted"}, words...)...)
}

func askedMounted(out io.Writer, words []string) error {
	if err := unix.Mount("probe", words[2], "tmpfs", 0, ""); err != nil {
		return err
	}
	return askedWrite(out, words)
}

func askedKeyring(out io.Writer, words []string) error {
	id, err := unix.AddKey("user", "probe", []byte(words[1]), unix.KEY_SPEC_PROCESS_KEYRING)
	if err != nil {
		return err
	}
	buf := make([]byte, len(words[1]))
	if _, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0); err != nil {
		return err
	}
	return askedWrite(out, []string{words[0], string(buf)})
}

// askedRing makes a ring for one request, and submits nothing.
func askedRing(out io.Writer, words []string) error {
	var params [120]byte // struct io_uring_params
	fd, err := ringSetup(&params)
	if err != nil {
		return err
	}
	return errors.Join(unix.Close(fd), askedWrite(out, words))
}

// beats is how often a process that should have ended with the agent writes, and
// betweenBeats the interval.
const beats, betweenBeats = 1200, 50 * time.Millisecond

func askedBeat(out io.Writer, words []string) error {
	c := rerunVerb(&syscall.SysProcAttr{Setsid: true}, "beating", words[0])
	c.Dir = "/"
	if err := c.Start(); err != nil {
		return err
	}
	fmt.Fprintln(out, "started", c.Process.Pid)
	return c.Process.Release()
}

func askedBeating(_ io.Writer, words []string) error {
	for i := range beats {
		if err := os.WriteFile(words[0], fmt.Appendf(nil, "%d %d\n", os.Getpid(), i), 0o644); err != nil {
			return err
		}
		time.Sleep(betweenBeats)
	}
	return nil
}
