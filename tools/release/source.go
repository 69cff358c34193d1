package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const development = "development"

var versions = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$`)

// describe determines the version, commit and date from the repository.
func (r *release) describe() error {
	head, err := r.git("log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(head), 10, 64)
	if err != nil {
		return err
	}
	r.date = time.Unix(seconds, 0).UTC()
	commit, err := r.git("describe", "--always", "--exclude=*", "--abbrev=12", "--dirty")
	if err != nil {
		return err
	}
	r.commit = strings.TrimSpace(commit)
	if r.version == "" {
		r.version = development
		if tag, err := r.git("describe", "--exact-match", "--tags", "--match=v[0-9]*"); err == nil {
			r.version = strings.TrimPrefix(strings.TrimSpace(tag), "v")
		}
	}
	switch {
	case r.version == development:
		return nil
	case !versions.MatchString(r.version):
		return fmt.Errorf("%q is not a version: write 1.2.3 or 1.2.3-rc.1", r.version)
	case strings.HasSuffix(r.commit, "-dirty"):
		return errors.New("the sources differ from the commit: commit or remove the changes first")
	}
	return nil
}

// packaged is the version for packages. A development build sorts before every
// release.
func (r *release) packaged() string {
	if r.version != development {
		return r.version
	}
	commit, _, _ := strings.Cut(r.commit, "-")
	return "0.0.0~" + r.date.Format("20060102150405") + "." + commit
}

// git runs a command in the repository, which may belong to another user.
func (r *release) git(args ...string) (string, error) {
	return run(r.root, nil, "git", append([]string{"-c", "safe.directory=" + r.root}, args...)...)
}

// copySources copies the files of the repository, and new ones that are not
// ignored, into dir.
func (r *release) copySources(dir string) error {
	list, err := r.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.TrimSuffix(list, "\x00"), "\x00") {
		from, to := filepath.Join(r.root, name), filepath.Join(dir, name)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, but not yet committed
		}
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", name)
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := save(to, text, 0o644|info.Mode()&0o111); err != nil {
			return err
		}
	}
	return nil
}

// save writes a file with exactly this mode, and its parent directories.
func save(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// run runs a command in dir and returns its output.
func run(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.Bytes())
	}
	return out.String(), nil
}
