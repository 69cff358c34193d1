//go:build linux

package targets

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// Identity is the exact program that was played.
type Identity struct {
	Name    string
	Version string // as it prints it; "" if it was not asked, or printed none
	Path    string // of its program, links followed
	// SHA256 is that of the program, in hexadecimal digits. For a program in an
	// npm package, it covers the whole package: its files in order, each with its
	// name.
	SHA256 string
	// Flags are the arguments it was called with: {} for the command, {W} for the
	// workspace, {H} for the home, {B} for the directory of the world, and {NAME}
	// and {OWNER} for what differs between runs. Files written for it follow as
	// FILE=CONTENT.
	Flags []string
}

// Identify finds the identity of a target. It fails if there is no program; a
// target that prints no version has none.
func Identify(ctx context.Context, t probe.Target) (Identity, error) {
	id, version, err := describe(t)
	if err == nil {
		id.Version = versionOf(ctx, version)
	}
	return id, err
}

// Same reports whether t is still the program that id describes. If the program
// was replaced meanwhile, the results belong to neither.
func (id Identity) Same(t probe.Target) bool {
	now, _, err := describe(t)
	return err == nil && now.Path == id.Path && now.SHA256 == id.SHA256
}

// describe is Identify without the version, but with the command that prints it.
func describe(t probe.Target) (id Identity, version []string, err error) {
	id = Identity{Name: t.Name()}
	w := &probe.World{B: "{B}", W: "{W}", H: "{H}", O: "{B}/o", R: "{B}/r"}
	switch t := t.(type) {
	case probe.None:
		id.Flags = []string{"{}"}
		return id, nil, nil
	case Holdfast:
		id.Path, version = t.Path, []string{t.Path, "version"}
		line, err := t.line(w, probe.Command{}, []string{"{}"})
		if err != nil {
			return id, nil, err
		}
		id.Flags = line[1:]
	case Template:
		id.Path, version, id.Flags = t.Words[0], t.Version, t.Words[1:]
	case Peer:
		s, err := t.spec()
		if err != nil {
			return id, nil, err
		}
		t.Owner = "{OWNER}"
		line, err := s.call(t, w, probe.Command{}, invocation{"{NAME}", []string{"{}"}})
		if err != nil {
			return id, nil, err
		}
		id.Path, version, id.Flags = t.Path, append([]string{t.Path}, s.version...), line.argv[1:]
		for _, path := range slices.Sorted(maps.Keys(line.files)) {
			id.Flags = append(id.Flags, path+"="+line.files[path])
		}
	default:
		return id, nil, nil
	}
	if id.Path, id.SHA256, err = digest(id.Path); err != nil {
		return id, nil, fmt.Errorf("target %s: %w", t.Name(), err)
	}
	return id, version, nil
}

// versionOf is the first line that a version command prints.
func versionOf(ctx context.Context, argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb"}, engineEnv()...)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return ""
	}
	said, _ := io.ReadAll(io.LimitReader(out, 64<<10))
	cancel() // in case it does not end
	_ = cmd.Wait()
	return firstLine(said)
}

// digest returns the path of a program with links followed, and its SHA-256.
func digest(path string) (real, sum string, err error) {
	if path, err = exec.LookPath(path); err != nil {
		return "", "", err
	}
	if real, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", err
	}
	h := sha256.New()
	if pkg := packageOf(real); pkg != "" {
		err = addPackage(h, pkg)
	} else {
		_, err = addFile(h, real)
	}
	return real, fmt.Sprintf("%x", h.Sum(nil)), err
}

// packageOf is the directory of the npm package that contains a file, or "".
func packageOf(path string) string {
	for dir := filepath.Dir(path); strings.Contains(dir, "/node_modules/"); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "package.json")); err == nil {
			return dir
		}
	}
	return ""
}

func addPackage(h hash.Hash, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%d %s\n", len(rel), rel)
		n, err := addFile(h, path)
		fmt.Fprintf(h, "\n%d\n", n)
		return err
	})
}

func addFile(h hash.Hash, path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return io.Copy(h, f)
}
