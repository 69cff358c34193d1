//go:build linux

package inside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// Report is one line of a prober's output. It is evidence against the sandbox if
// it reports a success, and no evidence for it if it reports a failure: the judge
// also checks outside.
type Report struct {
	Nonce   string `json:"nonce"`             // of this run; a line without it is ignored
	Phase   string `json:"phase,omitempty"`   // Begin or End; "" for an attempt
	Attempt string `json:"attempt,omitempty"` // what was tried
	Control bool   `json:"control,omitempty"` // the attempt must work, or the run proves nothing
	Done    bool   `json:"done,omitempty"`    // the attempt worked
	Errno   string `json:"errno,omitempty"`   // symbolic name, or SIGSYS and the like for a killed child
	Text    string `json:"text,omitempty"`    // error text, or what was read
	Writer  string `json:"writer,omitempty"`  // which of the reporting processes; "" for the first
	Seq     int    `json:"seq"`               // of that process's reports, from 1
	Count   int    `json:"count,omitempty"`   // for a race: how often it was tried
	Honest  int64  `json:"honest,omitempty"`  // for a race: duration of the honest way in nanoseconds
}

// The phases other than an attempt.
const (
	Begin = "begin" // of a run
	End   = "end"
	Noted = "note" // data that is not an attempt
)

// Action is the function that a row names.
type Action func(*Probe)

// Probe is what an action works with.
type Probe struct {
	nonce, writer string
	key           []byte
	args          map[string]string
	out           io.Writer
	terminal      bool // a terminal: the launcher writes there too, possibly in the middle of a line

	mu            sync.Mutex
	seq, children int
}

// longest is how long a prober runs at most; rows allow less.
const longest = 3 * time.Minute

// Main runs the prober, [-child] NONCE ACTION [KEY=VALUE...], the process that probes
// target, -victim, or the first process of the namespaces in which a human is played
// later, -stage. For real agent programs it does single things: -ask VERB WORD... or
// -serve, or waits, -wait WORD... (asked.go). It returns the exit status.
func Main(args []string, stdout io.Writer) int {
	if len(args) > 1 {
		if status, ok := other(args[1], args[2:], stdout); ok {
			return status
		}
	}
	// A harness that was killed cannot end us.
	time.AfterFunc(longest, func() { os.Exit(4) })
	child := len(args) > 1 && args[1] == "-child"
	if child {
		args = args[1:]
	}
	if len(args) < 3 {
		return 2
	}
	act, ok := Find(args[2])
	if !ok {
		return 3
	}
	p := &Probe{nonce: args[1], args: map[string]string{}, out: stdout, terminal: isTerminal(stdout)}
	for _, a := range args[3:] {
		k, v, _ := strings.Cut(a, "=")
		p.args[k] = v
	}
	if p.writer = p.args["writer"]; p.writer != "" {
		p.key = inherit()
	} else if !child {
		p.key = takeKey(p.args["key"])
	}
	if child {
		act(p)
		return 0
	}
	p.emit(Report{Phase: Begin})
	act(p)
	p.positive()
	p.emit(Report{Phase: End})
	return 0
}

// other plays the roles of the prober that are not probes.
func other(role string, args []string, stdout io.Writer) (status int, ok bool) {
	switch role {
	case "-victim":
		Victim()
	case "-stage":
		return PlayStage(os.Stdin, stdout), true
	case "-ask":
		return askedMain(stdout, args), true
	case "-serve":
		return serveAsked(os.Stdin, stdout), true
	case "-wait":
		time.Sleep(waited)
	default:
		return 0, false
	}
	return 0, true
}

// positive is the control of every run: the workspace is writable. The judge
// looks for the nonce in that file from outside.
func (p *Probe) positive() {
	p.Control("write W/ok.txt", func() error {
		return os.WriteFile(filepath.Join(p.Arg("W"), "ok.txt"), []byte(p.nonce), 0o644)
	})
}

func (p *Probe) emit(r Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq++
	r.Nonce, r.Writer, r.Seq = p.nonce, p.writer, p.seq
	if line, err := Seal(r, p.key); err == nil {
		if p.terminal {
			line = append(line, line...) // one of the two is intact
		}
		_, _ = p.out.Write(line) // a closed output is a missing nonce, which is never a pass
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// Arg returns the value of an argument; W, O, H and R are always there.
func (p *Probe) Arg(name string) string { return p.args[name] }

// In returns an argument followed by path elements: p.In("O", "sub", "canary").
func (p *Probe) In(name string, elem ...string) string {
	return filepath.Join(append([]string{p.args[name]}, elem...)...)
}

// Try makes one attempt; a nil error means that it worked.
func (p *Probe) Try(name string, f func() error) {
	p.report(name, false, "", f())
}

// Control makes an attempt that must work.
func (p *Probe) Control(name string, f func() error) {
	p.report(name, true, "", f())
}

// Read makes one attempt that yields data; the data is printed, so that the judge
// finds the tokens in it.
func (p *Probe) Read(name string, f func() ([]byte, error)) {
	b, err := f()
	p.report(name, false, string(b), err)
}

// Note prints data that is not an attempt of its own, such as a listing.
func (p *Probe) Note(name string, data []byte) {
	p.emit(Report{Phase: Noted, Attempt: name, Text: string(data)})
}

// await waits until the outside or another command makes something in the
// workspace.
func (p *Probe) await(name string) error {
	for range 1000 {
		if _, err := os.Lstat(p.In("W", name)); err == nil {
			return nil
		}
		time.Sleep(15 * time.Millisecond)
	}
	return fmt.Errorf("%s did not come into being: %w", name, unix.ETIMEDOUT)
}

func (p *Probe) report(name string, control bool, text string, err error) {
	r := Report{Attempt: name, Control: control, Done: err == nil, Text: text}
	if err != nil {
		r.Errno, r.Text = ErrnoName(err), err.Error()
	}
	p.emit(r)
}

// ErrnoName returns the symbolic name of the errno that err wraps, "SIGSYS" and
// the like for a process that a signal ended, or "" for neither.
func ErrnoName(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	var k killed
	if errors.As(err, &k) {
		return unix.SignalName(k.signal)
	}
	var ex *exec.ExitError
	if errors.As(err, &ex) {
		if st, ok := ex.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			return unix.SignalName(st.Signal())
		}
	}
	return ""
}

// Child runs another action in a process of its own, for attempts that may end
// the process or change it for good. The attempts that it reports count; if it is
// killed, that is the attempt. Extra arguments are KEY=VALUE; attr may be nil.
func (p *Probe) Child(name, action string, attr *syscall.SysProcAttr, extra ...string) {
	c, done := p.Command(os.Args[0], action, extra...)
	defer done()
	c.SysProcAttr = attr
	// PDEATHSIG and namespaces belong to the thread that forks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.Run(); err != nil {
		p.report(name, false, "", err)
	}
}

// Errno turns the result of a raw system call into an error.
func Errno(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// Raw makes a system call by number, without help from a library.
func Raw(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, Errno(errno)
}

// overwrite opens path without creating it and replaces its content.
func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(mark)
	return err
}

// create makes path with its missing parents, or replaces its content.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return programs.Write(path, []byte(mark), 0o755)
}

// createOutside makes a file outside. Below a private home that may succeed in
// another directory, which has no canary.
func (p *Probe) createOutside(name string) error {
	if err := create(p.In("O", name)); err != nil {
		return err
	}
	_, err := os.Lstat(p.In("O", "canary"))
	if err != nil {
		_, _ = os.Remove(p.In("O", name)), os.Remove(p.Arg("O"))
	}
	return err
}

// mark is what probes write, so that a human who finds it knows what it is.
const mark = "# written by a holdfast probe\n"

// Find returns the action of that name.
func Find(name string) (Action, bool) {
	act, ok := actions()[name]
	return act, ok
}

// actions collects the tables of the classes.
func actions() map[string]Action {
	all := map[string]Action{}
	for _, table := range []map[string]Action{
		generalActions(),
		linksActions(),
		pathsActions(),
		deniesActions(),
		procActions(),
		mountsActions(),
		handlesActions(),
		racesActions(),
		endsActions(),
		besideActions(),
		besideStartActions(),
		socketsActions(),
		terminalActions(),
		processActions(),
		syscallsActions(),
		privilegeActions(),
		environmentActions(),
		credentialsActions(),
		gitActions(),
		deferredActions(),
		exhaustionActions(),
		supervisorActions(),
		recordActions(),
		archivesActions(),
		commandsActions(),
		consentActions(),
		reviewActions(),
		reviewAliveActions(),
		egressActions(),
		netActions(),
		turnActions(),
		agentsActions(),
		moreArchivesActions(),
	} {
		for name, act := range table {
			if _, dup := all[name]; dup {
				panic(fmt.Sprintf("probe action %q is defined twice", name))
			}
			all[name] = act
		}
	}
	return all
}
