package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// results are those of test programs that passed, by what they depend on. Go's
// own cache cannot know that: these tests mostly depend on programs that they
// execute.
type results struct {
	dir      string // "" to keep none
	machine  string // properties of this machine that may change a result
	programs string // digest of the programs under test
	tree     string // digest of the files of the module
	data     string // digest of the non-Go files
}

// resultLifetime is how long a result counts: a machine can change in ways that are not
// checked.
const resultLifetime = 12 * time.Hour

// passedProgram is a test program that passed.
type passedProgram struct {
	Passed  int      `json:"passed"`
	Skipped []string `json:"skipped,omitempty"`
}

// sources are packages whose tests read Go files, or build them.
var sources = regexp.MustCompile(`/(internal/(arch|floor/command|record/export)|tools/[a-z]+|bench)$`)

// openResults reads what results depend on, for the module in root.
func openResults(root, work string) (r results, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return results{}, nil // nowhere to keep them
	}
	var kernel syscall.Utsname
	if err := syscall.Uname(&kernel); err != nil {
		return r, err
	}
	r.dir = filepath.Join(cache, "holdfast-suite")
	r.machine = fmt.Sprint(kernel.Release, kernel.Version, os.Getenv("WANT_FEATURES"), os.Getenv("HOLDFAST_TEST_AGENTS"), os.Getenv("PATH"), status("/dev/fuse"), status("/var/lib/dpkg/status"))
	if r.programs, _, err = digest(work); err == nil {
		r.tree, r.data, err = digest(root)
	}
	return r, err
}

// status describes a file, with the time of its last change.
func status(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
}

// digest is that of all regular files below dir, and of the non-Go ones.
func digest(dir string) (all, data string, err error) {
	every, other := sha256.New(), sha256.New()
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case rel == ".git" || rel == "bin":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(every, "%s %x\n", rel, sum)
		if !strings.HasSuffix(rel, ".go") {
			fmt.Fprintf(other, "%s %x\n", rel, sum)
		}
		return nil
	})
	return hex.EncodeToString(every.Sum(nil)), hex.EncodeToString(other.Sum(nil)), err
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}

// path is where the result of a program in a pass is kept; "" for nowhere.
func (r results) path(p pass, prog program) string {
	if r.dir == "" {
		return ""
	}
	own, err := sumOf(prog.path)
	if err != nil {
		return ""
	}
	h := sha256.New()
	fmt.Fprintln(h, p.title, p.skip, len(p.unraced), prog.name, r.machine, hex.EncodeToString(own))
	switch {
	case !prog.userIndependent():
		fmt.Fprintln(h, r.programs, r.tree)
	case sources.MatchString(prog.name):
		fmt.Fprintln(h, r.tree)
	default:
		fmt.Fprintln(h, r.data)
	}
	return filepath.Join(r.dir, hex.EncodeToString(h.Sum(nil))+".json")
}

// load returns a result that still counts.
func (r results) load(path string) (k passedProgram, ok bool) {
	info, err := os.Stat(path)
	if err != nil || time.Since(info.ModTime()) > resultLifetime {
		return k, false
	}
	b, err := os.ReadFile(path)
	return k, err == nil && json.Unmarshal(b, &k) == nil
}

// store keeps a result; one that cannot be kept is determined again. Expired
// results are removed.
func (r results) store(path string, k passedProgram) {
	b, err := json.Marshal(k)
	if err != nil || os.MkdirAll(r.dir, 0o700) != nil || os.WriteFile(path+".new", b, 0o600) != nil {
		return
	}
	_ = os.Rename(path+".new", path)
	old, _ := filepath.Glob(filepath.Join(r.dir, "*"))
	for _, name := range old {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > resultLifetime {
			_ = os.Remove(name)
		}
	}
}
