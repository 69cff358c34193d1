package agent

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// Find returns the installations of an agent on this machine: first the one that
// a user with that environment starts by its name, then those that Install made
// below dir, newest first. The user's program is started to query its version,
// with an empty home, hardly any environment, and without network if this user
// may create namespaces. If it prints no version, Version is "".
func Find(ctx context.Context, d Driver, env []string, dir string) ([]Installed, error) {
	var all []Installed
	if path := programs.Find(d.Command, programs.Path(env)); path != "" {
		i := Installed{Agent: d.Name, Program: path}
		var err error
		if i.SHA256, err = sumOf(path); err != nil {
			return nil, err
		}
		if i.Version, err = d.askVersion(ctx, path, env); err != nil && ctx.Err() != nil {
			return nil, err
		}
		if s, err := d.At(i.Version); err == nil && s.Node != "" && !isNative(path) {
			i.Node, _ = nodeHere(ctx, programs.Path(env), s.Node, dir) // Launch refuses ""
		}
		all = append(all, i)
	}
	ours, err := d.readInstalls(ctx, env, dir)
	return append(all, ours...), err
}

// isNative reports whether path is a native program (ELF, elf(5)), which needs no
// interpreter.
func isNative(path string) bool {
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

// askVersion runs a program of the user with --version.
func (d Driver) askVersion(ctx context.Context, path string, env []string) (string, error) {
	var optOuts []string
	for k, v := range d.base.Env {
		if !strings.Contains(v, "{") {
			optOuts = append(optOuts, k+"="+v)
		}
	}
	return programs.Version(ctx, path, programs.Path(env), optOuts)
}
