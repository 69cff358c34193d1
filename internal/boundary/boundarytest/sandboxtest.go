//go:build linux

// Package boundarytest is the conformance suite of sandbox backends: what a
// backend must do, tried on it by running commands and looking at the host
// afterwards. It knows no backend; the tests of each one call Run.
package boundarytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// Subject is a backend to be tried.
type Subject struct {
	Backend boundary.Backend

	// Collect reads the posture of a running command and all its threads from
	// outside. It is compared with what was attested.
	Collect func(pid int) (boundary.Posture, error)
}

// Run tries everything.
func Run(t *testing.T, s Subject) {
	for _, part := range []struct {
		name string
		try  func(*testing.T, Subject)
	}{
		{"view", testView},
		{"rules", testRules},
		{"layers", testLayers},
		{"protected", testProtected},
		{"review", testReview},
		{"scratch", testScratch},
		{"identity", testIdentity},
		{"descriptors", testDescriptors},
		{"environment", testEnvironment},
		{"limits", testLimits},
		{"terminal", testTerminal},
		{"keys", testKeys},
		{"ends", testEnds},
		{"signals", testSignals},
		{"kill", testKill},
		{"context", testContext},
		{"dial", testDial},
		{"attestation", testAttestation},
		{"refused", testRefused},
		{"posture", testPosture},
	} {
		t.Run(part.name, func(t *testing.T) { part.try(t, s) })
	}
}

// limitOfRun is how long a command of the suite may take, far more than any
// needs.
const limitOfRun = 20 * time.Second

// room is the part of the host that one test works in.
type room struct {
	*testing.T
	subject Subject
	dir     string // everything below
	work    string // workspace
	out     string // beside the workspace: in view only by a rule
	home    string // with a secret; inside, another home is there
	program string // this binary
	plan    policy.Plan
}

// enter makes a room and demands that nothing of it is left at the end.
func enter(t *testing.T, s Subject) *room {
	t.Helper()
	testenv.Need(t, testenv.UserNS, nil)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	testenv.NoLeaks(t, dir)
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &room{T: t, subject: s, dir: dir, program: program,
		work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"), home: filepath.Join(dir, "home")}
	for _, d := range []string{r.work, r.out, r.home} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.file("out/data", "outside\n")
	r.file("home/secret", "secret\n")
	r.plan = policy.Plan{
		Workspace: r.work, Dir: r.work,
		Identity: policy.Identity{UID: os.Getuid(), GID: os.Getgid(), Name: "tester", Home: r.home},
		Paths:    []policy.PathRule{{Path: program, Access: policy.Read}},
		Env:      []policy.Env{{Name: "HOME", Value: r.home}, {Name: "PATH", Value: "/usr/bin:/bin"}, {Name: "ROOM", Value: dir}},
		Limits:   policy.Limits{Memory: 1 << 30, Processes: 512, Files: 512, Disk: 64 << 20},
	}
	return r
}

// file makes a file with its directories and returns its path.
func (r *room) file(name, content string) string {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.Fatal(err)
	}
	return path
}

// rule puts a path into view.
func (r *room) rule(path string, access policy.Access) {
	r.plan.Paths = append(r.plan.Paths, policy.PathRule{Path: path, Access: access})
}

// spec is a command in this room with pipes for streams.
func (r *room) spec(argv ...string) boundary.Spec {
	return boundary.Spec{Plan: r.plan, Argv: argv}
}

// script is the command line that has Inside do the lines.
func (r *room) script(lines ...string) boundary.Spec {
	return r.spec(append([]string{r.program, marker}, lines...)...)
}

// outcome is how a command ended and what it printed.
type outcome struct {
	boundary.Exit
	err            error
	stdout, stderr string
}

// run starts a command and waits for its end.
func (r *room) run(spec boundary.Spec) outcome {
	r.Helper()
	p, err := r.start(spec)
	if err != nil {
		return outcome{err: err}
	}
	return p.wait()
}

// running is a command whose output is being collected.
type running struct {
	boundary.Process
	room *room
	out  *output
	errs *output
}

// start starts a command.
func (r *room) start(spec boundary.Spec) (*running, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limitOfRun)
	defer cancel()
	p, err := r.subject.Backend.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	run := &running{Process: p, room: r, out: newOutput(p.Stdout()), errs: newOutput(p.Stderr())}
	if m := p.Terminal(); m != nil && p.Stdout() == nil {
		run.out = newOutput(m)
	}
	return run, nil
}

// mustStart is start for a command that has to start.
func (r *room) mustStart(spec boundary.Spec) *running {
	r.Helper()
	p, err := r.start(spec)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// wait ends the command's input and waits for its end.
func (p *running) wait() outcome {
	p.room.Helper()
	if in := p.Stdin(); in != nil {
		in.Close()
	}
	return p.ended()
}

func (p *running) ended() outcome {
	p.room.Helper()
	timer := time.AfterFunc(limitOfRun, func() { p.Kill("the test's own limit") })
	defer timer.Stop()
	exit, err := p.Wait()
	o := outcome{Exit: exit, err: err, stdout: p.out.all(), stderr: p.errs.all()}
	if exit.Reason == "the test's own limit" {
		p.room.Fatalf("did not end in %v: printed %q, %q", limitOfRun, o.stdout, o.stderr)
	}
	return o
}

// answers has Inside do the lines and returns what it answered to each.
func (r *room) answers(lines ...string) []string {
	r.Helper()
	return r.lines(r.script(lines...))
}

// lines is answers for a command that script made.
func (r *room) lines(spec boundary.Spec) []string {
	r.Helper()
	o := r.run(spec)
	if o.err != nil || o.Status() != 0 {
		r.Fatalf("status %d, %v: %s%s", o.Status(), o.err, o.stdout, o.stderr)
	}
	var out []string
	for line := range strings.Lines(o.stdout) {
		_, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if text, err := strconv.Unquote(answer); err == nil {
			answer = text
		}
		out = append(out, answer)
	}
	if lines := len(spec.Argv) - 2; len(out) != lines {
		r.Fatalf("%d answers to %d lines: %q", len(out), lines, o.stdout)
	}
	return out
}

// answer is answers for one line.
func (r *room) answer(verb string, args ...string) string {
	r.Helper()
	return r.answers(strings.Join(append([]string{verb}, args...), "\t"))[0]
}

// reads checks the content of a file of the host.
func (r *room) reads(path, want string) {
	r.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		r.Errorf("%s holds %q, %v, want %q", path, b, err, want)
	}
}

// missing checks that nothing is at a path of the host.
func (r *room) missing(path string) {
	r.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		r.Errorf("%s: %v, want nothing there", path, err)
	}
}

// output collects what a command prints, and can be waited on.
type output struct {
	lines chan string
	done  chan struct{}
	text  bytes.Buffer // owned by the reader until done is closed
}

func newOutput(from io.Reader) *output {
	o := &output{lines: make(chan string, 1024), done: make(chan struct{})}
	if file, ok := from.(*os.File); from == nil || ok && file == nil {
		close(o.done)
		return o
	}
	go func() {
		if c, ok := from.(io.Closer); ok {
			defer c.Close()
		}
		defer close(o.done)
		defer close(o.lines)
		buf, line := make([]byte, 4096), ""
		for {
			n, err := from.Read(buf)
			o.text.Write(buf[:n])
			for _, part := range strings.SplitAfter(string(buf[:n]), "\n") {
				if line += part; strings.HasSuffix(line, "\n") {
					select {
					case o.lines <- strings.TrimSpace(line):
					default: // no test waits for that many
					}
					line = ""
				}
			}
			if err != nil { // EOF, or EIO of a terminal whose other side is gone
				return
			}
		}
	}()
	return o
}

func (o *output) all() string {
	<-o.done
	return o.text.String()
}

// expect waits until the command has printed a line.
func (p *running) expect(line string) {
	p.room.Helper()
	timeout := time.After(limitOfRun)
	for {
		select {
		case got, ok := <-p.out.lines:
			if strings.HasSuffix(got, line) {
				return
			}
			if !ok {
				o := p.ended()
				p.room.Fatalf("ended without saying %q: %+v", line, o)
			}
		case <-timeout:
			p.Kill("")
			p.room.Fatalf("did not say %q", line)
		}
	}
}

// hostOwner is who owns a path, as the host sees it.
func (r *room) hostOwner(path string) string {
	r.Helper()
	st, err := os.Lstat(path)
	if err != nil {
		r.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	return strconv.Itoa(int(sys.Uid)) + ":" + strconv.Itoa(int(sys.Gid))
}
