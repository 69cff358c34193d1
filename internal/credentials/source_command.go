package credentials

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// commandSource is a program of the host that prints a secret.
type commandSource struct {
	argv     []string
	sign     string
	env      []string
	writable []string
}

func newCommandSource(c policy.Credential, config Config, variables []string) (source, error) {
	if len(c.Source.Argv) == 0 || c.Source.Argv[0] == "" {
		return nil, errors.New("command needs a program")
	}
	if strings.Contains(c.Source.Argv[0], "/") && !filepath.IsAbs(c.Source.Argv[0]) {
		return nil, errors.New("command needs a program in PATH or an absolute path")
	}
	s := &commandSource{argv: slices.Clone(c.Source.Argv), sign: c.Sign, writable: config.Writable}
	for _, kv := range config.Environ { // a source must not get the secret of another one
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(variables, name) {
			s.env = append(s.env, kv)
		}
	}
	return s, nil
}

// Bounds of a command.
const (
	outputMost = 64 << 10
	pipeTime   = time.Second // for processes that a command left behind to close its output
)

// fetch runs the command in a process group of its own, in /, without a shell,
// a terminal or input. What it prints on standard error is not passed on: a
// program that fails may well print the secret there.
func (s *commandSource) fetch(ctx context.Context) (*result, error) {
	program, err := s.find()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &bounded{most: outputMost, full: cancel}
	stderr := &bounded{most: 4 << 10}
	defer out.wipe()
	defer stderr.wipe()
	cmd := exec.CommandContext(ctx, program)
	cmd.Args, cmd.Env, cmd.Dir = s.argv, s.environ(), "/"
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, stderr, pipeTime
	end := isolate(cmd)
	err = cmd.Run()
	end()
	name := filepath.Base(s.argv[0])
	hint := "see what it says: " + name + " …"
	switch {
	case out.over:
		return nil, &fetchError{text: fmt.Sprintf("%s printed more than %d KiB", name, outputMost>>10), hint: hint}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &fetchError{text: fmt.Sprintf("%s did not end within %s", name, fetchTime), hint: hint}
	case ctx.Err() != nil:
		return nil, &fetchError{text: name + " was stopped", cause: ctx.Err()}
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, &fetchError{text: name + " ended, but something that it started kept its output open", hint: hint}
	case err != nil:
		return nil, &fetchError{text: name + " failed" + status(err) + topics(stderr.data.Bytes()), hint: hint}
	}
	return resultOf(bytes.Clone(out.data.Bytes()), s.sign)
}

// find returns the program, when neither it nor a file among its arguments can be
// changed from inside.
func (s *commandSource) find() (string, error) {
	for _, arg := range s.argv[1:] { // a script, or a file of settings
		_, path, ok := strings.Cut(arg, "=")
		if !ok {
			path = arg
		}
		var c *changeable
		if err := checkPath(path, s.writable); filepath.IsAbs(path) && errors.As(err, &c) {
			return "", err
		}
	}
	return s.program(s.argv[0], 0)
}

// status says how a command ended; "" when it did not begin.
func status(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return " with " + exit.String()
	}
	return ": it could not be started"
}

// known are the words that say why a program could not give a secret. Nothing
// else is taken from its standard error: masking of the rest is never certain.
var known = []string{
	"not logged in", "log in", "login", "expired", "unauthorized", "authentication", "permission denied", "access denied", "forbidden",
	"not found", "no such file", "no such host", "connection refused", "timed out", "timeout", "locked", "cancelled", "usage", "unknown", "network",
}

func topics(stderr []byte) string {
	first, _, _ := bytes.Cut(bytes.TrimSpace(stderr), []byte("\n"))
	text := strings.ToLower(string(first))
	var found []string
	for _, word := range known {
		if strings.Contains(text, word) {
			found = append(found, word)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "; it mentions: " + strings.Join(found, ", ")
}

// bounded keeps what is written up to a number of bytes; then it calls full.
type bounded struct {
	most int
	full func() // nil to drop the rest silently
	data bytes.Buffer
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	room := w.most - w.data.Len()
	if len(p) <= room {
		return w.data.Write(p)
	}
	w.data.Write(p[:room])
	w.over = true
	if w.full != nil {
		w.full()
	}
	return len(p), nil // an error would leave the writer at the other end blocked
}

func (w *bounded) wipe() { clear(w.data.Bytes()[:w.data.Len()]) }
