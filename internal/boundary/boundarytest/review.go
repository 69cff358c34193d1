//go:build linux

package boundarytest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// storage is a place for what a command writes to a view of the workspace.
func (r *room) storage() *boundary.Review {
	r.Helper()
	dir := filepath.Join(r.dir, "review")
	for _, d := range []string{dir, dir + "/upper", dir + "/work"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			r.Fatal(err)
		}
		r.giveToOwner(d)
	}
	r.Cleanup(func() { os.Chmod(dir+"/work/work", 0o700) }) // overlayfs gives it mode 000
	return &boundary.Review{Dir: dir, Copy: func(context.Context, string) error {
		if err := os.CopyFS(dir+"/upper", os.DirFS(r.work)); err != nil {
			return err
		}
		return filepath.WalkDir(dir+"/upper", func(path string, _ fs.DirEntry, err error) error {
			r.giveToOwner(path)
			return err
		})
	}}
}

// oneOf checks one answer.
func (r *room) oneOf(got string, want []string) {
	r.Helper()
	if !slices.Contains(want, got) {
		r.Errorf("%q, want %q", got, want)
	}
}

// giveToOwner gives a directory to the owner of the workspace.
func (r *room) giveToOwner(path string) {
	r.Helper()
	st, err := os.Stat(r.work)
	if err != nil {
		r.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	if err := os.Lchown(path, int(sys.Uid), int(sys.Gid)); err != nil {
		r.Fatal(err)
	}
}

func testReview(t *testing.T, s Subject) {
	for _, view := range []policy.View{policy.ViewOverlay, policy.ViewCopy} {
		t.Run(string(view), func(t *testing.T) {
			r := enter(t, s)
			file, gone, secret := r.file("work/dir/file", "one\n"), r.file("work/gone", "gone\n"), r.file("work/.env", "secret\n")
			shared := r.file("out/shared", "shared\n")
			if err := os.Link(shared, r.work+"/shared"); err != nil {
				t.Fatal(err)
			}
			closed := r.file("work/vendor/file", "vendor\n")
			r.plan.Review, r.plan.View = true, view
			r.plan.Hidden = []policy.Protected{{Path: ".env"}}
			r.rule(r.work+"/vendor", policy.Read)
			spec := r.script(
				"read\t"+file, "write\t"+file, "unlink\t"+gone, "create\t"+r.work+"/new", "write\t"+r.work+"/shared",
				"read\t"+secret, "unlink\t"+secret, "write\t"+closed, "rename\t"+r.work+"\t"+r.work+"2", "owner\t"+file)
			spec.Review = r.storage()
			got := r.lines(spec)
			id := got[len(got)-1]
			for i, want := range [][]string{{"one\n"}, works, works, works, works, denied, pinned, denied, append(pinned, denied...), {id}} {
				r.oneOf(got[i], want)
			}
			if spec.Review.Mode != view {
				t.Errorf("the view is %q", spec.Review.Mode)
			}
			r.reads(file, "one\n")
			r.reads(gone, "gone\n")
			r.reads(shared, "shared\n")
			r.missing(r.work + "/new")
			r.reads(spec.Review.Dir+"/upper/dir/file", "written inside\n")
			r.reads(spec.Review.Dir+"/upper/new", "made inside\n")
			if was, is := r.hostOwner(file), r.hostOwner(spec.Review.Dir+"/upper/new"); was != is {
				t.Errorf("what was made belongs to %s, the workspace to %s", is, was)
			}
		})
	}
}

func testScratch(t *testing.T, s Subject) {
	r := enter(t, s)
	dir := filepath.Join(r.dir, "scratch")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.giveToOwner(dir)
	spec := r.script("create\t"+policy.ScratchDir+"/file", "unlink\t"+policy.ScratchDir+"/file", "create\t"+policy.ScratchDir+"/more")
	spec.Scratch = dir
	for _, got := range r.lines(spec) {
		r.oneOf(got, works)
	}
	r.reads(dir+"/more", "made inside\n")
}
