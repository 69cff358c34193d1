//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func environmentActions() map[string]Action {
	return map[string]Action{
		"variables":      variables,
		"variable-given": variableGiven,
		"run-tools":      runTools,
		"exec-odd":       execOdd,
		"call-helpers":   callHelpers,
	}
}

// variables reads each variable of the argument "names", and prints everything
// that may show the environment of any process.
func variables(p *Probe) {
	for name := range strings.SplitSeq(p.Arg("names"), "\n") {
		p.Read("variable "+name, func() ([]byte, error) {
			v, ok := os.LookupEnv(name)
			if !ok {
				return nil, unix.ENOENT
			}
			return []byte(v), nil
		})
	}
	p.Note("environment", []byte(strings.Join(os.Environ(), "\n")))
	room := 512 << 10 // the caller keeps the first MiB of all output
	for _, kind := range []string{"environ", "cmdline", "auxv"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + kind)
		for _, path := range append([]string{"/proc/self/" + kind}, paths...) {
			b, err := os.ReadFile(path)
			if err != nil || len(b) > room {
				continue
			}
			room -= len(b)
			p.Note(path, b)
		}
	}
}

// variableGiven is the control: what was granted must arrive unchanged.
func variableGiven(p *Probe) {
	p.Try("variable "+p.Arg("name"), func() error {
		if got := os.Getenv(p.Arg("name")); got != p.Arg("value") {
			return fmt.Errorf("%q, want %q", got, p.Arg("value"))
		}
		return nil
	})
}

// runTools starts each line of the argument "tools" with sh. Programs of the
// system obey variables that a static prober ignores.
func runTools(p *Probe) {
	env := os.Environ()
	if p.Arg("env") != "" {
		env = append(env, strings.Split(p.Arg("env"), "\n")...)
	}
	dir := p.Arg("W")
	if p.Arg("dir") != "" {
		dir = p.Arg("dir")
	}
	for line := range strings.SplitSeq(p.Arg("tools"), "\n") {
		p.Try("run "+line, func() error {
			out, err := tool(dir, env, "sh", "-c", line)
			p.Note("output of "+line, out)
			return ranAtAll(err)
		})
	}
}

// tool runs a program and returns the last part of its output.
func tool(dir string, env []string, argv ...string) ([]byte, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, unix.ENOENT
	}
	c := exec.Command(path, argv[1:]...)
	c.Dir, c.Env = dir, env
	out, err := c.CombinedOutput()
	return out[max(0, len(out)-8<<10):], err
}

// ranAtAll returns nil for a program that started and exited, with any status:
// for rows in which starting it is harmless and its effects are not.
func ranAtAll(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return nil
	}
	return err
}

// refusalErrno turns the failure of a program into the errno whose text it printed,
// because a status tells nothing.
func refusalErrno(out []byte, err error) error {
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) || !exit.Exited() {
		return err
	}
	for _, errno := range []syscall.Errno{unix.EACCES, unix.EPERM, unix.EROFS, unix.EBUSY, unix.EXDEV, unix.ENOENT} {
		if strings.Contains(strings.ToLower(string(out)), errno.Error()) {
			return fmt.Errorf("%s: %w", lastLine(out), errno)
		}
	}
	return fmt.Errorf("%s: %w", lastLine(out), err)
}

func lastLine(b []byte) string {
	s := strings.TrimSpace(string(b))
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// execOdd replaces itself with the rest of the command line, after "--", in an
// environment that no library would build: the argument "secret" under names that
// appear twice, are invalid, or are not text, and as many bytes as the kernel
// accepts.
func execOdd(p *Probe) {
	at := slices.Index(os.Args, "--")
	if at < 0 {
		os.Exit(125)
	}
	secret := p.Arg("secret")
	env := append(os.Environ(),
		"DUPLICATE_TOKEN="+secret, "DUPLICATE_TOKEN="+secret,
		"LANG=C", "PATH=/nonexistent", "HOME=/nonexistent", "A\nB_TOKEN="+secret, "X=$(touch "+p.In("O", "fired")+")",
		"Y=`touch "+p.In("O", "fired")+"`", "\xff\xfe_TOKEN="+secret, "RAW_TOKEN=\xff"+secret, "=x"+secret, secret, "",
		"BASH_FUNC_true%%=() { echo "+secret+"; }", " SPACE_TOKEN="+secret)
	env = append(env, os.Environ()...)
	for i := range 16 {
		env = append(env, "BIG_"+itoa(i)+"="+strings.Repeat("x", 110_000))
	}
	path, err := exec.LookPath(os.Args[at+1])
	if err == nil {
		err = unix.Exec(path, os.Args[at+1:], env)
	}
	fmt.Fprintln(os.Stderr, "exec:", err)
	os.Exit(124)
}

// callHelpers runs programs that hand out credentials.
func callHelpers(p *Probe) {
	for name := range strings.SplitSeq(p.Arg("names"), "\n") {
		p.Try("call "+name, func() error {
			out, err := tool(p.Arg("W"), os.Environ(), name, "get")
			p.Note("output of "+name, out)
			return ranAtAll(err)
		})
	}
}
