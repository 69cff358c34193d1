//go:build linux

package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// What is in the state directory decides what review apply writes and where. Root
// with the HOME of another user would carry out that user's journal.
func TestRootRefusesTheStateOfAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	const other = 54321
	for name, lay := range map[string]func(dir string) (home, xdg, owned string){
		"the home directory": func(dir string) (string, string, string) { return dir + "/home", "", dir + "/home" },
		"the state directory": func(dir string) (string, string, string) {
			return dir + "/home", "", dir + "/home/.local/state/holdfast"
		},
		"XDG_STATE_HOME":        func(dir string) (string, string, string) { return dir + "/home", dir + "/xdg", dir + "/xdg" },
		"a directory above it":  func(dir string) (string, string, string) { return dir + "/a/home", "", dir + "/a" },
		"a link on the way":     func(dir string) (string, string, string) { return dir + "/home", dir + "/link", dir + "/link" },
		"nothing: it is root's": func(dir string) (string, string, string) { return dir + "/home", "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			home, xdg, owned := lay(dir)
			for _, d := range []string{filepath.Join(home, ".local/state/holdfast"), dir + "/xdg"} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(dir+"/xdg", dir+"/link"); err != nil {
				t.Fatal(err)
			}
			if owned != "" {
				if err := unix.Lchown(owned, other, other); err != nil {
					t.Fatal(err)
				}
			}
			_, err := ThisHost([]string{"HOME=" + home, "XDG_STATE_HOME=" + xdg}, "/")
			if refused := err != nil && strings.Contains(err.Error(), "belongs to user 54321"); refused != (owned != "") {
				t.Errorf("ThisHost answered %v", err)
			}
		})
	}
}
