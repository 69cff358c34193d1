package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// Find returns the installations of an agent on this machine: first the one that
// a user with that environment starts by its name, then those that Install made
// below dir, newest first. The user's program is started to query its version,
// with an empty home, hardly any environment, and without network if this user
// may create namespaces. If it says no version, Version is "" and Silent the reason.
func Find(ctx context.Context, d Driver, env []string, dir string) ([]Installed, error) {
	var all []Installed
	if path := programs.Find(d.Command, programs.Path(env)); path != "" {
		i := Installed{Agent: d.Name, Program: path}
		if i.Version, i.Silent = d.askVersion(ctx, path, env); ctx.Err() != nil {
			return nil, i.Silent
		}
		if s, err := d.At(i.Version); err == nil {
			i.resolve(s)
			if s.Node != "" && !IsNative(i.Program) {
				i.Node, _ = nodeHere(ctx, programs.Path(env), s.Node, dir) // Launch refuses ""
			}
		}
		var err error
		if i.SHA256, err = sumOf(i.Program); err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	ours, err := d.readInstalls(ctx, env, dir)
	return append(all, ours...), err
}

// resolve replaces the program that a user starts by the one that it leads to, where a
// package manager installed it: the command's link names claude.exe or codex.js, by
// which Holdfast does not know the agent. The program for this machine lies in a
// package of its own, below the agent's package or beside it.
func (i *Installed) resolve(s Spec) {
	const modules = "/node_modules/"
	real, err := filepath.EvalSymlinks(i.Program)
	top := strings.LastIndex(real, modules)
	if err != nil || top < 0 {
		return
	}
	for dir := filepath.Dir(real); len(dir) >= top && dir != "/"; dir = filepath.Dir(dir) {
		program, err := locate(dir, s.Programs)
		if err != nil {
			continue
		}
		if real, err = filepath.EvalSymlinks(filepath.Join(dir, program)); err != nil {
			return
		}
		i.Program, i.Dir = real, real[:strings.LastIndex(real, modules)]
		if s.Node != "" { // its dependencies may be links to anywhere in the outermost node_modules
			i.Dir = real[:strings.Index(real, modules)]
		}
		return
	}
}

// IsNative reports whether path is a native program (ELF, elf(5)), which needs no
// interpreter.
func IsNative(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && string(head[:]) == "\x7fELF"
}

// readInstalls reads the records of installs; it starts only node, to query its version.
func (d Driver) readInstalls(ctx context.Context, env []string, dir string) ([]Installed, error) {
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
			i.Node, _ = nodeHere(ctx, programs.Path(env), s.Node, dir) // Launch refuses ""
		}
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b Installed) int { return Compare(b.Version, a.Version) })
	return all, nil
}

// versionLimit bounds how long a program may take to say its version: one of 400 MB
// that the machine has not read yet takes long where much else runs.
const versionLimit = time.Minute

// askVersion runs a program of the user with --version.
func (d Driver) askVersion(ctx context.Context, path string, env []string) (string, error) {
	var optOuts []string
	for k, v := range d.base.Env {
		if !strings.Contains(v, "{") {
			optOuts = append(optOuts, k+"="+v)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("no answer within %s", versionLimit))
	defer cancel()
	return programs.Version(ctx, path, programs.Path(env), optOuts)
}
