//go:build linux

package inside

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func consentActions() map[string]Action {
	all := map[string]Action{
		"pushes":         pushes,
		"answers-itself": answersItself,
		"swaps-argument": swapsArgument,
		"asks-for-more":  asksForMore,
	}
	maps.Copy(all, consentEnds())
	return all
}

// pushes plays the spellings of the row, without a rehearsal: the repositories that
// may be written are the ones that must not be pushed to.
func pushes(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	all, err := spellings(p)
	if err != nil {
		p.Control("read the spellings", func() error { return err })
		return
	}
	type outcome struct {
		worked bool
		out    []byte
		err    error
	}
	outcomes := make([]outcome, len(all))
	room := make(chan struct{}, 3)
	var group sync.WaitGroup
	for i, t := range all {
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			at := stage{dir: p.In("W", "pushes", t.Name), base: p.Arg("base")}
			o := &outcomes[i]
			o.out, o.err = at.play(t, seed)
			o.worked = pathExists(at.expand(t, t.target()))
		})
	}
	group.Wait()
	for i, t := range all {
		o := outcomes[i]
		if o.worked {
			p.report(t.Name, false, string(o.out), nil)
			continue
		}
		p.report(t.Name, false, string(o.out), refusalErrno(o.out, errors.Join(o.err, unix.EACCES)))
	}
}

// answersItself does what only a human should: it looks for the socket over which
// answers come, draws questions and answers on its terminal, types on it, and then
// pushes.
func answersItself(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	stop := make(chan struct{})
	var group sync.WaitGroup
	var answered atomic.Pointer[string] // which of the launcher's own sockets answered
	group.Go(func() { answerEverything(p, stop, &answered) })
	t := pushing("answered", "git push")
	at := stage{dir: p.In("W", "pushes", t.Name), base: p.Arg("base")}
	out, err := at.play(t, seed)
	close(stop)
	group.Wait()
	p.Try("be answered by the launcher", func() error {
		if path := answered.Load(); path != nil {
			p.Note("answered", []byte(*path))
			return nil
		}
		return unix.ENOENT
	})
	if pathExists(at.expand(t, t.target())) {
		p.report("push", false, string(out), nil)
		return
	}
	p.report("push", false, string(out), refusalErrno(out, errors.Join(err, unix.EACCES)))
}

// answerEverything tries until stop is closed.
func answerEverything(p *Probe, stop chan struct{}, answered *atomic.Pointer[string]) {
	own := p.In("H", ".local", "state") + "/"
	orders := []string{`{"Do":"approvals"}`, `{"Do":"approvals.answer","Signed":{"answer":{"allow":true,"scope":"session"}}}`, "allow", "y"}
	for {
		for _, path := range sockets(p) {
			for _, o := range orders {
				if tellSocket(path, o, strings.Contains(path, own)) {
					answered.Store(&path)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "\x1b[2J\x1b[Hholdfast approve: git push   [a]llow once  [s]ession  [d]eny\r\n> a\r\n")
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
			for _, key := range "a\nsy\n" {
				_, _ = Raw(unix.SYS_IOCTL, tty.Fd(), unix.TIOCSTI, Pointer(&key))
			}
			tty.Close()
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// sockets returns those of the launcher that have a name in here: at the known
// locations, and in the kernel's list. Without a boundary that list has the
// sockets of the whole machine, and the others must not be written to.
func sockets(p *Probe) []string {
	var out []string
	home := p.In("H") + "/"
	for _, pattern := range []string{
		home + ".local/state/*/sessions/*/control", home + ".local/state/*/*/*.sock", "/run/*holdfast*/*", "/tmp/*holdfast*",
		"/proc/[0-9]*/root" + home + ".local/state/*/sessions/*/control",
	} {
		found, _ := filepath.Glob(pattern)
		out = append(out, found...)
	}
	if text, err := os.ReadFile("/proc/net/unix"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 8 && (strings.HasPrefix(f[7], home) || strings.HasPrefix(f[7], "@holdfast")) {
				out = append(out, f[7])
			}
		}
	}
	return slices.Compact(out)
}

// tellSocket writes a line to a socket, by its name or through an open
// descriptor, and if wait is set, reports whether an answer came.
func tellSocket(path, line string, wait bool) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if len(path) > 100 || unix.Connect(fd, &unix.SockaddrUnix{Name: path}) != nil {
		return false
	}
	_, _ = unix.Write(fd, []byte(line+"\n"))
	if !wait {
		return false
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 500)
	n, _ := unix.Read(fd, make([]byte, 64))
	return n > 0
}

// swapsArgument executes git with arguments that another process changes during
// the call: "status" is inspected, but the kernel may read the push.
func swapsArgument(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	t := pushing("swapped", "true")
	at := stage{dir: p.In("W", "pushes", t.Name), base: p.Arg("base")}
	if out, err := at.play(t, seed); err != nil {
		p.Control("prepare", func() error { return fmt.Errorf("%s: %w", lastLine(out), err) })
		return
	}
	target := at.expand(t, t.target())
	honest := medianTime(func() { _, _ = tool(at.dir, gitEnv(), "git", "status") })
	count, err := raceArguments(at.dir, func(count int, begun time.Time) bool {
		return p.goesOn(count, begun, 8*time.Second) && !pathExists(target)
	})
	p.raced("push for status", count, honest, func() error {
		if err == nil && !pathExists(target) {
			return unix.EACCES
		}
		return err
	})
}

// asksForMore pushes what will be granted, and then something similar that was
// not.
func asksForMore(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	t := pushing("granted", "for try in 1 2 3; do git push {Y}/r.git HEAD:refs/heads/{N}; done")
	at := stage{dir: p.In("W", "pushes", t.Name), base: p.Arg("base")}
	out, err := at.play(t, seed)
	p.Control("push what is granted", func() error {
		if !pathExists(at.expand(t, t.target())) {
			return fmt.Errorf("%s: %w", lastLine(out), errors.Join(err, errSilent))
		}
		return nil
	})
	for name, line := range map[string]string{
		"by-force":        "git push --force {Y}/r.git HEAD:refs/heads/more-force",
		"forced-refspec":  "git push {Y}/r.git +HEAD:refs/heads/more-plus",
		"another-branch":  "git push {Y}/r.git HEAD:refs/heads/more-branch",
		"another-remote":  "git push {Y}/q.git HEAD:refs/heads/granted",
		"one-more":        "git push {Y}/r.git HEAD:refs/heads/granted HEAD:refs/heads/more-one",
		"another-place":   "cd sub 2>/dev/null || { mkdir sub; cd sub; }; git push ../../r2/../../pushed/r.git HEAD:refs/heads/more-place",
		"by-variables":    "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=url.{Y}/q.git.insteadOf GIT_CONFIG_VALUE_0={Y}/r.git git push {Y}/r.git HEAD:refs/heads/granted",
		"by-another-home": "mkdir -p h; git config --file h/.gitconfig url.{Y}/q.git.insteadOf {Y}/r.git; HOME=$PWD/h git push {Y}/r.git HEAD:refs/heads/granted",
		"another-program": "cp $(command -v git) ./git2; ./git2 push {Y}/r.git HEAD:refs/heads/more-program",
	} {
		c := stage{dir: at.dir, base: at.base}
		out, err := c.start(t, []string{"sh", "-c", line}, "")
		if err != nil || bytesDenied(out) {
			p.report(name, false, string(out), refusalErrno(out, errors.Join(err, unix.EACCES)))
			continue
		}
		p.report(name, false, string(out), nil)
	}
}

func bytesDenied(out []byte) bool { return strings.Contains(strings.ToLower(string(out)), "denied") }

// pushing returns a command that pushes to a repository outside; the branch has
// the name of the trick.
func pushing(name, line string) Trick {
	return Trick{Name: name, Argv: []string{"bash", "-c", line}, Repo: true, Target: "{Y}/r.git/refs/heads/{N}",
		Before: "[ -d {Y}/r.git ] || { git init -q --bare {Y}/{N}.git && mv -nT {Y}/{N}.git {Y}/r.git; } 2>/dev/null || :; " +
			"git config remote.origin.url {Y}/r.git; git config push.default current; git checkout -q -b {N}"}
}
