//go:build linux

package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// Limits for what counts as one program.
const (
	linksMost = 40      // links that the kernel follows in one path (path_resolution(7))
	filesMost = 50000   // names of a package
	bytesMost = 4 << 30 // content of a package; beyond it sizes and times count
	dirsMost  = 2048    // directories that the kernel is asked to watch
)

// fingerprint identifies what is at path: every link on the way, and the content
// that they lead to. For a directory, and for a program in an npm package, that
// is the whole tree. arm is called with each directory, and the names in it that
// matter (none: all), before it is read, so that no change is missed in between.
func fingerprint(ctx context.Context, path string, arm func(dir string, names ...string)) (string, error) {
	h := sha256.New()
	real, err := follow(h, path, arm)
	if err != nil {
		return "", err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return "", err
	}
	root := packageOf(real)
	if info.IsDir() {
		root = real
	}
	switch {
	case root != "":
		err = tree(ctx, h, root, arm)
	case info.Mode().IsRegular():
		arm(real)
		_, err = content(ctx, h, real, info)
	default:
		err = fmt.Errorf("%s: %w", real, sys.ErrNotRegular)
	}
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// follow walks a path as the kernel does and hashes each link.
func follow(h hash.Hash, path string, arm func(string, ...string)) (string, error) {
	rest := strings.Split(filepath.Clean(path), "/")
	real, links := "/", 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		arm(real, name)
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		if links++; links > linksMost {
			return "", fmt.Errorf("%s: the path has more than %d symbolic links", path, linksMost)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "link %q %q\n", next, target)
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	fmt.Fprintf(h, "at %q\n", real)
	return real, nil
}

// packageOf returns the directory of the outermost npm package that a file is in;
// "" if it is in none. A package is updated as a whole, and its programs load each
// other.
func packageOf(real string) string {
	before, after, ok := strings.Cut(real, "/node_modules/")
	if !ok {
		return ""
	}
	parts := strings.SplitN(after, "/", 3)
	n := 1
	if strings.HasPrefix(after, "@") {
		n = 2
	}
	if len(parts) <= n {
		return ""
	}
	return before + "/node_modules/" + strings.Join(parts[:n], "/")
}

// tree hashes names, modes and contents below root, in order.
func tree(ctx context.Context, h hash.Hash, root string, arm func(string, ...string)) error {
	names, dirs, left := 0, 0, int64(bytesMost)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if names++; names > filesMost {
			return fmt.Errorf("%s: more than %d names", root, filesMost)
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if dirs++; dirs <= dirsMost {
				arm(path)
			}
			fmt.Fprintf(h, "dir %q\n", rel)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "file %q %v %d\n", rel, info.Mode(), info.Size())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(h, "to %q\n", target)
			return err
		case !info.Mode().IsRegular():
			return nil
		case info.Size() > left:
			fmt.Fprintf(h, "time %d\n", info.ModTime().UnixNano())
			return nil
		}
		n, err := content(ctx, h, path, info)
		left -= n
		return err
	})
}

// content writes the hash of a file into h.
func content(ctx context.Context, h hash.Hash, path string, info fs.FileInfo) (int64, error) {
	f, err := sys.OpenRegular(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	one := sha256.New()
	n, err := io.Copy(one, &endable{ctx, f})
	if err != nil {
		return n, fmt.Errorf("reading %s: %w", path, err)
	}
	fmt.Fprintf(h, "mode %v sum %x\n", info.Mode().Perm(), one.Sum(nil))
	return n, nil
}

// endable is a reader that ends with its context.
type endable struct {
	ctx context.Context
	r   io.Reader
}

func (e *endable) Read(p []byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, err
	}
	return e.r.Read(p)
}
