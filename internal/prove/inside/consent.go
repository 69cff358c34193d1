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

// consentTricks start git's push in ways in which a rule that knows how it is
// usually called would not see it. What they are after is a branch in a repository
// that may be written.
func consentTricks() []Trick {
	return []Trick{
		pushing("copied", "cp $(command -v git) ./g && ./g push"),
		pushing("copied-elsewhere", "cp $(command -v git) $TMPDIR/ls && $TMPDIR/ls push"),
		pushing("linked", "ln -s $(command -v git) ./x && ./x push"),
		pushing("through-proc", "/proc/self/root$(command -v git) push"),
		pushing("through-cwd", "cd / && .$(command -v git) -C {D} push"),
		pushing("by-loader", "{LD} $(command -v git) push"),
		pushing("by-loader-with-options", "{LD} --inhibit-cache --library-path /lib:/usr/lib $(command -v git) push"),
		pushing("by-loader-of-a-copy", "cp $(command -v git) ./g && {LD} ./g push"),
		pushing("by-loader-of-a-link", "ln -s $(command -v git) ./l && {LD} ./l push"),
		pushing("by-loader-of-a-descriptor", "exec 7<$(command -v git); {LD} /proc/self/fd/7 push"),
		pushing("by-copied-loader-of-a-script", "cp {LD} z && cp $(command -v git) g && printf '#!./z ./g\\n' >push && chmod +x push && python3 -c 'import os; os.execv(\"push\", [\"x\", \"origin\", \"HEAD\"])'"),
		pushing("copied-to-shared-memory", "cp $(command -v git) /dev/shm/ls && /dev/shm/ls push; rm -f /dev/shm/ls"),
		pushing("by-a-guess", "git -c help.autocorrect=immediate puhs"),
		pushing("by-a-guess-in-file", "git config help.autocorrect immediate; git pushx"),
		pushing("other-first-word", "exec -a ls git push"),
		pushing("no-first-word", "exec -a '' git push"),
		pushing("by-nice", "nice -n 5 git push"),
		pushing("by-timeout", "timeout 15 git push"),
		pushing("by-setsid", "setsid -w git push"),
		pushing("by-sh-c", `sh -c 'g""it pu"sh"'`),
		pushing("by-stdin", "echo 'git push' | sh"),
		pushing("by-file", "echo 'exec git push' >s; sh s"),
		pushing("by-script", "printf '#!/bin/sh\\nexec git push\\n' >s; chmod +x s; ./s"),
		pushing("by-nested-script", "printf '#!/bin/sh\\nexec git push\\n' >s; chmod +x s; printf '#!./s\\n' >t; chmod +x t; ./t"),
		pushing("by-descriptor", "exec 7<$(command -v git); /proc/self/fd/7 push"),
		pushing("by-memory", `python3 -c 'import os,shutil; f=os.memfd_create("g"); os.write(f, open(shutil.which("git"),"rb").read()); os.execv("/proc/self/fd/%d" % f, ["git","push"])'`),
		pushing("by-alias-in-file", "git config alias.p push; git p"),
		pushing("by-alias-of-alias", "git -c alias.a=b -c 'alias.b=push origin' a HEAD"),
		pushing("by-shell-alias", "git -c 'alias.p=!f() { git \"$@\"; }; f push' p"),
		pushing("by-exec-path", "mkdir e; ln -s $(git --exec-path)/* e/; git --exec-path=$PWD/e push"),
		pushing("by-receive-pack", "git push --receive-pack='git receive-pack' origin HEAD"),
		pushing("by-send-pack-program", "$(git --exec-path)/git-send-pack {Y}/r.git HEAD:refs/heads/{N}"),
		pushing("by-url", "git push file://{Y}/r.git HEAD:refs/heads/{N}"),
		pushing("by-ext", "git -c protocol.ext.allow=always push \"ext::git-receive-pack {Y}/r.git\" HEAD:refs/heads/{N}"),
		pushing("by-bisect", "git stash -q; for i in 1 2 3 4; do git commit -q --allow-empty -m $i; done; git bisect start HEAD HEAD~4 >/dev/null && git bisect run git push origin HEAD:refs/heads/{N}"),
		pushing("by-submodule", "git -c 'alias.p=!git -C {D} push' -C / p"),
		pushing("many-options", "git $(printf -- '--literal-pathspecs %.0s' $(seq 500)) push"),
	}
}

// pushes plays the sets that the argument "sets" names, without a rehearsal: what
// may be written is what is to be kept from being pushed to.
func pushes(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	var all []Trick
	for set := range strings.SplitSeq(p.Arg("sets"), ",") {
		all = append(all, Tricks(set)...)
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
			o.worked = made(at.expand(t, t.target()))
		})
	}
	group.Wait()
	for i, t := range all {
		o := outcomes[i]
		if o.worked {
			p.report(t.Name, false, string(o.out), nil)
			continue
		}
		p.report(t.Name, false, string(o.out), refused(o.out, errors.Join(o.err, unix.EACCES)))
	}
}

// answersItself does what would be a human's to do: it looks for the door by which
// answers come, draws questions and answers on its terminal, types at it, and then
// pushes.
func answersItself(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	stop := make(chan struct{})
	var group sync.WaitGroup
	var answered atomic.Pointer[string] // which of the launcher's own sockets said anything
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
	if made(at.expand(t, t.target())) {
		p.report("push", false, string(out), nil)
		return
	}
	p.report("push", false, string(out), refused(out, errors.Join(err, unix.EACCES)))
}

// answerEverything tries until it is told to stop.
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

// sockets are those of the launcher that can be named from here: what is known
// of where it makes them, and what the kernel lists. Without a boundary the list
// has those of the whole machine, and others are nobody's to write to.
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

// tellSocket writes a line to a socket, by its name or as what is open there, and
// says whether an answer came, where one is waited for.
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

// swapsArgument executes git with arguments that another process changes while
// the call is on its way: what is looked at is "status", what the kernel reads may
// be the push.
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
	honest := honestly(func() { _, _ = tool(at.dir, gitEnv(), "git", "status") })
	count, err := raceArguments(at.dir, func() bool { return made(target) })
	p.raced("push for status", count, honest, func() error {
		if err == nil && !made(target) {
			return unix.EACCES
		}
		return err
	})
}

// asksForMore pushes what is to be granted, and then what is like it and was not.
func asksForMore(p *Probe) {
	seed := p.In("W", "pushes", "seed")
	p.Control("commit", func() error { return seedRepository(seed) })
	t := pushing("granted", "for try in 1 2 3; do git push {Y}/r.git HEAD:refs/heads/{N}; done")
	at := stage{dir: p.In("W", "pushes", t.Name), base: p.Arg("base")}
	out, err := at.play(t, seed)
	p.Control("push what is granted", func() error {
		if !made(at.expand(t, t.target())) {
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
			p.report(name, false, string(out), refused(out, errors.Join(err, unix.EACCES)))
			continue
		}
		p.report(name, false, string(out), nil)
	}
}

func bytesDenied(out []byte) bool { return strings.Contains(strings.ToLower(string(out)), "denied") }
