// Command release makes the files of a release: archives, packages for Debian and
// RPM, a bill of materials, and checksums. It builds everything twice, in two
// directories and the second time with an empty build cache, and fails if the
// files differ. `make release` runs it. It is a separate module, so that its
// dependencies are not those of the programs.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	r := release{}
	arches := flag.String("arch", "amd64,arm64", "the architectures, with commas")
	flag.StringVar(&r.version, "version", "", "the release, such as 1.2.3 (default that of a tag v1.2.3 on this commit, else development)")
	flag.StringVar(&r.root, "root", "../..", "the `directory` of the sources")
	flag.BoolVar(&r.once, "once", false, "do not build a second time to compare")
	flag.Parse()
	r.arches = strings.Split(*arches, ",")
	out := cmp.Or(flag.Arg(0), filepath.Join(r.root, "bin/release"))
	if err := r.make(out); err != nil {
		fmt.Fprintln(os.Stderr, "release: error:", err)
		os.Exit(1)
	}
}

// release describes what is released.
type release struct {
	root    string
	version string // such as 1.2.3; "development" for none
	commit  string // 12 digits, with "-dirty" when the sources differ from it
	date    time.Time
	arches  []string // GOARCH values
	once    bool
}

// make makes all files in a new directory out.
func (r *release) make(out string) (err error) {
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if err := r.describe(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	first := build{release: r, dir: filepath.Join(work, "a")}
	builds := []build{first}
	if !r.once {
		// A path of another length, and an empty build cache.
		builds = append(builds, build{release: r, dir: filepath.Join(work, "elsewhere", "b"), cache: filepath.Join(work, "cache")})
	}
	// First copy the sources twice: then an edit during the build is in neither
	// copy.
	for _, b := range builds {
		if err := r.copySources(b.src()); err != nil {
			return fmt.Errorf("copying the sources: %w", err)
		}
	}
	for _, b := range builds {
		if err := b.makeAll(); err != nil {
			return err
		}
		if err := compareDirs(first.out(), b.out()); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.CopyFS(out, os.DirFS(first.out()))
}

// compareDirs compares the files of two directories.
func compareDirs(a, b string) error {
	ours, err := os.ReadDir(a)
	if err != nil {
		return err
	}
	theirs, err := os.ReadDir(b)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(ours, theirs, func(x, y os.DirEntry) bool { return x.Name() == y.Name() }) {
		return fmt.Errorf("two builds made different files: %v and %v", ours, theirs)
	}
	var differ []string
	for _, e := range ours {
		x, err := os.ReadFile(filepath.Join(a, e.Name()))
		if err != nil {
			return err
		}
		y, err := os.ReadFile(filepath.Join(b, e.Name()))
		if err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			differ = append(differ, e.Name())
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("two builds of the same sources differ in %s", strings.Join(differ, ", "))
	}
	return nil
}
