// Package programs looks at programs of the user's machine: where one is, and which
// version it says it is. A program is executed for that, with as little as it needs.
// What a test or a row writes to execute it is written here, too.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/paths"
)

// answerLimit bounds what is read of a program's version, in bytes.
const answerLimit = 64 << 10

// Path returns the last PATH of an environment; "" for none.
func Path(env []string) string {
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}

// Find finds a program in the absolute directories of a PATH; others would depend on
// the working directory. It returns "" if there is none.
func Find(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		at := filepath.Join(dir, name)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at
		}
	}
	return ""
}

// Outside returns path, a PATH, without its relative directories and those that lie in
// dir, where an agent may write: what is found there is executed.
func Outside(dir, path string) string {
	var dirs []string
	for _, one := range filepath.SplitList(path) {
		real, err := filepath.EvalSymlinks(one)
		if err == nil && filepath.IsAbs(one) && !paths.Within(dir, real) {
			dirs = append(dirs, one)
		}
	}
	return strings.Join(dirs, ":")
}

// Version runs program with --version and returns the first version that it prints,
// such as 1.2.3 of "codex-cli 1.2.3". It runs with an empty home, with the variables
// env in addition to the usual ones, and without network if this user may make
// namespaces. The caller's ctx limits how long it may take; that it ended is an error
// of its own, which says nothing about the program.
func Version(ctx context.Context, program, path string, env []string) (string, error) {
	home, err := os.MkdirTemp("", "holdfast-agent-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	var printed beginning
	run := func(alone bool) error {
		cmd := exec.CommandContext(ctx, program, "--version")
		cmd.Env = append([]string{"HOME=" + home, "PATH=" + path, "LANG=C.UTF-8", "TERM=dumb"}, env...)
		cmd.Dir, cmd.Stdout, cmd.WaitDelay = home, &printed, time.Second
		Isolate(cmd, alone)
		return cmd.Run()
	}
	err = run(true)
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && printed.text.Len() == 0 && ctx.Err() == nil {
		err = run(false) // it was not started: namespaces are not to be had here
	}
	for word := range strings.FieldsSeq(printed.text.String()) {
		if word = strings.TrimRight(strings.TrimPrefix(word, "v"), ".,"); len(word) <= 64 && version().MatchString(word) {
			return word, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil:
		err = errors.New("it printed none")
	}
	return "", fmt.Errorf("asking %s for its version: %w", program, err)
}

// version matches what npm calls a version: three numbers, and for a prerelease a tag.
var version = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)
})

// beginning keeps the beginning of what is written to it. The buffer is not embedded:
// its ReadFrom would be used instead of Write.
type beginning struct{ text bytes.Buffer }

func (l *beginning) Write(b []byte) (int, error) {
	if room := answerLimit - l.text.Len(); room > 0 {
		l.text.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
