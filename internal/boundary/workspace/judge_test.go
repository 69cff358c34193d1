//go:build linux

package workspace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func openDir(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// A new directory of hooks stays if git runs nothing in it.
func TestSamplesOnly(t *testing.T) {
	w := tempRoot(t)
	mkdir(t, w+"/empty")
	write(t, w, "samples/pre-commit.sample", "")
	write(t, w, "hook/pre-commit", "")
	write(t, w, "below/x.sample/pre-commit", "")
	link(t, "../hook/pre-commit", w, "link/x.sample")
	link(t, "samples", w, "itself")
	write(t, w, "file", "")
	mkdir(t, w+"/many")
	for i := range 999 {
		must(t, os.Link(w+"/file", fmt.Sprintf("%s/many/%d.sample", w, i)))
	}
	dir := openDir(t, w)
	if got := samplesOnly(dir, "many"); got != "" {
		t.Errorf("999 samples: %q", got)
	}
	must(t, os.Link(w+"/file", w+"/many/last.sample"))
	for name, want := range map[string]string{
		"empty": "", "samples": "", "hook": `holds "pre-commit"`, "below": `holds "x.sample"`, "link": `holds "x.sample"`,
		"many": "cannot be read to the end", "itself": "it is not a plain directory", "file": "it is not a plain directory", "none": "it is not a plain directory",
	} {
		if got := samplesOnly(dir, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A pointer is followed within the trees of a run, by its shortest form and through
// no link.
func TestReach(t *testing.T) {
	w, other, outside := tempRoot(t), tempRoot(t), tempRoot(t)
	for _, root := range []string{w, other, outside} {
		write(t, root, "repo/HEAD", "")
		mkdir(t, root+"/repo/objects")
		mkdir(t, root+"/repo/refs")
		write(t, root, "tree/HEAD", "")
		write(t, root, "tree/commondir", "")
		write(t, root, "half/HEAD", "")
		mkdir(t, root+"/half/objects")
		write(t, root, "shape/commondir", "")
	}
	link(t, "repo", w, "link")
	v := &settle{t: &tree{Root: Name(w)}, snap: &Snapshot{Root: w, trees: []*tree{{Root: Name(w)}, {Root: Name(other)}, {Root: "/none/such"}}}}
	for _, tt := range []struct {
		rel, target     string
		reached, isRepo bool
	}{
		{"", "repo", true, true},
		{"a/b", "../../repo", true, true},
		{"", w + "/repo", true, true},
		{"", w, true, false},
		{"", other + "/repo", true, true},
		{"", other + "/tree", true, true},
		{"", "tree", true, true},
		{"", "half", true, false},
		{"", "shape", true, false},
		{"", outside + "/repo", false, false},
		{"", w + "x/repo", false, false},
		{"", "/none/such/repo", false, false},
		{"", "none", false, false},
		{"", "repo/HEAD", false, false},
		{"", "link", false, false},
		{"", "./repo", false, false},
		{"", "repo/", false, false},
		{"", "link/../repo", false, false},
		{"", "", false, false},
	} {
		fd := v.openInTrees(tt.rel, tt.target)
		if fd >= 0 {
			unix.Close(fd)
		}
		if (fd >= 0) != tt.reached || v.leadsToRepository(tt.rel, tt.target) != tt.isRepo {
			t.Errorf("%q in %q: reached %v, a repository %v", tt.target, tt.rel, fd >= 0, !tt.isRepo)
		}
	}
	for target, want := range map[string]bool{w: true, w + "/x": true, w + "x": false, "x": true, "..": true, "../..": false, "../../" + w: false, "/": false} {
		if v.inTree("d", target) != want {
			t.Errorf("%q in the directory d lies in the tree: %v", target, !want)
		}
	}
}

// TestJudgeFiles: of a new repository those files stay by which git does nothing of
// their author's choosing.
func TestJudgeFiles(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "repo/HEAD", "")
	mkdir(t, w+"/repo/objects")
	mkdir(t, w+"/repo/refs")
	d := &dir{fd: openDir(t, w)}
	for _, tt := range []struct {
		rule, text, want string
	}{
		{"config", "[core]\n\tbare = false\n", ""},
		{"config", "[core]\n\tworktree = repo\n", ""},
		{"config", "[core]\n\tworktree = /\n", "core.worktree leaves the workspace"},
		{"config.worktree", "[alias]\n\tx = y\n", `sets "alias.x"`},
		{"config.worktree", "[alias]\n\tknown = y\n", ""},
		{"config", "-", "is not a plain file"},
		{"info/attributes", "*.c text\n", ""},
		{"info/attributes", "-", "it assigns programs to files"},
		{"info/attributes", "* filter=x\n", "it assigns programs to files"},
		{"info/attributes", "* diff=x\n", "it assigns programs to files"},
		{"info/attributes", "* merge=x\n", "it assigns programs to files"},
		{"info/attributes", "[attr]x y\n", "it assigns programs to files"},
		{"info/attributes", "* working-tree-encoding=x\n", "it assigns programs to files"},
		{"commondir", "repo\r\n", ""},
		{"commondir", "none\n", "it leads out of the workspace"},
		{"commondir", "/\n", "it leads out of the workspace"},
		{"commondir", "", "is not a plain pointer"},
		{"commondir", "-", "is not a plain pointer"},
		{"commondir", "repo\nx", "is not a plain pointer"},
		{"commondir", "repo\x00", "is not a plain pointer"},
		{"gitdir", "none/.git\n", ""},
		{"gitdir", "../ws/x", ""},
		{"gitdir", "/etc/x\n", "it leads out of the workspace"},
		{"HEAD", "x", "is not known to be harmless"},
	} {
		os.Remove(w + "/file")
		if tt.text == "-" {
			link(t, "repo/HEAD", w, "file")
		} else {
			write(t, w, "file", tt.text)
		}
		known := setting{section: "alias", key: "known", value: "y"}
		space := &tree{Root: Name(w), Settings: map[Name][]string{"": {known.sum()}}}
		v := &settle{t: space, snap: &Snapshot{Root: w, trees: []*tree{space}}, repos: map[string]bool{"old": true}}
		if tt.text == "../ws/x" {
			v.snap.Root = strings.TrimSuffix(w, "/") // a repository outside names a worktree of the workspace
			v.t = &tree{Root: "/elsewhere"}
			write(t, w, "file", w+"/x/.git")
		}
		e := entry{nameZ: []byte("file\x00"), rule: &Rule{Pattern: tt.rule}}
		if got := v.judge(&walker{}, d, e); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.rule, tt.text, got, tt.want)
		}
		if tt.rule == "gitdir" || tt.rule == "commondir" {
			if got := v.judge(&walker{path: []byte("old")}, d, e); got != "the repository was there without it" {
				t.Errorf("%s of an old repository: %q", tt.rule, got)
			}
		}
	}
}
