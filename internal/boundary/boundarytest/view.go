//go:build linux

package boundarytest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// attempt is one line for Inside, a sentence about it, and the answers that
// are right.
type attempt struct {
	name string
	line []string
	want []string
}

// denied are the answers to what must not work for want of a right; absent is
// the answer for what must not be there.
var (
	denied = []string{"EROFS", "EACCES", "EPERM"}
	absent = []string{"ENOENT"}
	pinned = []string{"EBUSY"}
	works  = []string{"ok"}
)

// try runs the attempts in one command each, so that a change made by one does not
// affect another.
func (r *room) try(attempts []attempt) {
	r.Helper()
	lines := make([]string, len(attempts))
	for i, a := range attempts {
		lines[i] = strings.Join(a.line, "\t")
	}
	for i, got := range r.answers(lines...) {
		if a := attempts[i]; !slices.Contains(a.want, got) {
			r.Errorf("%s: %q: %q, want %q", a.name, a.line, got, a.want)
		}
	}
}

func testView(t *testing.T, s Subject) {
	t.Run("shows the plan and nothing else", func(t *testing.T) {
		r := enter(t, s)
		read, write := r.file("read/data", "to read\n"), r.file("write/data", "to write\n")
		r.rule(filepath.Dir(read), policy.Read)
		r.rule(filepath.Dir(write), policy.Write)
		r.file("work/file", "in the workspace\n")
		beside, err := os.CreateTemp("/tmp", "sandboxtest-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(beside.Name())
		defer beside.Close()
		r.try([]attempt{
			{"the workspace is readable", []string{"read", r.work + "/file"}, []string{"in the workspace\n"}},
			{"the workspace is writable", []string{"create", r.work + "/made"}, works},
			{"files of the workspace may be replaced", []string{"rename", r.work + "/made", r.work + "/file"}, works},
			{"what lies beside it is not there", []string{"read", r.out + "/data"}, absent},
			{"the home is another one", []string{"read", r.home + "/secret"}, absent},
			{"the home is writable", []string{"create", r.home + "/secret"}, works},
			{"a path to read is readable", []string{"read", read}, []string{"to read\n"}},
			{"and not writable", []string{"write", read}, denied},
			{"nor may its mode change", []string{"chmod", read}, denied},
			{"nor its times", []string{"touch", read}, denied},
			{"nor may it go", []string{"unlink", read}, denied},
			{"nor be added to", []string{"create", filepath.Dir(read) + "/more"}, denied},
			{"a path to write is writable", []string{"write", write}, works},
			{"the program itself is not writable", []string{"write", r.program}, append([]string{"ETXTBSY"}, denied...)},
			{"system programs are not writable", []string{"create", "/usr/bin/made"}, denied},
			{"the root is not writable", []string{"mkdir", "/made"}, denied},
			{"secrets of the system are not there", []string{"read", "/etc/shadow"}, absent},
			{"/tmp is private", []string{"read", beside.Name()}, absent},
			{"and writable", []string{"create", beside.Name()}, works},
			{"the first process keeps its environment to itself", []string{"read", "/proc/1/environ"}, append([]string{"ENOENT"}, denied...)},
			{"no device but the harmless ones", []string{"list", "/dev/block"}, absent},
			{"no kernel setting may change", []string{"write", "/proc/sys/kernel/core_pattern"}, denied},
			{"the host's memory is not readable", []string{"read", "/proc/kcore"}, append([]string{"ok"}, append(absent, denied...)...)},
		})
		r.reads(r.work+"/file", "made inside\n")
		r.reads(write, "written inside\n")
		r.reads(read, "to read\n")
		r.reads(r.home+"/secret", "secret\n")
		r.reads(beside.Name(), "")
	})
}

// testRules is about rules that lie in each other.
func testRules(t *testing.T, s Subject) {
	t.Run("a workspace may be read-only with parts to write", func(t *testing.T) {
		r := enter(t, s)
		r.file("work/file", "in the workspace\n")
		r.file("work/out/file", "output\n")
		r.rule(r.work, policy.Read)
		r.rule(r.work+"/out", policy.Write)
		r.try([]attempt{
			{"the workspace is readable", []string{"read", r.work + "/file"}, []string{"in the workspace\n"}},
			{"and not writable", []string{"write", r.work + "/file"}, denied},
			{"nor may it be added to", []string{"create", r.work + "/made"}, denied},
			{"the part is writable", []string{"write", r.work + "/out/file"}, works},
		})
		r.reads(r.work+"/file", "in the workspace\n")
		r.reads(r.work+"/out/file", "written inside\n")
	})
	t.Run("a link names what it is a link to", testLinkedRule(s))
	t.Run("a path may be hidden in a tree that is shown", func(t *testing.T) {
		r := enter(t, s)
		r.file("tools/bin/tool", "a tool\n")
		secret := r.file("tools/credentials", "secret\n")
		r.file("tools/keys/one", "secret\n")
		r.rule(r.dir+"/tools", policy.Read)
		r.rule(secret, policy.Hidden)
		r.rule(r.dir+"/tools/keys", policy.Hidden)
		answers := r.answers("read\t"+r.dir+"/tools/bin/tool", "read\t"+secret, "read\t"+r.dir+"/tools/keys/one", "list\t"+r.dir+"/tools/keys")
		if answers[0] != "a tool\n" {
			t.Errorf("the tool: %q", answers[0])
		}
		for _, a := range answers[1:] {
			if strings.Contains(a, "secret") || strings.Contains(a, "one") {
				t.Errorf("what is hidden was seen: %q", a)
			}
		}
	})
}

// testLinkedRule is about rules whose path was given by a link: what is mounted
// by two names could be protected by one of them only.
func testLinkedRule(s Subject) func(*testing.T) {
	return func(t *testing.T) {
		r := enter(t, s)
		r.file("real/open", "open\n")
		closed := r.file("real/closed/file", "closed\n")
		link := r.dir + "/link"
		if err := os.Symlink(r.dir+"/real", link); err != nil {
			t.Fatal(err)
		}
		r.plan.Paths = append(r.plan.Paths,
			policy.PathRule{Path: r.dir + "/real", At: link, Access: policy.Write},
			policy.PathRule{Path: r.dir + "/real/closed", At: link + "/closed", Access: policy.Read})
		r.try([]attempt{
			{"the link leads there", []string{"read", link + "/open"}, []string{"open\n"}},
			{"what is writable is writable by the link", []string{"write", link + "/open"}, works},
			{"what is read-only is not writable by its name", []string{"write", closed}, denied},
			{"nor by the link", []string{"write", link + "/closed/file"}, denied},
		})
		r.reads(r.dir+"/real/open", "written inside\n")
		r.reads(closed, "closed\n")
	}
}

func testLayers(t *testing.T, s Subject) {
	r := enter(t, s)
	cache := r.file("cache/deep/entry", "cached\n")
	r.rule(r.dir+"/cache", policy.Copy)
	r.try([]attempt{
		{"what is there is readable", []string{"read", cache}, []string{"cached\n"}},
		{"it may be written", []string{"write", cache}, works},
		{"and read again", []string{"read", cache}, []string{"written inside\n"}},
		{"it may be added to", []string{"create", r.dir + "/cache/more"}, works},
		{"and renamed", []string{"rename", r.dir + "/cache/more", r.dir + "/cache/other"}, works},
		{"and removed", []string{"unlink", cache}, works},
	})
	r.reads(cache, "cached\n")
	r.missing(r.dir + "/cache/more")
	r.missing(r.dir + "/cache/other")
	if got := r.answer("read", cache); got != "cached\n" {
		t.Errorf("a second run reads %q: the layer of the first one is still there", got)
	}
}

func testProtected(t *testing.T, s Subject) {
	r := enter(t, s)
	hook := r.file("work/a/.git/hooks/pre-commit", "#!/bin/sh\n")
	config := r.file("work/a/.git/config", "[core]\n")
	head := r.file("work/a/.git/HEAD", "ref: refs/heads/main\n")
	alone := r.file("work/.envrc", "export A=1\n")
	shared := r.file("out/shared", "shared\n")
	if err := os.Link(shared, r.work+"/shared"); err != nil {
		t.Fatal(err)
	}
	r.plan.Protect = []policy.Protected{
		{Path: ".envrc"},
		{Path: "a/.git/config"},
		{Path: "a/.git/hooks", IsDir: true},
	}
	r.plan.HardLinks = []policy.Protected{{Path: "shared"}}
	git, hooks := filepath.Dir(config), filepath.Dir(hook)
	r.try(append(r.attacks(hook, config, alone),
		attempt{"what lies beside a protected file is writable", []string{"write", head}, works},
		attempt{"and its directory may be added to", []string{"create", git + "/index.lock"}, works},
		attempt{"files there may be replaced", []string{"rename", git + "/index.lock", git + "/index"}, works},
		attempt{"a file that is also outside is not writable", []string{"write", r.work + "/shared"}, denied},
		attempt{"the workspace itself does not move", []string{"rename", r.work, r.work + "2"}, append(pinned, denied...)},
	))
	r.reads(hook, "#!/bin/sh\n")
	r.reads(config, "[core]\n")
	r.reads(alone, "export A=1\n")
	r.reads(shared, "shared\n")
	r.reads(head, "written inside\n")
	r.reads(git+"/index", "made inside\n")
	r.missing(hooks + "/post-commit")
}

// attacks are attempts on a protected directory with a file in it, on a
// protected file beside that, and on one at the top of the workspace.
func (r *room) attacks(hook, config, alone string) []attempt {
	git, hooks := filepath.Dir(config), filepath.Dir(hook)
	var all []attempt
	for _, file := range []string{hook, config, alone} {
		all = append(all, attempt{"a protected file is not writable", []string{"write", file}, denied},
			attempt{"nor truncated", []string{"truncate", file}, denied},
			attempt{"nor may its mode change", []string{"chmod", file}, denied},
			attempt{"nor its times", []string{"touch", file}, denied},
			attempt{"nor gets it another name", []string{"link", file, r.work + "/another"}, append([]string{"EXDEV"}, denied...)})
	}
	for _, path := range []string{config, alone, hooks, git, r.work + "/a"} {
		// In the same directory, because the kernel checks mounts (EXDEV) first.
		decoy := r.file(strings.TrimPrefix(path, r.dir+"/")+".decoy", "decoy\n")
		all = append(all, attempt{"a protected path and its ancestors do not move", []string{"rename", path, path + ".moved"}, pinned},
			attempt{"nor change places", []string{"exchange", path, decoy}, pinned},
			attempt{"nor the other way round", []string{"exchange", decoy, path}, pinned},
			attempt{"nor move to the top", []string{"rename", path, r.work + "/moved"}, append([]string{"EXDEV"}, pinned...)})
	}
	for _, dir := range []string{hooks, git, r.work + "/a"} {
		all = append(all, attempt{"a directory of that kind does not go", []string{"rmdir", dir}, pinned})
	}
	for _, file := range []string{config, alone} {
		all = append(all, attempt{"a protected file does not go", []string{"unlink", file}, pinned},
			attempt{"nor does another take its place", []string{"rename", file + ".decoy", file}, pinned})
	}
	return append(all, attempt{"nothing is added to a protected directory", []string{"create", hooks + "/post-commit"}, denied})
}
