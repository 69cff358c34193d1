package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Installed is an agent program on this machine.
type Installed struct {
	Agent   string
	Version string
	Silent  error  // why Version is ""
	Dir     string // of the install, which contains Spec.Programs; "" if npm did not make it
	Program string // absolute
	Node    string // the interpreter of Program; "" if it needs none
	SHA256  string // of Program, in hexadecimal
}

// Request is what to install.
type Request struct {
	Driver  Driver
	Version string // exact; "" for the latest tested one
	Dir     string // the parent of the install directories; see DefaultDir
	Node    string // a node to use if it is new enough; "" to look in PATH. Else one is installed
}

// DefaultDir is where agents are installed for a user with that state directory.
func DefaultDir(state string) string { return filepath.Join(state, "agents") }

// recordName is the file that describes an install. It is written last: a
// directory without it is no install.
const recordName = "holdfast.json"

// record is the content of that file.
type record struct {
	Name      string `json:"name"`
	Package   string `json:"package"`
	Version   string `json:"version"`
	Integrity string `json:"integrity"` // of the package, from the registry, checked by npm
	Program   string `json:"program"`   // below the install
	SHA256    string `json:"sha256"`
}

// Install installs an agent from the npm registry into r.Dir, or returns the
// existing install. It runs no package scripts. npm checks each archive against
// its hash in the registry; an existing install is checked against the recorded
// hash of its program.
//
// Concurrent installs wait for each other. An interrupted one leaves nothing that
// a later call would take for an install.
func Install(ctx context.Context, r Request) (Installed, error) {
	if r.Version == "" {
		r.Version = r.Driver.Latest
	}
	spec, err := r.Driver.At(r.Version)
	if err != nil {
		return Installed{}, err
	}
	if !filepath.IsAbs(r.Dir) {
		return Installed{}, fmt.Errorf("the directory of the installs must be an absolute path, not %q", r.Dir)
	}
	w := wanted{name: r.Driver.Name, pkg: r.Driver.Package, version: r.Version, programs: spec.Programs}
	rec, err := w.install(ctx, r.Dir)
	if err != nil {
		return Installed{}, fmt.Errorf("installing %s %s: %w", r.Driver.Title, r.Version, err)
	}
	i := rec.installed(w.dir(r.Dir))
	if spec.Node != "" {
		if i.Node, err = findNode(ctx, r.Node, spec.Node, r.Dir); err != nil {
			return Installed{}, fmt.Errorf("finding Node.js %s or later: %w", spec.Node, err)
		}
	}
	return i, nil
}

func (r record) installed(dir string) Installed {
	return Installed{
		Agent: r.Name, Version: r.Version, Dir: dir,
		Program: filepath.Join(dir, filepath.FromSlash(r.Program)), SHA256: r.SHA256,
	}
}

// wanted is one package in one version.
type wanted struct {
	name, pkg, version string
	programs           []string
}

func (w wanted) dir(below string) string { return filepath.Join(below, w.name+"@"+w.version) }

// install returns the record of an existing or new install.
func (w wanted) install(ctx context.Context, below string) (record, error) {
	if err := checkPackage(w.pkg); err != nil {
		return record{}, err
	}
	if err := os.MkdirAll(below, 0o755); err != nil {
		return record{}, err
	}
	target := w.dir(below)
	if rec, err := w.readInstalled(target); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	unlock, err := lock(ctx, filepath.Join(below, "."+w.name+"@"+w.version+".lock"))
	if err != nil {
		return record{}, err
	}
	defer unlock()
	if rec, err := w.readInstalled(target); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	w.sweep(below)
	if _, err := os.Lstat(target); err == nil {
		// A person installed it by hand, as the hint says.
		return w.adopt(target)
	}
	temp, err := os.MkdirTemp(below, w.temp())
	if err != nil {
		return record{}, err
	}
	defer os.RemoveAll(temp)
	if err := runNPM(ctx, temp, w.pkg, w.version); err != nil {
		return record{}, &FetchError{Command: npmCommand(target, w.pkg, w.version), Err: err}
	}
	rec, err := w.adopt(temp)
	if err == nil {
		err = os.Rename(temp, target)
	}
	return rec, err
}

func (w wanted) temp() string { return "." + w.name + "@" + w.version + "-" }

// sweep removes what interrupted calls left. The caller holds the lock, so that
// no other process uses it.
func (w wanted) sweep(below string) {
	left, _ := filepath.Glob(filepath.Join(below, w.temp()+"*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir) // a rest takes space, but is never used
	}
}

// adopt checks an install that npm has just made and writes its record.
func (w wanted) adopt(dir string) (record, error) {
	integrity, err := checkLock(dir, w.pkg, w.version)
	if err != nil {
		return record{}, err
	}
	program, err := locate(dir, w.programs)
	if err != nil {
		return record{}, err
	}
	path := filepath.Join(dir, filepath.FromSlash(program))
	sum, err := sumOf(path)
	if err != nil {
		return record{}, err
	}
	if err := share(dir); err != nil {
		return record{}, fmt.Errorf("making it readable to other users: %w", err)
	}
	rec := record{Name: w.name, Package: w.pkg, Version: w.version, Integrity: integrity, Program: program, SHA256: sum}
	b, err := json.MarshalIndent(rec, "", "  ")
	if err != nil {
		return record{}, err
	}
	at := filepath.Join(dir, recordName)
	if err := os.WriteFile(at, append(b, '\n'), 0o644); err != nil {
		return record{}, err
	}
	return rec, os.Chmod(at, 0o644) // independent of the umask
}

// readInstalled reads an install and checks its program. If there is none, the error is
// fs.ErrNotExist.
func (w wanted) readInstalled(dir string) (record, error) {
	rec, err := readRecord(dir)
	if err != nil {
		return record{}, err
	}
	if rec.Name != w.name || rec.Package != w.pkg || rec.Version != w.version {
		return record{}, fmt.Errorf("%s contains %s %s: remove it", dir, rec.Package, rec.Version)
	}
	sum, err := sumOf(filepath.Join(dir, filepath.FromSlash(rec.Program)))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, fmt.Errorf("%s no longer has its program: remove it", dir)
	}
	if err == nil && sum != rec.SHA256 {
		err = fmt.Errorf("%s has changed since it was installed: remove it", filepath.Join(dir, rec.Program))
	}
	return rec, err
}

func readRecord(dir string) (record, error) {
	var rec record
	b, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return rec, err
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return rec, fmt.Errorf("%s: %w", filepath.Join(dir, recordName), err)
	}
	if !filepath.IsLocal(filepath.FromSlash(rec.Program)) {
		return rec, fmt.Errorf("%s names a program outside its directory: %s", filepath.Join(dir, recordName), rec.Program)
	}
	return rec, nil
}

// locate finds the program of an install, as a path below it.
func locate(dir string, programs []string) (string, error) {
	for _, p := range programs {
		p = platform(p)
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(p))); err == nil && info.Mode().IsRegular() {
			return p, nil
		}
	}
	return "", fmt.Errorf("the package has no program for this machine; looked for %s", platform(strings.Join(programs, ", ")))
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// share lets other users read what the caller's umask denied them, and execute
// what the caller may execute. It removes write permission from everyone but the
// owner.
func share(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type() == fs.ModeSymlink {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		old := info.Mode().Perm()
		mode := old&^0o022 | 0o444
		if e.IsDir() || old&0o100 != 0 {
			mode |= 0o111
		}
		if mode == old {
			return nil
		}
		return os.Chmod(path, mode)
	})
}
