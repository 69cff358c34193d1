//go:build linux

package native

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInterpreter runs a program that uses every judge, jumps within and between
// the sections, and a reference.
func TestInterpreter(t *testing.T) {
	p := newProgram()
	bad, good, end := &label{}, &label{}, &label{}
	say := func(s string) {
		p.call("say", unix.SYS_WRITE, []any{1, p.str(s), len(s)}, want(int64(len(s))))
	}
	closed := []any{1 << 20} // a descriptor that is not open
	fd := p.slot()
	say("start ")
	p.call("ignored", unix.SYS_CLOSE, closed, ignored())
	p.call("refused", unix.SYS_CLOSE, closed, refused())
	p.call("or", unix.SYS_CLOSE, closed, or(-int64(unix.EBADF)))
	p.call("into", unix.SYS_DUP, []any{1}, into(fd))
	p.call("a reference", unix.SYS_WRITE, []any{fd, p.str("ref "), 4}, want(4))
	p.call("jumps on success", unix.SYS_CLOSE, []any{fd}, goIfZero(good))
	p.placeLabel(bad)
	p.exit(9)
	p.placeLabel(good)
	p.test("another value goes on", fd, 1<<40, bad)
	p.call("jumps on this error", unix.SYS_CLOSE, closed, goOn(-int64(unix.EBADF), end))
	p.exit(8)
	p.placeLabel(end)
	p.leave(func() {
		p.call("say", unix.SYS_WRITE, []any{1, p.str("tail"), 4}, want(4))
		p.exit(7)
	})
	out, status := runImage(t, p)
	if out != "start ref tail" || status != 7 {
		t.Errorf("printed %q and ended with %d", out, status)
	}
}

// TestInterpreterFails shows what a step that may not fail says.
func TestInterpreterFails(t *testing.T) {
	for name, step := range map[string]func(*program){
		"an error":           func(p *program) { p.call("step", unix.SYS_CLOSE, []any{1 << 20}) },
		"another result":     func(p *program) { p.call("step", unix.SYS_GETPID, nil, want(-1)) },
		"no refusal":         func(p *program) { p.call("step", unix.SYS_GETPID, nil, refused()) },
		"another error":      func(p *program) { p.call("step", unix.SYS_CLOSE, []any{1 << 20}, or(-int64(unix.EPERM))) },
		"an error at a jump": func(p *program) { p.call("step", unix.SYS_CLOSE, []any{1 << 20}, goIfZero(&label{})) },
	} {
		p := newProgram()
		step(p)
		p.exit(0)
		if _, status := runImage(t, p); status != 125 {
			t.Errorf("%s: ended with %d", name, status)
		}
	}
}

// TestInterpreterIsReviewed pins the machine code: a change to it, or an assembler that
// encodes it differently, requires a new review.
func TestInterpreterIsReviewed(t *testing.T) {
	reviewed := map[string]string{
		"amd64": "9a3744fb7c90e7595420af8d1a480fcfe09771f3f1f1e66e58989cddd4f925e8",
		"arm64": "a81a46f84645fac63c14b727d88b28c5104dee97c69bbcd17417e61313c2530a",
	}
	sum := sha256.Sum256(interpText())
	if got := hex.EncodeToString(sum[:]); got != reviewed[runtime.GOARCH] {
		t.Errorf("the interpreter's machine code (%d bytes) is %s, not what was reviewed", len(interpText()), got)
	}
}

func runImage(t *testing.T, p *program) (output string, status int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	proc, err := p.start([]*os.File{null, w, null, null}, nil)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	state, err := proc.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(out), state.ExitCode()
}
