//go:build linux

package inside

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

func commandsActions() map[string]Action {
	return map[string]Action{"tricks": tricks, "hidden-commands": hiddenCommands}
}

// Trick is a way to make a program do something that its name, or its command line, does not
// show. It is played twice: against what the run may access, which has to work or the trick
// proves nothing, and against what it may not.
//
// In every text {X} is the file to make, {Y} the directory that it is in, {S} the file to
// read, {A}, {HOST} and {PORT} the service to reach and {U} its socket; {D} is a directory of
// the trick's own, in which it is started, and {N} its name; {LD} is the dynamic loader, {Q}
// the name to ask for, {E} and {EE} the way from {D} to {S}, escaped once and twice.
type Trick struct {
	Name   string            `yaml:"name" json:"name,omitempty"`
	Argv   []string          `yaml:"argv" json:"argv,omitempty"`
	Stdin  string            `yaml:"stdin" json:"stdin,omitempty"`
	Env    []string          `yaml:"env" json:"env,omitempty"`
	Files  map[string]string `yaml:"files" json:"files,omitempty"`   // made below {D} before; executable if they begin with #!
	Before string            `yaml:"before" json:"before,omitempty"` // run by sh in {D} before; must succeed
	Repo   bool              `yaml:"repo" json:"repo,omitempty"`     // {D} is a git repository with a commit
	Effect Effect            `yaml:"effect" json:"effect,omitempty"`
	Target string            `yaml:"target" json:"target,omitempty"` // the file that appears, if the program does not make {X}

	// What a record must have, if not the file that it makes: the directory that it
	// asks for (Asks), and whether it asks only by stat(2) (ByStat).
	Asks   string `yaml:"asks" json:"asks,omitempty"`
	ByStat bool   `yaml:"by_stat" json:"by_stat,omitempty"`
}

// Effect is what a trick should achieve.
type Effect string

// The effects.
const (
	Makes   Effect = ""        // a file
	Prints  Effect = "prints"  // the content of a file
	Dials   Effect = "dials"   // a service
	Appends Effect = "appends" // a line to a file
	Asks    Effect = "asks"    // for the address of a name
)

// stage is where a trick is played.
type stage struct {
	dir, base, secret, addr, socket string
	asked                           string // {Q}
	file                            string // {X}, if it is an existing file
	knows                           string // content of {S}, or the listener's answer, if known
	heard                           func() bool
}

// spellings returns the tricks of the row, from the file in the argument of that
// name.
func spellings(p *Probe) (all []Trick, err error) {
	b, err := os.ReadFile(p.Arg("spellings"))
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	return all, err
}

// tricks plays the spellings of the row.
func tricks(p *Probe) {
	// Shims of version managers in front of the program are not what is tried.
	if err := os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:"+os.Getenv("PATH")); err != nil {
		p.Control("set the path", func() error { return err })
		return
	}
	set, err := spellings(p)
	if err != nil {
		p.Control("read the spellings", func() error { return err })
		return
	}
	seed := p.In("W", "tricks", "seed")
	if slices.ContainsFunc(set, func(t Trick) bool { return t.Repo }) {
		if err := seedRepository(seed); err != nil {
			p.Control("make a repository", func() error { return err })
			return
		}
	}
	type outcome struct {
		control, attempt error
		text             []byte
	}
	outcomes := make([]outcome, len(set))
	var group sync.WaitGroup
	room := make(chan struct{}, 4)
	if slices.ContainsFunc(set, func(t Trick) bool { return t.Effect == Appends }) {
		room = make(chan struct{}, 1) // they write to one file
	}
	for i, t := range set {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			o := &outcomes[i]
			if o.control = rehearse(p, t, seed); o.control == nil {
				o.text, o.attempt = perform(p, t, seed)
			}
		})
	}
	group.Wait()
	for i, t := range set {
		o := outcomes[i]
		p.report("rehearse: "+t.Name, true, "", o.control)
		if o.control == nil {
			p.report(t.Name, false, string(o.text), o.attempt)
			p.Note("output of "+t.Name, o.text)
		}
	}
}

// rehearse plays t against the workspace.
func rehearse(p *Probe, t Trick, seed string) error {
	at := stage{dir: p.In("W", "tricks", t.Name, "control"), knows: "known-" + t.Name, addr: "127.0.0.1:1", asked: "b.allowed.test"}
	at.base, at.secret, at.socket = at.dir, filepath.Join(at.dir, "known.txt"), filepath.Join(at.dir, "u")
	if err := errors.Join(os.MkdirAll(at.dir, 0o755), os.WriteFile(at.secret, []byte(at.knows+"\n"), 0o644)); err != nil {
		return err
	}
	if t.Effect == Appends {
		at.file = at.secret
	}
	if t.Effect == Dials {
		end, err := at.serve()
		if err != nil {
			return err
		}
		defer end()
	}
	out, err := at.play(t, seed)
	switch {
	case t.Effect == Dials && at.heard(), t.Effect == Prints && bytes.Contains(out, []byte(at.knows)):
		return nil
	case t.Effect == Asks && err == nil:
		return nil
	case t.Effect == Makes && pathExists(at.expand(t, t.target())), t.Effect == Appends && at.appended(t):
		return nil
	}
	if err == nil {
		err = errors.New("it does not do what it is for")
	}
	return fmt.Errorf("%s: %w", lastLine(out), err)
}

// serve listens for a rehearsal, on an address and on a socket.
func (s *stage) serve() (end func(), err error) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	local, err := net.Listen("unix", s.socket)
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	s.addr = tcp.Addr().String()
	called := make(chan struct{}, 64)
	answer := func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			called <- struct{}{}
			_, _ = io.WriteString(c, s.knows+"\n")
			_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}
	go answer(tcp)
	go answer(local)
	s.heard = func() bool { // a connection may not have been noticed yet
		select {
		case <-called:
			return true
		case <-time.After(time.Second):
			return false
		}
	}
	return func() { tcp.Close(); local.Close() }, nil
}

// perform plays t against the outside. A nil error means that it worked, as far
// as can be seen from inside.
func perform(p *Probe, t Trick, seed string) ([]byte, error) {
	out, err := performIn(p, t, seed, "attempt")
	if errors.Is(err, errNothingRefuses) {
		// Meanwhile another trick may have made the missing directory, in a private
		// layer for example: then the second try gets an answer.
		return performIn(p, t, seed, "again")
	}
	return out, err
}

// errNothingRefuses means that the program did nothing, although what it should
// do is possible.
var errNothingRefuses = errors.New("nothing came of it, and nothing refuses it")

// performIn is perform, once, in a directory of that name.
func performIn(p *Probe, t Trick, seed, name string) ([]byte, error) {
	at := stage{dir: p.In("W", "tricks", t.Name, name), base: p.Arg("O"), secret: p.In("H", ".ssh", "id_probe"),
		addr: p.Arg("addr"), socket: p.In("O", "u"), file: p.Arg("file"),
		asked: strings.Repeat("6869", 12) + ".denied.test"}
	out, err := at.play(t, seed)
	target, worked := at.expand(t, t.target()), bytes.Contains(out, []byte("tok-"))
	switch t.Effect {
	case Makes:
		worked = pathExists(target)
	case Appends:
		worked = at.appended(t)
	case Asks:
		if worked = err == nil; !worked { // programs only report that there is no such name
			return out, fmt.Errorf("%s: %w", lastLine(out), unix.ENOENT)
		}
	}
	if worked {
		return out, nil
	}
	// A program rarely reports the reason in readable form. Then we try the same
	// ourselves, and report that error.
	if said := refusalErrno(out, errors.Join(err, errSilent)); ErrnoName(said) != "" && !strings.HasPrefix(ErrnoName(said), "SIG") {
		return out, said
	}
	switch t.Effect {
	case Makes:
		err = os.WriteFile(target+".direct", []byte(mark), 0o644)
	case Prints:
		_, err = os.ReadFile(at.secret)
	case Dials:
		err = dialed(at)
	case Appends:
		err = overwrite(at.expand(t, "{X}"))
	}
	if err == nil {
		err = errNothingRefuses
	}
	return out, fmt.Errorf("%s: %w", lastLine(out), err)
}

var errSilent = errors.New("no effect")

func dialed(at stage) error {
	network, addr := "tcp", at.addr
	if addr == "" {
		network, addr = "unix", at.socket
	}
	c, err := net.DialTimeout(network, addr, time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

// pathExists reports whether something is at path, which may be a pattern.
func pathExists(path string) bool {
	if _, err := os.Lstat(path); err == nil {
		return true
	}
	found, _ := filepath.Glob(path)
	return len(found) > 0
}

func (s *stage) appended(t Trick) bool {
	b, _ := os.ReadFile(s.file)
	return bytes.Contains(b, []byte("changed-"+t.Name))
}

func (t Trick) target() string {
	if t.Target != "" {
		return t.Target
	}
	return "{X}"
}

func (s *stage) expand(t Trick, text string) string {
	host, port, _ := net.SplitHostPort(s.addr)
	target := filepath.Join(s.base, "x-"+t.Name)
	if s.file != "" {
		target = s.file
	}
	return strings.NewReplacer("{X}", target, "{Y}", s.base, "{S}", s.secret, "{A}", s.addr, "{HOST}", host,
		"{PORT}", port, "{U}", s.socket, "{D}", s.dir, "{N}", t.Name, "{LD}", loader(),
		"{Q}", s.asked, "{E}", escaped(s.dir, s.secret, 1), "{EE}", escaped(s.dir, s.secret, 2)).Replace(text)
}

// longestTrick is how long the program of a trick may take.
const longestTrick = 20 * time.Second

// play starts the program of t in a directory of its own, and returns the last
// part of its output.
func (s *stage) play(t Trick, seed string) ([]byte, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	if t.Repo {
		if err := os.CopyFS(s.dir, os.DirFS(seed)); err != nil {
			return nil, err
		}
	}
	for name, content := range t.Files {
		path, mode := filepath.Join(s.dir, name), os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), programs.Write(path, []byte(s.expand(t, content)), mode)); err != nil {
			return nil, err
		}
	}
	if t.Before != "" {
		if out, err := s.start(t, []string{"sh", "-ec", t.Before}, ""); err != nil {
			return out, fmt.Errorf("preparing: %w", err)
		}
	}
	return s.start(t, t.Argv, t.Stdin)
}

func (s *stage) start(t Trick, argv []string, stdin string) ([]byte, error) {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = s.expand(t, a)
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, fmt.Errorf("%s is not there: %w", words[0], err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), longestTrick)
	defer cancel()
	c := exec.CommandContext(ctx, path, words[1:]...)
	c.Args[0] = words[0]
	c.Dir, c.Env = s.dir, append(gitEnv(), "HOME="+s.dir, "GIT_TEMPLATE_DIR=", "PWD="+s.dir, "TMPDIR="+s.temporary())
	for _, e := range t.Env {
		c.Env = append(c.Env, s.expand(t, e))
	}
	c.Stdin = strings.NewReader(s.expand(t, stdin))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return unix.Kill(-c.Process.Pid, unix.SIGKILL) }
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	return out[max(0, len(out)-4<<10):], err
}

// seedRepository makes a repository for tricks to copy.
func seedRepository(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	env := append(gitEnv(), "GIT_TEMPLATE_DIR=", "HOME="+dir)
	for _, line := range []string{"git init -q -b main .", "echo one >tracked; echo two >other", "git add . && git commit -q -m first",
		"echo more >>tracked && git commit -q -am second && echo yet >>tracked"} {
		if out, err := tool(dir, env, "sh", "-ec", line); err != nil {
			return fmt.Errorf("%s: %w", lastLine(out), err)
		}
	}
	return nil
}

// loader returns the dynamic loader of the system's C library, or "".
func loader() string {
	for _, pattern := range []string{"/lib*/ld-linux*.so.*", "/lib/ld-musl-*.so.1"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

// temporary returns a directory for temporary files. It is not the trick's own:
// Go ignores a module in the root of all temporary files.
func (s *stage) temporary() string {
	dir := filepath.Join(s.dir, ".tmp")
	_ = os.Mkdir(dir, 0o755) // a program that needs it will report an error
	return dir
}
