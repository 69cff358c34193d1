//go:build linux

package workspace

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"os"
	"slices"
	"strings"
	"testing"
)

// What could make git execute or write something, in each file of an operation
// under way, and what git itself writes there.
func TestGitStateHarm(t *testing.T) {
	for _, c := range []struct {
		file     string
		harmful  []string
		harmless []string
	}{
		{"sequencer/opts", []string{"[options]\n\tstrategy = a/../evil\n", "[options]\n\tstrategy = evil\n", "[options \"x\"]\n\tstrategy = ort\n",
			"[options]\n\tstrategy-option = subtree=$(x)\n", "[include]\n\tpath = x\n", "[options]\n\tgpg-sign = ../x;y\n", "[options]\n\tstra\\\ntegy = evil\n", "\x00", "[options"},
			[]string{"", "[options]\n\tstrategy = ort\n\tstrategy-option = theirs\n\tedit = false\n\tmainline = 1\n\tgpg-sign = \n\tdefault-msg-cleanup = strip\n"}},
		{"rebase-merge/git-rebase-todo", []string{"exec evil\n", "x evil", "pick 1\n\t x\tevil\n", "pick 1\r\nexec\revil", "exec\x00evil", " EXEC evil\n", "pick 1\nevil"},
			[]string{"", "# exec x\npick 1 exec evil\nfixup -C 2\nmerge -C 3 x # y\nupdate-ref refs/heads/x\nbreak\nnoop\n\n"}},
		{"rebase-merge/strategy", []string{"evil", "a/../evil\n", "ort\nevil", "-x", "ORT"}, []string{"ort\n", "recursive", ""}},
		{"rebase-merge/strategy_opts", []string{" '--evil'", "'--ours", "`x`", "--find-renames=$x"}, []string{" --ours", " '--find-renames=50%' '--theirs'", ""}},
		{"rebase-apply/apply-opt", []string{"'--build-fake-ancestor=../.envrc'", " '--build-fake'", "--unsafe-paths", "'-z'", "'--directory=--x'"},
			[]string{"", " '--whitespace=fix' '-C1' '--directory=a b'\n", " '-p1' '--reject' '--exclude=it'\\''s'"}},
		{"rebase-merge/gpg_sign_opt", []string{"--exec=x", "-S$(x)", "-s", "-Sa\n--x"}, []string{"-S", "-S0123ABCD", "-SA U Thor <a@b>\n", ""}},
		{"rebase-merge/author-script", []string{"GIT_AUTHOR_NAME=$(evil)\n", "evil\n", "GIT_AUTHOR_NAME='a'evil\n", "GIT_AUTHOR_NAME='a' evil"},
			[]string{"GIT_AUTHOR_NAME='a'\\''b'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n"}},
		{"BISECT_START", []string{"--orphan=x", "-f", "$(x)"}, []string{"main\n", "0123abcd\n", "feature/x"}},
		{"BISECT_NAMES", []string{"'a' $(evil)", "a;b", " '-x'"}, []string{"", " '--' 'file'\n", " 'a b'"}},
	} {
		for _, text := range c.harmful {
			if GitStateHarm(c.file, []byte(text), nil) == "" {
				t.Errorf("%s: %q is no harm", c.file, text)
			}
			if why := GitStateHarm(c.file, []byte(text), []byte(text)); why != "" {
				t.Errorf("%s: %q was there, and %s", c.file, text, why)
			}
		}
		for _, text := range c.harmless {
			if why := GitStateHarm(c.file, []byte(text), nil); why != "" {
				t.Errorf("%s: %q: %s", c.file, text, why)
			}
		}
	}
}

// In repositories of the start, in those below, and whatever a directory is called
// that is renamed into place.
func TestSettleGitState(t *testing.T) {
	w := tempRoot(t)
	repo(t, w)
	repo(t, w+"/sub")
	git(t, w, "worktree", "add", "-q", "tree")
	write(t, w, ".git/rebase-merge/git-rebase-todo", "exec make test\npick 1\n")
	write(t, w, "prepared/opts", "[options]\n\tstrategy = a/../evil\n")
	s := scanned(t, w)
	write(t, w, ".git/rebase-merge/git-rebase-todo", "exec make test\n")
	write(t, w, "tree/later", "")
	must(t, os.Rename(w+"/prepared", w+"/.git/sequencer"))
	write(t, w, "sub/.git/rebase-merge/git-rebase-todo", "exec evil\n")
	write(t, w, ".git/worktrees/tree/rebase-apply/apply-opt", "'--build-fake-ancestor=x'")
	must(t, os.MkdirAll(w+"/sub/.git/rebase-apply", 0o755))
	must(t, os.Symlink("../../x", w+"/sub/.git/rebase-apply/strategy"))
	write(t, w, "new/.git/HEAD", "ref: refs/heads/main\n")
	write(t, w, "new/.git/rebase-merge/strategy", "evil")
	r := settled(t, s)
	var got []string
	for _, q := range r.Quarantined {
		got = append(got, strings.TrimPrefix(string(q.Path), w+"/"))
	}
	want := []string{".git/sequencer/opts", ".git/worktrees/tree/rebase-apply/apply-opt", "new/.git/rebase-merge/strategy", "sub/.git/rebase-apply/strategy", "sub/.git/rebase-merge/git-rebase-todo"}
	if !slices.Equal(got, want) {
		t.Errorf("held back: %q", got)
	}
}

// What makes git show something else than is there is listed when it is new.
func TestSettleGitView(t *testing.T) {
	w := tempRoot(t)
	repo(t, w)
	repo(t, w+"/old")
	write(t, w, "old/b", "b")
	git(t, w+"/old", "add", "b")
	git(t, w+"/old", "update-index", "--skip-worktree", "README")
	git(t, w, "worktree", "add", "-q", "tree")
	s := scanned(t, w)
	git(t, w, "replace", "HEAD", git(t, w, "commit-tree", "-m", "x", "HEAD^{tree}")[:40])
	git(t, w, "update-index", "--assume-unchanged", "README")
	git(t, w+"/old", "update-index", "--skip-worktree", "b")
	git(t, w+"/old", "update-index", "--untracked-cache")
	git(t, w+"/old", "replace", "HEAD", git(t, w+"/old", "commit-tree", "-m", "x", "HEAD^{tree}")[:40])
	git(t, w+"/old", "pack-refs", "--all")
	git(t, w+"/tree", "update-index", "--skip-worktree", "README")
	write(t, w, ".git/info/exclude", "*.so\n")
	write(t, w, "old/.git/info/grafts", "x\n")
	write(t, w, ".git/objects/info/alternates", "/x\n")
	shadow(t, w+"/old", git(t, w+"/old", "rev-parse", "HEAD:README"))
	if text := git(t, w+"/old", "show", "HEAD:README"); text != "another" {
		t.Errorf("the pack shows nothing else: %q", text)
	}
	git(t, w, "clone", "-q", "--no-local", w, "fresh")
	var got []string
	for _, f := range settled(t, s).Flagged {
		got = append(got, strings.TrimPrefix(string(f.Path), w+"/"))
	}
	want := []string{".git/index", ".git/info/exclude", ".git/objects/info/alternates", ".git/refs/replace", ".git/worktrees/tree/index",
		"old/.git/index", "old/.git/index", "old/.git/info/grafts", "old/.git/objects/pack/pack-1.idx", "old/.git/packed-refs", "old/.git/refs/replace"}
	if !slices.Equal(got, want) {
		t.Errorf("listed: %q", got)
	}
	os.Remove(w + "/old/.git/objects/pack/pack-1.pack")
	os.Remove(w + "/old/.git/objects/pack/pack-1.idx")
	s = scanned(t, w)
	git(t, w, "gc", "-q")
	for _, dir := range []string{w, w + "/old", w + "/tree"} {
		git(t, dir, "status")
		write(t, dir, "more", "")
		git(t, dir, "add", "more")
	}
	git(t, w+"/old", "gc", "-q")
	for _, f := range settled(t, s).Flagged {
		if !strings.HasSuffix(string(f.Path), "/packed-refs") && !strings.Contains(string(f.Path), "/objects/info/commit-graph") && !strings.HasSuffix(string(f.Path), ".idx") {
			t.Errorf("listed again: %+v", f)
		}
	}
}

// shadow has a pack show another text for the object of that name: git looks into
// packs first, and believes their index.
func shadow(t *testing.T, repo, name string) {
	t.Helper()
	raw, err := hex.DecodeString(strings.TrimSpace(name))
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	body.WriteByte(3<<4 | byte(len("another"))) // a blob of that size
	z := zlib.NewWriter(&body)
	z.Write([]byte("another"))
	z.Close()
	signed := func(b []byte) []byte { sum := sha1.Sum(b); return append(b, sum[:]...) }
	pack := signed(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"), body.Bytes()...))
	idx := []byte("\xfftOc\x00\x00\x00\x02")
	for i := range 256 {
		n := uint32(0)
		if i >= int(raw[0]) {
			n = 1
		}
		idx = binary.BigEndian.AppendUint32(idx, n)
	}
	idx = append(idx, raw...)
	idx = binary.BigEndian.AppendUint32(idx, crc32.ChecksumIEEE(body.Bytes()))
	idx = binary.BigEndian.AppendUint32(idx, 12)
	idx = append(idx, pack[len(pack)-20:]...)
	write(t, repo, ".git/objects/pack/pack-1.pack", string(pack))
	write(t, repo, ".git/objects/pack/pack-1.idx", string(signed(idx)))
}

// The length of object names is said in the configuration, which git reads to its
// end; an index that can be read with either writes two sets of files.
func TestIndexOfTwoLengths(t *testing.T) {
	for _, name := range []string{"../.envrc", "/x", ".git/hooks/post-checkout", ".envrc"} {
		data := indexOf(20, "", strings.Repeat("a", 10)+"\x0f\xff"+name)
		if IndexHarm(data, nil) == "" {
			t.Errorf("%q is written with names of 32 bytes, and is no harm", name)
		}
	}
	config := []byte("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha1\n\tobjectformat = sha256\n")
	if IndexHarm(indexOf(32, "", "a"), config) != "" || IndexHarm(indexOf(20, "", "a"), config) == "" {
		t.Error("the last word of a configuration does not count")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
