//go:build linux

package harness

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// ownDir returns a directory of the user's own, where a home is.
func ownDir(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(home, ".place-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestPlace(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	left, own := filepath.Join(dir, placePrefix+"1"), filepath.Join(dir, placePrefix+"notes")
	if err := errors.Join(os.MkdirAll(filepath.Join(left, "world"), 0o700), os.WriteFile(filepath.Join(left, placeMark), nil, 0o600), os.Mkdir(own, 0o700)); err != nil {
		t.Fatal(err)
	}
	first, err := NewPlace(dir, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); err == nil {
		t.Error("what a killed run has left is still there")
	}
	second, err := NewPlace(dir, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(first.Dir); err != nil {
		t.Errorf("the place of another run was removed: %v", err)
	}
	for _, p := range []*Place{first, second} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if rest, err := os.ReadDir(dir); err != nil || len(rest) != 1 || rest[0].Name() != filepath.Base(own) {
		t.Errorf("left behind, or taken from the user: %v, %v", rest, err)
	}
}

func TestPlacesAreRefused(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	shared, file := filepath.Join(dir, "shared"), filepath.Join(dir, "file")
	if err := errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o777), os.WriteFile(file, nil, 0o600), os.Mkdir(filepath.Join(dir, "a b"), 0o700),
		os.MkdirAll(filepath.Join(shared, "mine", "deeper"), 0o700), os.Symlink(shared, filepath.Join(dir, "through"))); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{shared, filepath.Join(shared, "mine"), filepath.Join(shared, "mine", "deeper"), filepath.Join(dir, "through", "mine"), file, filepath.Join(dir, "a b"), filepath.Join(dir, "nothing"), "/proc", t.TempDir()} {
		p, err := NewPlace(bad, "/bin/true")
		if err == nil {
			t.Errorf("%s is taken", bad)
			_ = p.Close()
		}
	}
}

// Homes are links on machines that keep them on another disk.
func TestPlaceBehindLink(t *testing.T) {
	t.Parallel()
	dir := ownDir(t)
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)); err != nil {
		t.Fatal(err)
	}
	p, err := NewPlace(link, "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(p.Dir) != real {
		t.Errorf("worlds are made in %s, which a link may move", p.Dir)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
