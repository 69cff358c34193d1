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

// Arguments are split as git quotes them; anything that a shell would treat as more
// than text was not written by git.
func TestUnquoted(t *testing.T) {
	for text, want := range map[string][]string{
		"": nil, "  ": nil, "a b": {"a", "b"}, " 'a b'  c": {"a b", "c"}, "a'b c'd": {"ab cd"}, `'it'\''s'`: {"it's"}, `'no'\!'x'`: {"no!x"}, "''": {""},
	} {
		if got, ok := unquoted(text); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"'a", "a'", `a\`, `\a`, `\\`, `"a"`, "`a`", "$a", "a;b", "a&", "a|b", "a>b", "(a)", "*", "?", "[a]", "#", "~", "%", "a!", "a\tb", "a\nb", "a\x00b"} {
		if got, ok := unquoted(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// What git's own exclude file says before anything was written to it.
func TestOnlyComments(t *testing.T) {
	for text, want := range map[string]bool{"": true, "# a\n#b": true, "\r\n# a\r\n\n": true, "# a\nb\n": false, " #a\n": false, "a": false} {
		if onlyComments([]byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	v := &settle{repos: map[string]bool{"a/b": true}}
	for dir, want := range map[string]bool{"a/b": true, "a/b/c/d": true, "a": false, "a/bc": false, "": false} {
		if v.inKnown(dir) != want {
			t.Errorf("%q lies in a repository of the start: %v", dir, !want)
		}
	}
	v.repos[""] = true
	if !v.inKnown("x") || !v.inKnown("") {
		t.Error("the root is a repository of the start")
	}
}

// flaggedEntry is an entry of version 3 of an index with SHA-1.
func flaggedEntry(name string, flags, more byte) string { return rawEntry(20, 0, flags, more, name) }

// What makes git look away in an index, and what of it is new.
func TestIndexBlind(t *testing.T) {
	none := func(string) []byte { return nil }
	plain := flaggedEntry("a", 0, 0)
	assumed, other := flaggedEntry("a", 0x80, 0), flaggedEntry("b", 0x80, 0)
	var many []string
	for i := range maxBlindNamed + 2 {
		many = append(many, flaggedEntry(string(rune('a'+i)), 0x80, 0))
	}
	for _, tt := range []struct {
		name string
		now  []byte
		was  [][]byte
		want []string // what each line says
	}{
		{"an ordinary entry", indexWith(3, 20, "", plain), nil, nil},
		{"assumed unchanged", indexWith(3, 20, "", assumed), nil, []string{`marks 1 more as assume-unchanged, "a":`}},
		{"not checked out", indexWith(3, 20, "", flaggedEntry("a", 0x40, 0x40)), nil, []string{`marks 1 more as skip-worktree, "a":`}},
		{"to be added", indexWith(3, 20, "", flaggedEntry("a", 0x40, 0x20)), nil, nil},
		{"both", indexWith(3, 20, "", assumed, flaggedEntry("b", 0x40, 0x40)), nil, []string{`assume-unchanged, "a":`, `skip-worktree, "b":`}},
		{"it was so before", indexWith(3, 20, "", assumed), [][]byte{indexWith(3, 20, "", assumed)}, nil},
		{"one more than before", indexWith(3, 20, "", assumed, other), [][]byte{indexWith(3, 20, "", assumed)}, []string{`marks 1 more as assume-unchanged, "b":`}},
		{"in the one before the last", indexWith(3, 20, "", assumed), [][]byte{indexWith(3, 20, "", plain), indexWith(3, 20, "", assumed)}, nil},
		{"git could not read the one before", indexWith(3, 20, "", assumed), [][]byte{append(indexWith(3, 20, "", assumed), "123"...)}, []string{`"a"`}},
		{"many", indexWith(3, 20, "", many...), nil, []string{`marks 7 more as assume-unchanged, "a", "b", "c", "d", "e", …:`}},
		{"a list of changes", indexWith(3, 20, table("FSMN", 1), plain), nil, []string{"a list of files that were not changed"}},
		{"a list of what is untracked", indexWith(3, 20, table("UNTR", 1), plain), nil, []string{"a list of files that git does not track"}},
		{"both lists, and one was there", indexWith(3, 20, table("UNTR", 1)+table("FSMN", 1), plain), [][]byte{indexWith(3, 20, table("UNTR"))}, []string{"a list of files that were not changed"}},
		{"other tables", indexWith(3, 20, table("TREE", 1)+table("REUC"), plain), nil, nil},
		{"nothing", nil, nil, nil},
	} {
		got := IndexBlind(tt.now, tt.was, none, none, nil)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q", tt.name, got)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", tt.name, got[i], want)
			}
		}
	}
}

// Replacements among packed references are listed when they were not there before.
func TestSettlePackedReplacements(t *testing.T) {
	w := tempRoot(t)
	write(t, w, ".git/HEAD", "ref: refs/heads/main\n")
	write(t, w, ".git/objects/x", "")
	write(t, w, ".git/refs/x", "")
	const one, two, branch = "aaaa refs/replace/1111\n", "bbbb refs/replace/2222\n", "cccc refs/heads/main\n"
	write(t, w, ".git/packed-refs", one)
	s := scanned(t, w)
	for _, tt := range []struct {
		text, want string
	}{{branch + one, ""}, {branch, ""}, {one + two + branch, "1 more refs/replace"}} {
		write(t, w, ".git/packed-refs", tt.text)
		got := ""
		for _, f := range settled(t, s).Flagged {
			got += f.Reason
		}
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
	must(t, os.Truncate(w+"/.git/packed-refs", maxIndexed+1))
	if r := settled(t, s); len(r.Flagged) != 1 || !strings.Contains(r.Flagged[0].Reason, "larger than git makes it") {
		t.Errorf("a huge one: %+v", r.Flagged)
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

// The configuration sets the length of object names, and git reads it to its end; an
// index that can be read with either length writes two sets of files.
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
