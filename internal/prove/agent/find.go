package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// askLimit bounds how long a program may take to say its version, and
// answerLimit how much it may say, in bytes.
const (
	askLimit    = 15 * time.Second
	answerLimit = 64 << 10
)

// Find returns what of an agent is on this machine: what Install made below
// dir, newest first, and before these what a user with that environment
// starts by its name. That one is asked for its version, with an empty home,
// hardly any environment, and no network where this user may make namespaces.
// What cannot say it has the version "".
func Find(ctx context.Context, d Driver, env []string, dir string) ([]Installed, error) {
	var all []Installed
	if path := lookPath(d.Command, pathOf(env)); path != "" {
		i := Installed{Agent: d.Name, Program: path}
		var err error
		if i.SHA256, err = sumOf(path); err != nil {
			return nil, err
		}
		if i.Version, err = d.ask(ctx, path, env); err != nil && ctx.Err() != nil {
			return nil, err
		}
		if s, err := d.At(i.Version); err == nil && s.Node != "" && !native(path) {
			i.Node, _ = nodeHere(ctx, pathOf(env), s.Node, dir) // "" is what Launch refuses
		}
		all = append(all, i)
	}
	ours, err := d.ours(ctx, env, dir)
	return append(all, ours...), err
}

// native says that path is a program of the machine's own (ELF, elf(5)), and
// needs nothing that runs it.
func native(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "\x7fELF"
}

// ours reads the records of installs; it starts nothing but node, to ask for
// its version.
func (d Driver) ours(ctx context.Context, env []string, dir string) ([]Installed, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Installed
	for _, e := range entries {
		version, ok := strings.CutPrefix(e.Name(), d.Name+"@")
		if !ok {
			continue
		}
		at := filepath.Join(dir, e.Name())
		rec, err := readRecord(at)
		if err != nil || rec.Version != version || rec.Package != d.Package {
			continue // not finished, or not ours
		}
		i := rec.installed(at)
		if s, err := d.At(version); err == nil && s.Node != "" {
			i.Node, _ = nodeHere(ctx, pathOf(env), s.Node, dir) // "" is what Launch refuses
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Installed) int { return Compare(b.Version, a.Version) })
	return all, nil
}

// ask runs a program of the user's with --version.
func (d Driver) ask(ctx context.Context, path string, env []string) (string, error) {
	home, err := os.MkdirTemp("", "holdfast-agent-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	least := []string{"HOME=" + home, "PATH=" + pathOf(env), "LANG=C.UTF-8", "TERM=dumb"}
	for k, v := range d.base.Env {
		if !strings.Contains(v, "{") { // the opt-outs
			least = append(least, k+"="+v)
		}
	}
	var said limited
	run := func(alone bool) error {
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = home, least, &said, time.Second
		isolate(cmd, alone)
		return cmd.Run()
	}
	err = run(true)
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && said.begin.Len() == 0 && ctx.Err() == nil {
		err = run(false) // it was not started: namespaces are not to be had here
	}
	if v := versionIn(said.begin.String()); v != "" {
		return v, nil
	}
	return "", fmt.Errorf("asking %s for its version: %w", path, err)
}

// limited keeps the beginning of what is written to it. The buffer is no
// embedded one: its ReadFrom would be used in place of Write.
type limited struct{ begin bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := answerLimit - l.begin.Len(); room > 0 {
		l.begin.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// versionIn returns the first version in a text, such as "codex-cli 1.2.3".
func versionIn(s string) string {
	for f := range strings.FieldsSeq(s) {
		f = strings.TrimRight(strings.TrimPrefix(f, "v"), ".,")
		if _, err := parseVersion(f); err == nil {
			return f
		}
	}
	return ""
}

// pathOf returns the last PATH of an environment; "" for none.
func pathOf(env []string) string {
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}

// lookPath finds a program in the absolute directories of a PATH; others would
// depend on where one stands.
func lookPath(name, path string) string {
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
