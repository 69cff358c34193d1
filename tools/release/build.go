package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// build makes all files of a release once.
type build struct {
	*release
	dir   string // a separate directory; everything is made there
	cache string // of compiled packages; "" for the user's
}

func (b *build) src() string { return filepath.Join(b.dir, "src") }

// out is the directory of the release's files.
func (b *build) out() string { return filepath.Join(b.dir, "out") }

// stage is the tree to install below a prefix such as /usr.
func (b *build) stage(arch string) string { return filepath.Join(b.dir, "stage", arch) }

func (b *build) makeAll() error {
	if err := os.MkdirAll(b.out(), 0o755); err != nil {
		return err
	}
	for _, arch := range b.arches {
		if err := b.programs(arch); err != nil {
			return err
		}
		if err := b.documents(arch); err != nil {
			return err
		}
		name := fmt.Sprintf("holdfast-%s-linux-%s", b.version, arch)
		if err := archive(filepath.Join(b.out(), name+".tar.gz"), name, b.stage(arch), b.date); err != nil {
			return err
		}
		if err := b.packages(arch); err != nil {
			return fmt.Errorf("making packages for %s: %w", arch, err)
		}
	}
	if err := b.bill(); err != nil {
		return err
	}
	return checksums(b.out())
}

// env is the environment of the go command: for arch, or for this machine. With
// -trimpath the build cache works for any source directory.
func (b *build) env(arch string) []string {
	env := []string{"CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath", "GOWORK=off"}
	if arch != "" {
		env = append(env, "GOOS=linux", "GOARCH="+arch)
	}
	if b.cache != "" {
		env = append(env, "GOCACHE="+b.cache)
	}
	return env
}

// emulators run the programs of another architecture.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// programs builds both programs and lets them write their reference, which
// depends on the architecture.
func (b *build) programs(arch string) error {
	emulator := ""
	if arch != runtime.GOARCH {
		emulator = emulators[arch]
	}
	_, err := run(b.src(), b.env(arch), "make", "reference",
		"VERSION="+b.version, "COMMIT="+b.commit, "STRIP=-s -w", "EMULATOR="+emulator)
	if err != nil {
		return err
	}
	for _, name := range []string{"holdfast", "holdfast-prove"} {
		text, err := os.ReadFile(filepath.Join(b.src(), "bin", name))
		if err != nil {
			return err
		}
		if err := save(filepath.Join(b.stage(arch), "bin", name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// documents adds everything else below the prefix: manual pages, completions, the
// reference, the AppArmor profile.
func (b *build) documents(arch string) error {
	share := filepath.Join(b.stage(arch), "share")
	_, err := run(b.src(), b.env(""), "go", "run", "./tools/manual",
		"-version", b.version, "-date", b.date.Format("2006-01-02"), b.stage(arch))
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(share, "man/man1/*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(page); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{
		"LICENSE": "doc/holdfast/LICENSE", "README.md": "doc/holdfast/README.md", "packaging/apparmor": "holdfast/apparmor",
	} {
		text, err := os.ReadFile(filepath.Join(b.src(), from))
		if err != nil {
			return err
		}
		if err := save(filepath.Join(share, to), text, 0o644); err != nil {
			return err
		}
	}
	return os.CopyFS(filepath.Join(share, "doc/holdfast/reference"), os.DirFS(filepath.Join(b.src(), "bin/reference")))
}

// compress replaces a file by its gzip form, without a name or time in it.
func compress(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := save(path+".gz", packed.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Remove(path)
}

// checksums writes SHA256SUMS of all files in dir, in the format of sha256sum(1).
func checksums(dir string) error {
	files, err := fs.ReadDir(os.DirFS(dir), ".")
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), f.Name())
	}
	return save(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
