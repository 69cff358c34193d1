//go:build unix

package credentials

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestReadOwned: a secret or a grant is read from a file of the user or of root that
// no other user can write, of the allowed size; from a link only where one is allowed.
func TestReadOwned(t *testing.T) {
	const most = 8
	for _, c := range []struct {
		name   string
		lay    func(path string) error
		follow bool
		want   string // what is read
		err    string
	}{
		{"a file", func(p string) error { return os.WriteFile(p, []byte("12345678"), 0o644) }, false, "12345678", ""},
		{"one byte too many", func(p string) error { return os.WriteFile(p, []byte("123456789"), 0o600) }, false, "", "has 9 bytes; 8 are allowed"},
		{"the group can write it", func(p string) error { return writeAs(p, 0o620) }, false, "", "can be written by others"},
		{"all can write it", func(p string) error { return writeAs(p, 0o602) }, false, "", "can be written by others"},
		{"a directory", func(p string) error { return os.Mkdir(p, 0o700) }, false, "", "is not a regular file"},
		{"a pipe that nobody writes to", func(p string) error { return unix.Mkfifo(p, 0o600) }, false, "", "is not a regular file"},
		{"nothing", func(string) error { return nil }, false, "", "no such file"},
		{"a link", linked, false, "", "too many levels"},
		{"a link where one may stand", linked, true, "linked", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if err := c.lay(path); err != nil {
				t.Fatal(err)
			}
			data, real, err := readOwned(path, c.follow, most)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || data != nil {
					t.Fatalf("%q, %v, want %q", data, err, c.err)
				}
				return
			}
			if err != nil || string(data) != c.want {
				t.Fatalf("%q, %v", data, err)
			}
			if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
				t.Errorf("its real name is %q: %v", real, err)
			}
		})
	}
}

func writeAs(path string, mode os.FileMode) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func linked(path string) error {
	if err := os.WriteFile(path+".real", []byte("linked"), 0o600); err != nil {
		return err
	}
	return os.Symlink(path+".real", path)
}

func TestRootReadOwnedByAnother(t *testing.T) {
	testenv.Need(t, testenv.Root, nil) // only root gives files away
	path := filepath.Join(t.TempDir(), "secret")
	if err := writeAs(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 54321, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readOwned(path, false, 8); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Errorf("%v", err)
	}
}

// TestNameOK: names of credentials are parts of file names and words of commands.
func TestNameOK(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "Z": true, "0": true, "9-a_B": true, "_a": true, strings.Repeat("a", 64): true,
		"": false, strings.Repeat("a", 65): false, "-a": false, "a/b": false, "..": false, "a.b": false, "a b": false,
		"@": false, "[": false, "`": false, "{": false, ":": false, "é": false, "a\n": false, "a\x00": false,
	} {
		if nameOK(name) != ok {
			t.Errorf("%q: want %v", name, ok)
		}
	}
}
