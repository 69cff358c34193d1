package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// linksMost is how many links a path may lead over, as in the kernel
// (path_resolution(7)).
const linksMost = 40

// changeable is the error for a path that the command inside can redirect.
type changeable struct {
	path, tree string
	link       string // that leads into the tree; "" for none
}

func (c *changeable) Error() string {
	way := "lies in " + c.tree
	if c.link != "" {
		way = fmt.Sprintf("leads through the link %s into %s", c.link, c.tree)
	}
	return c.path + " " + way + ", which the command inside can change"
}

// Hint is what to do next.
func (c *changeable) Hint() string {
	return "move it to a place that the command inside cannot write to, or give the absolute path of another"
}

// checkPath follows a path from the root to its end. No directory and no link
// on the way may be in one of the trees: the path then means the same when it
// is used as here, whatever is written to the trees meanwhile.
func checkPath(path string, trees []string) error { return rootsOf(trees).check(path) }

// check is checkPath for many paths.
func (r roots) check(path string) error {
	real, link, left, links := "/", "", strings.Split(path, "/"), 0
	for len(left) > 0 {
		part := left[0]
		left = left[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, part)
		info, err := os.Lstat(next)
		if tree := r.holding(next, info); tree != "" {
			return &changeable{path, tree, link}
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > linksMost {
			return fmt.Errorf("%s goes through more than %d links", path, linksMost)
		}
		link = next
		if filepath.IsAbs(target) {
			real = "/"
		}
		left = append(strings.Split(target, "/"), left...)
	}
	return nil
}

// Unchangeable returns a function that reads a file of at most so many bytes that belongs
// to the user or to root, that others cannot write to, and that nothing in the trees leads
// to. Another may not decide what is in it: one in the trees is an error.
func Unchangeable(trees []string) func(path string, most int64) ([]byte, error) {
	roots := rootsOf(trees)
	return func(path string, most int64) ([]byte, error) {
		if err := roots.check(path); err != nil {
			return nil, err
		}
		data, _, err := readOwned(path, true, most)
		return data, err
	}
}

// roots are trees with the files that are their roots, by whatever path these are reached.
type roots []root

type root struct {
	name, real string
	info       fs.FileInfo // nil if there is none
}

func rootsOf(trees []string) roots {
	var out roots
	for _, name := range trees {
		r := root{name: name, real: filepath.Clean(name)}
		if real, err := filepath.EvalSymlinks(name); err == nil {
			r.real = real
		}
		r.info, _ = os.Stat(name)
		out = append(out, r)
	}
	return out
}

// holding is the tree that contains a resolved path, or has it as its root; "" for none.
func (r roots) holding(path string, info fs.FileInfo) string {
	for _, t := range r {
		if paths.Within(t.real, path) || os.SameFile(info, t.info) { // false for nil
			return t.name
		}
	}
	return ""
}

// program finds what a name executes, as a shell would, but never from a
// relative place, and checks its path and those of its interpreters.
func (s *commandSource) program(name string, depth int) (string, error) {
	candidates := []string{name}
	if !filepath.IsAbs(name) {
		candidates = nil
		for _, dir := range filepath.SplitList(programs.Path(s.env)) {
			if filepath.IsAbs(dir) {
				candidates = append(candidates, filepath.Join(dir, name))
			}
		}
	}
	for _, path := range candidates {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if err := checkPath(path, s.writable); err != nil {
			return "", err
		}
		return path, s.interpreter(path, depth)
	}
	return "", &fetchError{text: fmt.Sprintf("no executable program %s was found", name), hint: "install it, or give its absolute path"}
}

const (
	interpreters = 5   // as in the kernel: a script may be the interpreter of another
	firstLine    = 256 // bytes of it that the kernel reads
)

// interpreter checks the path of the program that a script names in its first
// line (execve(2)), and of the one that env(1) has to find.
func (s *commandSource) interpreter(path string, depth int) error {
	if depth >= interpreters {
		return fmt.Errorf("%s has too many interpreters that are scripts themselves", path)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a script that cannot be read cannot be executed either
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, firstLine)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	line, script := bytes.CutPrefix(head[:n], []byte("#!"))
	if !script {
		return nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 {
		return nil
	}
	if _, err = s.program(filepath.Join("/", words[0]), depth+1); err != nil || filepath.Base(words[0]) != "env" {
		return err
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") })
	if at < 0 {
		return nil
	}
	_, err = s.program(words[1+at], depth+1)
	return err
}

// environ is the environment of the program: without what leads into the trees
// that the command inside can change, so that no search path executes or reads
// anything from there.
func (s *commandSource) environ() []string {
	var out []string
	for _, kv := range s.env {
		name, value, _ := strings.Cut(kv, "=")
		items := filepath.SplitList(value)
		kept := slices.DeleteFunc(slices.Clone(items), func(item string) bool {
			var c *changeable
			err := checkPath(item, s.writable)
			return filepath.IsAbs(item) && errors.As(err, &c)
		})
		switch {
		case len(kept) == len(items) || name == "HOME":
			out = append(out, kv)
		case name == "PATH":
			out = append(out, name+"="+strings.Join(kept, string(filepath.ListSeparator)))
		}
	}
	return out
}
